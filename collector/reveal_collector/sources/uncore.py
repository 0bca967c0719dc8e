"""Bytes read from and written to memory, counted by the memory controllers of each package.

Events are found by the names that the kernel gives them, else by the tables here: Intel's
``uncore_imc*`` (servers since Sapphire Rapids name none), AMD's ``amd_umc_*`` (Zen 4 and later)
and ``amd_df`` (Zen 2 and 3: the sum of both directions), and NVIDIA Grace's
``nvidia_scf_pmu_*``.  The ``cpumask`` of a PMU names one CPU per package to count on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from reveal_collector.devices.cpu_topology import packages
from reveal_collector.kernel_interfaces.errors import ParseError, Unsupported
from reveal_collector.kernel_interfaces.perf_event import PerfEvent
from reveal_collector.readers.perf_groups import CountingPlan, CpuEvent, PerfGroupSource
from reveal_collector.readers.source import Roots, Source
from reveal_collector.readers.textfile import channel
from reveal_collector.sources.hardware import core_pmus
from reveal_collector.sources.pmu.device import PmuDevice, pmu_devices
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane

_READ, _WRITE = "memory.bandwidth.read", "memory.bandwidth.write"
_BOTH = "memory.bandwidth.total"
_COUNTERS = 4  # each of these PMUs has at least so many
_LINE = 64.0  # bytes of a transfer between controller and memory
_UNITS = {"MiB": 1 << 20, "Bytes": 1, "B": 1, "": 1}


@dataclass(frozen=True)
class MemoryControllerPmu:
    """PMUs whose name matches ``pattern``, on CPUs of ``platforms`` (empty: any).

    ``named`` has the events that the kernel may name: metric -> names, with bytes per count for
    events without a unit; the first known name is used.  ``coded`` has the events to count if none
    is named: metric -> terms, with ``_LINE`` bytes per count.
    """

    pattern: re.Pattern[str]
    named: Mapping[str, tuple[tuple[str, float], ...]] = field(default_factory=dict)
    coded: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    platforms: tuple[str, ...] = ()


_DRAM_CHANNELS = tuple(
    f"event={event:#x},umask=0x38"  # dram_channel_data_controller_0 .. 7
    for event in (0x07, 0x47, 0x87, 0xC7, 0x107, 0x147, 0x187, 0x1C7)
)
CONTROLLER_PMUS = (
    MemoryControllerPmu(
        re.compile(r"uncore_imc(_\d+|_free_running(_\d+)?)?"),
        {
            _READ: (("cas_count_read", _LINE), ("data_reads", _LINE), ("data_read", _LINE)),
            _WRITE: (("cas_count_write", _LINE), ("data_writes", _LINE), ("data_write", _LINE)),
        },
    ),
    MemoryControllerPmu(  # unc_m_cas_count.{rd,wr}
        re.compile(r"uncore_imc_\d+"),
        coded={_READ: ("event=0x05,umask=0xcf",), _WRITE: ("event=0x05,umask=0xf0",)},
        platforms=("Sapphire Rapids, Emerald Rapids",),
    ),
    MemoryControllerPmu(  # unc_m_cas_count_sch0 and _sch1: two subchannels
        re.compile(r"uncore_imc_\d+"),
        coded={
            _READ: ("event=0x05,umask=0xcf", "event=0x06,umask=0xcf"),
            _WRITE: ("event=0x05,umask=0xf0", "event=0x06,umask=0xf0"),
        },
        platforms=("Granite Rapids", "Sierra Forest, Grand Ridge"),
    ),
    MemoryControllerPmu(  # umc_cas_cmd.{rd,wr}
        re.compile(r"amd_umc_\d+"),
        coded={_READ: ("event=0x0a,rdwrmask=0x1",), _WRITE: ("event=0x0a,rdwrmask=0x2",)},
    ),
    MemoryControllerPmu(
        re.compile(r"amd_df"), coded={_BOTH: _DRAM_CHANNELS}, platforms=("Zen 2", "Zen 3")
    ),
    MemoryControllerPmu(  # reads count units of 32 bytes
        re.compile(r"nvidia_scf_pmu_\d+"),
        {_READ: (("cmem_rd_data", 32.0),), _WRITE: (("cmem_wr_total_bytes", 1.0),)},
    ),
)


def sources(roots: Roots) -> list[Source]:
    return [PerfGroupSource("uncore", Lane.SLOW, roots, _plan)]


def _plan(roots: Roots) -> CountingPlan:
    groups: list[tuple[int, list[PerfEvent]]] = []
    columns: dict[Channel, list[CpuEvent]] = {}
    for device, controller in controllers(roots):
        counted = list(_counted(device, controller))
        events = [event for _, _, event in counted]
        for cpu, package in packages(roots.sys, device.cpus()).items():
            groups += [
                (cpu, events[start : start + _COUNTERS])
                for start in range(0, len(events), _COUNTERS)
            ]
            for metric, scale, event in counted:
                columns.setdefault(channel(metric, package, scale), []).append((cpu, event))
    if not columns:
        raise Unsupported(
            "no PMU of a memory controller is known here",
            "use bare metal with the uncore module (intel_uncore, amd_uncore, arm_cspmu)",
        )
    return CountingPlan(groups, columns)


def controllers(roots: Roots) -> list[tuple[PmuDevice, MemoryControllerPmu]]:
    """Return the PMUs of memory controllers, each with the first row that fits."""
    platforms = {cores.platform.name for cores in core_pmus(roots)}
    found = []
    for name, device in pmu_devices(roots.sys).items():
        for controller in CONTROLLER_PMUS:
            applies = not controller.platforms or platforms & {*controller.platforms}
            if applies and controller.pattern.fullmatch(name) and any(_counted(device, controller)):
                found.append((device, controller))
                break
    return found


def _counted(
    device: PmuDevice, controller: MemoryControllerPmu
) -> Iterator[tuple[str, float, PerfEvent]]:
    """Yield metric, bytes per count and event."""
    yield from _named(device, controller)
    for metric, choices in controller.coded.items():
        for terms in choices:
            try:
                yield metric, _LINE, device.encoded(terms)
            except ParseError:  # a PMU of the same name of another CPU generation
                continue


def _named(
    device: PmuDevice, controller: MemoryControllerPmu
) -> Iterator[tuple[str, float, PerfEvent]]:
    for metric, names in controller.named.items():
        for name, size in names:
            if named := device.named(name):
                unit = _UNITS.get(named.unit, 1)
                yield metric, named.scale * unit if named.unit else size, named.event
                break
