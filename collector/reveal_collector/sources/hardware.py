"""Hardware events of the cores: cycles, instructions, branches, caches, memory stalls.

Which event counts what stands in ``sources/pmu``, a table a vendor.  Every online CPU has its
groups, each small enough for the counters; what does not fit at once takes turns, and the
counts are scaled (``perfevent.step``).  The columns are sums over the host: quotients of sums
are what means something (instructions per cycle, misses per reference).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from reveal_collector.devices.cpu_topology import online
from reveal_collector.kernel.errors import ParseError, Unsupported
from reveal_collector.kernel.perf_event import PerfEvent
from reveal_collector.readers.perf_groups import CountingPlan, CpuEvent, PerfGroupSource
from reveal_collector.readers.source import Roots, Source
from reveal_collector.readers.sysfs_attributes import read_number
from reveal_collector.readers.textfile import channel
from reveal_collector.sources.pmu import amd, arm, intel
from reveal_collector.sources.pmu.device import Device, devices
from reveal_collector.sources.pmu.platform import (
    GENERIC,
    Count,
    Cpu,
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
_CORES = ("armv8_", "armv9_")
_ABSENT = Unsupported(
    "the CPU's performance counters are not exposed, as in most virtual machines",
    "bare metal, or a virtual machine type or hypervisor setting that exposes the PMU",
)


class Cores(NamedTuple):
    """The CPUs one core PMU counts on, and what it counts there."""

    device: Device
    platform: Platform
    cpus: Sequence[int]


def sources(roots: Roots) -> list[Source]:
    return [PerfGroupSource("pmu", Lane.SLOW, roots, plan)]


def plan(roots: Roots) -> CountingPlan:
    """Groups and sums of every core PMU here; raises ``Unsupported`` where there is none."""
    found = list(core_pmus(roots))
    if not found:
        raise _ABSENT
    taken = watchdogs(roots)
    groups: list[tuple[int, list[PerfEvent]]] = []
    columns: dict[Channel, list[CpuEvent]] = {}
    for cores in found:
        events = {name: _event(cores, count) for name, count in cores.platform.events.items()}
        known = {name: event for name, event in events.items() if event is not None}
        for packed in pack(cores.platform, list(known), taken):
            groups += [(cpu, [known[name] for name in packed]) for cpu in cores.cpus]
        for name, event in known.items():
            column = channel(name, "", cores.platform.events[name].scale)
            columns.setdefault(column, []).extend((cpu, event) for cpu in cores.cpus)
    return CountingPlan(groups, columns)


def core_pmus(roots: Roots) -> Iterator[Cores]:
    """The PMUs of the cores, with the online CPUs of each."""
    known = cpus((roots.proc / "cpuinfo").read_text())
    present = online(roots.sys)
    for name, device in devices(roots.sys).items():
        if name != "cpu" and name not in _HYBRID and not name.startswith(_CORES):
            continue
        own = device.cpus()
        mine = [cpu for cpu in present if not own or cpu in own]
        if mine:
            cpu = known.get(mine[0], Cpu("", 0, 0))
            platform = choose(platforms(), cpu, name if name in _HYBRID else "")
            yield Cores(device, platform, mine)


def platforms() -> tuple[Platform, ...]:
    """Those of a site's plugins before ours."""
    theirs = plugins.parts("PLATFORMS")
    return (*(platform for some in theirs for platform in some), *PLATFORMS)


def watchdogs(roots: Roots) -> int:
    """Counters the kernel's watchdog for hard lockups holds (admin-guide/lockup-watchdogs)."""
    return (read_number(roots.proc / "sys/kernel/nmi_watchdog") or 0) & 1


def _event(cores: Cores, count: Count) -> PerfEvent | None:
    """None where the PMU has no such term: an older kernel, a guest's reduced PMU."""
    try:
        if (code := GENERIC.get(count.event)) is None:
            return cores.device.encoded(count.event)
        # the kernel asks which PMU is meant where there are several (perf_event_open(2))
        chosen = cores.device.type << 32 if cores.device.name in _HYBRID else 0
        return PerfEvent(_HARDWARE, code | chosen)
    except ParseError:
        return None
