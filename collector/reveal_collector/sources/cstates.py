"""Residency of cores and packages in C-states, from the counters of the hardware.

Kernel: arch/x86/events/intel/cstate.c (``cstate_core``, ``cstate_pkg``), in ticks of the TSC.
A read interrupts one CPU of each core, so it belongs in the rare lane: a collector that wakes
sleeping cores ten times a second would measure itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from reveal_collector.devices.cpu_topology import first_of, first_threads, online, packages
from reveal_collector.kernel_interfaces.errors import Unsupported
from reveal_collector.kernel_interfaces.perf_event import PerfEvent
from reveal_collector.readers.perf_groups import CountingPlan, CpuEvent, PerfGroupSource
from reveal_collector.readers.source import Roots, Source
from reveal_collector.readers.textfile import channel
from reveal_collector.sources.pmu.device import PmuDevice, pmu_devices
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane

_CORE, _PACKAGE = "cstate_core", "cstate_pkg"
_STATES = ("c1", "c2", "c3", "c6", "c7", "c8", "c9", "c10")


def sources(roots: Roots) -> list[Source]:
    return [PerfGroupSource("cstates", Lane.RARE, roots, _plan)]


def _plan(roots: Roots) -> CountingPlan:
    present = online(roots.sys)
    groups: list[tuple[int, list[PerfEvent]]] = []
    columns: dict[Channel, list[CpuEvent]] = {}
    known = pmu_devices(roots.sys)
    if device := known.get(_CORE):
        cpus = device.cpus() or first_threads(roots.sys, present)
        states = dict(_states(device))
        groups += [(cpu, list(states.values())) for cpu in cpus]
        for state, event in states.items():
            column = channel("cpu.residency.core", state, 1 / len(cpus))
            columns[column] = [(cpu, event) for cpu in cpus]
    if device := known.get(_PACKAGE):
        states = dict(_states(device))
        for cpu, package in packages(
            roots.sys, device.cpus() or first_of(packages(roots.sys, present)).values()
        ).items():
            groups.append((cpu, list(states.values())))
            for state, event in states.items():
                columns[channel("cpu.residency.package", f"{package}/{state}")] = [(cpu, event)]
    if not columns:
        raise Unsupported("there is no cstate PMU; only Intel CPUs on bare metal have one")
    return CountingPlan(groups, columns)


def _states(device: PmuDevice) -> Iterator[tuple[str, PerfEvent]]:
    for state in _STATES:
        if named := device.named(f"{state}-residency"):
            yield state.upper(), named.event
