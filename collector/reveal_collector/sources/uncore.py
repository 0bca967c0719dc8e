"""Bytes read from and written to memory, counted by the memory controllers of each package.

Found by the names the kernel itself gives events, else by the tables here: Intel's
``uncore_imc*`` (the servers since Sapphire Rapids name none), AMD's ``amd_umc_*`` (Zen 4 and
after) and ``amd_df`` (Zen 2 and 3: both directions together), NVIDIA Grace's
``nvidia_scf_pmu_*``.  The ``cpumask`` of a PMU names one CPU a package to count on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from reveal_collector.devices.cpu_topology import packages
from reveal_collector.kernel.errors import ParseError, Unsupported
from reveal_collector.kernel.perf_event import PerfEvent
from reveal_collector.readers.perf_groups import CountingPlan, CpuEvent, PerfGroupSource
from reveal_collector.readers.source import Roots, Source
from reveal_collector.readers.textfile import channel
from reveal_collector.sources.hardware import core_pmus
from reveal_collector.sources.pmu.device import Device, devices
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane

_READ, _WRITE = "memory.bandwidth.read", "memory.bandwidth.write"
_BOTH = "memory.bandwidth.total"
_COUNTERS = 4  # that each of these PMUs has at least
_LINE = 64.0  # bytes of a transfer between controller and memory
_UNITS = {"MiB": 1 << 20, "Bytes": 1, "B": 1, "": 1}


@dataclass(frozen=True)
class Controller:
    """PMUs whose name ``pattern`` matches in full, on CPUs of ``platforms`` (none: any).

    ``named`` are events the kernel may name: metric -> names and the bytes a count is where the
    kernel gives no unit, the first one known is taken.  ``coded`` are counted where none is
    named: metric -> terms, with ``_LINE`` bytes a count.
    """

    pattern: re.Pattern[str]
    named: Mapping[str, tuple[tuple[str, float], ...]] = field(default_factory=dict)
    coded: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    platforms: tuple[str, ...] = ()


_DRAM_CHANNELS = tuple(
    f"event={event:#x},umask=0x38"  # dram_channel_data_controller_0 .. 7
    for event in (0x07, 0x47, 0x87, 0xC7, 0x107, 0x147, 0x187, 0x1C7)
)
CONTROLLERS = (
    Controller(
        re.compile(r"uncore_imc(_\d+|_free_running(_\d+)?)?"),
        {
            _READ: (("cas_count_read", _LINE), ("data_reads", _LINE), ("data_read", _LINE)),
            _WRITE: (("cas_count_write", _LINE), ("data_writes", _LINE), ("data_write", _LINE)),
        },
    ),
    Controller(  # unc_m_cas_count.{rd,wr}
        re.compile(r"uncore_imc_\d+"),
        coded={_READ: ("event=0x05,umask=0xcf",), _WRITE: ("event=0x05,umask=0xf0",)},
        platforms=("Sapphire Rapids, Emerald Rapids",),
    ),
    Controller(  # unc_m_cas_count_sch0 and _sch1: two subchannels
        re.compile(r"uncore_imc_\d+"),
        coded={
            _READ: ("event=0x05,umask=0xcf", "event=0x06,umask=0xcf"),
            _WRITE: ("event=0x05,umask=0xf0", "event=0x06,umask=0xf0"),
        },
        platforms=("Granite Rapids", "Sierra Forest, Grand Ridge"),
    ),
    Controller(  # umc_cas_cmd.{rd,wr}
        re.compile(r"amd_umc_\d+"),
        coded={_READ: ("event=0x0a,rdwrmask=0x1",), _WRITE: ("event=0x0a,rdwrmask=0x2",)},
    ),
    Controller(re.compile(r"amd_df"), coded={_BOTH: _DRAM_CHANNELS}, platforms=("Zen 2", "Zen 3")),
    Controller(  # reads are counted in beats of 32 bytes
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
                (cpu, events[at : at + _COUNTERS]) for at in range(0, len(events), _COUNTERS)
            ]
            for metric, scale, event in counted:
                columns.setdefault(channel(metric, package, scale), []).append((cpu, event))
    if not columns:
        raise Unsupported(
            "no memory controller's PMU is known here",
            "bare metal with the uncore module (intel_uncore, amd_uncore, arm_cspmu)",
        )
    return CountingPlan(groups, columns)


def controllers(roots: Roots) -> list[tuple[Device, Controller]]:
    """The memory controllers' PMUs, each with the first row that knows it on this platform."""
    platforms = {cores.platform.name for cores in core_pmus(roots)}
    found = []
    for name, device in devices(roots.sys).items():
        for controller in CONTROLLERS:
            here = not controller.platforms or platforms & {*controller.platforms}
            if here and controller.pattern.fullmatch(name) and any(_counted(device, controller)):
                found.append((device, controller))
                break
    return found


def _counted(device: Device, controller: Controller) -> Iterator[tuple[str, float, PerfEvent]]:
    """Metric, bytes a count, event."""
    yield from _named(device, controller)
    for metric, choices in controller.coded.items():
        for terms in choices:
            try:
                yield metric, _LINE, device.encoded(terms)
            except ParseError:  # another generation's PMU of the same name
                continue


def _named(device: Device, controller: Controller) -> Iterator[tuple[str, float, PerfEvent]]:
    for metric, names in controller.named.items():
        for name, size in names:
            if named := device.named(name):
                unit = _UNITS.get(named.unit, 1)
                yield metric, named.scale * unit if named.unit else size, named.event
                break
