"""Hardware events of the cores: cycles, instructions, branches, caches, memory stalls.

``sources/pmu`` has a table of events for each vendor.  Every online CPU has groups of events that
fit into its counters.  If not all groups fit at once, the kernel rotates them and the counts are
scaled.  The columns are sums over the host: the meaningful numbers are ratios of sums
(instructions per cycle, misses per reference).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from reveal_collector.devices.cpu_topology import online
from reveal_collector.kernel_interfaces.errors import ParseError, Unsupported
from reveal_collector.kernel_interfaces.perf_event import PerfEvent
from reveal_collector.readers.perf_groups import CountingPlan, CpuEvent, PerfGroupSource
from reveal_collector.readers.source import Roots, Source
from reveal_collector.readers.sysfs_attributes import read_number
from reveal_collector.readers.textfile import channel
from reveal_collector.sources.pmu import amd, arm, intel
from reveal_collector.sources.pmu.device import PmuDevice, pmu_devices
from reveal_collector.sources.pmu.platform import (
    GENERIC,
    Count,
    CpuModel,
    Platform,
    choose,
    cpus,
    pack,
)
from reveal_contract import plugins
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane

PLATFORMS: tuple[Platform, ...] = (*intel.PLATFORMS, *amd.PLATFORMS, *arm.PLATFORMS)
_HARDWARE = 0  # perf_event_attr.type
_HYBRID = ("cpu_core", "cpu_atom")
_ARM_PMUS = ("armv8_", "armv9_")
_ABSENT = Unsupported(
    "the CPU's performance counters are not exposed, as in most virtual machines",
    "use bare metal, or a virtual machine type or hypervisor setting that exposes the PMU",
)


class CorePmu(NamedTuple):
    """One PMU of cores: its CPUs, and the platform that names its events."""

    device: PmuDevice
    platform: Platform
    cpus: Sequence[int]


def sources(roots: Roots) -> list[Source]:
    return [PerfGroupSource("pmu", Lane.SLOW, roots, plan)]


def plan(roots: Roots) -> CountingPlan:
    """Return the groups and sums of every core PMU; raises ``Unsupported`` if there is none."""
    found = list(core_pmus(roots))
    if not found:
        raise _ABSENT
    reserved = watchdog_counters(roots)
    groups: list[tuple[int, list[PerfEvent]]] = []
    columns: dict[Channel, list[CpuEvent]] = {}
    for pmu in found:
        events = {name: _event(pmu, count) for name, count in pmu.platform.events.items()}
        known = {name: event for name, event in events.items() if event is not None}
        for packed in pack(pmu.platform, list(known), reserved):
            groups += [(cpu, [known[name] for name in packed]) for cpu in pmu.cpus]
        for name, event in known.items():
            column = channel(name, "", pmu.platform.events[name].scale)
            columns.setdefault(column, []).extend((cpu, event) for cpu in pmu.cpus)
    return CountingPlan(groups, columns)


def core_pmus(roots: Roots) -> Iterator[CorePmu]:
    """Yield the PMUs of the cores with their online CPUs."""
    known = cpus((roots.proc / "cpuinfo").read_text())
    present = online(roots.sys)
    for name, device in pmu_devices(roots.sys).items():
        if name != "cpu" and name not in _HYBRID and not name.startswith(_ARM_PMUS):
            continue
        pmu_cpus = device.cpus()
        online_cpus = [cpu for cpu in present if not pmu_cpus or cpu in pmu_cpus]
        if online_cpus:
            cpu = known.get(online_cpus[0], CpuModel("", 0, 0))
            platform = choose(platforms(), cpu, name if name in _HYBRID else "")
            yield CorePmu(device, platform, online_cpus)


def platforms() -> tuple[Platform, ...]:
    """Return the platforms of plugins, then the built-in ones."""
    plugin_tables = plugins.parts("PLATFORMS")
    return (*(platform for table in plugin_tables for platform in table), *PLATFORMS)


def watchdog_counters(roots: Roots) -> int:
    """Return the counters used by the hard lockup watchdog (admin-guide/lockup-watchdogs)."""
    return (read_number(roots.proc / "sys/kernel/nmi_watchdog") or 0) & 1


def _event(pmu: CorePmu, count: Count) -> PerfEvent | None:
    """Return ``None`` if the PMU has no such term: an older kernel, or a reduced PMU of a guest."""
    try:
        if (code := GENERIC.get(count.event)) is None:
            return pmu.device.encoded(count.event)
        # A hybrid CPU has several PMUs: the upper bits select one (perf_event_open(2)).
        pmu_type = pmu.device.type << 32 if pmu.device.name in _HYBRID else 0
        return PerfEvent(_HARDWARE, code | pmu_type)
    except ParseError:
        return None
