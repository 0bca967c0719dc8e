"""The ``msr`` PMU: what turbostat computes Busy% and Bzy_MHz from, and SMIs.

Kernel: arch/x86/events/msr.c.  mperf and aperf count only while a CPU is not idle: mperf at the
rate of the TSC, aperf at the CPU's own clock.  So mperf/tsc is the busy share (Busy%), and
aperf/mperf times the TSC's rate the clock while busy (Bzy_MHz).  Sums over CPUs go out with a
scale of one over their number: the channel is the mean of a CPU, ``cpu.tsc`` thus the TSC's rate.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from reveal_collector.devices.cpu_topology import first_of, online, packages
from reveal_collector.kernel.errors import Unsupported
from reveal_collector.kernel.perf_event import PerfEvent
from reveal_collector.readers.perf_groups import CountingPlan, CpuEvent, PerfGroupSource
from reveal_collector.readers.source import Roots, Source
from reveal_collector.readers.sysfs_attributes import parse_fields, read_text
from reveal_collector.readers.textfile import channel
from reveal_collector.sources.pmu.device import Device, devices
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane

Step = tuple[int, tuple[int, ...]]

_COUNTED = ("aperf", "mperf", "tsc")
_BUSY = 0.1  # a CPU less busy than this says nothing of its clock
_PPM = 1_000_000
_HIGHEST, _LOWEST = "cpu.busy_share.highest", "cpu.busy_frequency.lowest"


def sources(roots: Roots) -> list[Source]:
    return [Clocks(roots), PerfGroupSource("smi", Lane.SLOW, roots, _smi)]


class Clocks(PerfGroupSource):
    """aperf, mperf and tsc, and two gauges: the busiest CPU's share, the slowest busy clock."""

    def __init__(self, roots: Roots) -> None:
        super().__init__("msr", Lane.SLOW, roots, _clocks)

    def read(self) -> Sequence[int | None]:
        values = list(super().read())
        return [*values, *extremes([group.last_increment for group in self.groups])]

    def _learn(self) -> None:
        super()._learn()
        if any(len(group.events) < len(_COUNTED) for group in self.groups):
            raise _ABSENT
        self.channels += (channel(_HIGHEST), channel(_LOWEST))


def extremes(steps: Sequence[Step | None]) -> tuple[int | None, int | None]:
    """Highest busy share (ppm) and lowest clock while busy (Hz) of the CPUs' last steps.

    A step is the time it took (ns), then aperf, mperf and tsc.
    """
    shares, clocks = [], []
    for last in steps:
        if last is None:
            continue
        elapsed, (aperf, mperf, tsc) = last
        if not tsc or not elapsed:
            continue
        shares.append(mperf * _PPM // tsc)
        if mperf > tsc * _BUSY:
            clocks.append(aperf * tsc * 1_000_000_000 // (mperf * elapsed))
    return max(shares, default=None), min(clocks, default=None)


_ABSENT = Unsupported(
    "the msr PMU has no aperf and mperf here, as in most virtual machines",
    "bare metal",
)


def _clocks(roots: Roots) -> CountingPlan:
    device = _device(roots)
    events = _events(device, _COUNTED)
    if len(events) < len(_COUNTED):
        raise _ABSENT
    present = online(roots.sys)
    columns = dict(_means(events, "", present))
    by_package: dict[str, list[int]] = {}
    for cpu, package in packages(roots.sys, present).items():
        by_package.setdefault(package, []).append(cpu)
    for package, cpus in by_package.items():
        columns |= _means(events, package, cpus)
    return CountingPlan([(cpu, list(events.values())) for cpu in present], columns)


def _means(
    events: Mapping[str, PerfEvent], package: str, cpus: Sequence[int]
) -> Iterator[tuple[Channel, list[CpuEvent]]]:
    for name, event in events.items():
        metric = f"cpu.{name}.package" if package else f"cpu.{name}"
        yield channel(metric, package, 1 / len(cpus)), [(cpu, event) for cpu in cpus]


def _smi(roots: Roots) -> CountingPlan:
    """One CPU a package: an SMI halts all of them.  A virtual machine is told of its own only."""
    if "hypervisor" in parse_fields(read_text(roots.proc / "cpuinfo")).get("flags", "").split():
        raise Unsupported("the SMIs of its host cannot be seen in a virtual machine", "bare metal")
    events = _events(_device(roots), ("smi",))
    if not events:
        raise Unsupported("the msr PMU does not count SMIs here: Intel's does, on bare metal")
    event = events["smi"]
    firsts = first_of(packages(roots.sys, online(roots.sys)))
    columns = {channel("cpu.smi", name): [(cpu, event)] for name, cpu in firsts.items()}
    return CountingPlan([(cpu, [event]) for cpu in firsts.values()], columns)


def _device(roots: Roots) -> Device:
    device = devices(roots.sys).get("msr")
    if device is None:
        raise Unsupported("there is no msr PMU: x86 only")
    return device


def _events(device: Device, names: Sequence[str]) -> dict[str, PerfEvent]:
    found = {name: device.named(name) for name in names}
    return {name: named.event for name, named in found.items() if named is not None}
