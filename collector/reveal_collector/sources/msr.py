"""The ``msr`` PMU: the counters behind turbostat's Busy% and Bzy_MHz, and SMIs.

Kernel: arch/x86/events/msr.c.  mperf and aperf count only while a CPU is not idle: mperf at the
rate of the TSC, aperf at the clock of the CPU.  So mperf/tsc is the busy share (Busy%), and
aperf/mperf times the rate of the TSC is the clock while busy (Bzy_MHz).  Sums over CPUs have a
scale of 1 / number of CPUs, so a channel is the mean of a CPU and ``cpu.tsc`` the rate of the TSC.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from reveal_collector.devices.cpu_topology import first_of, online, packages
from reveal_collector.kernel_interfaces.errors import Unsupported
from reveal_collector.kernel_interfaces.perf_event import PerfEvent
from reveal_collector.readers.perf_groups import CountingPlan, CpuEvent, PerfGroupSource
from reveal_collector.readers.source import Roots, Source
from reveal_collector.readers.sysfs_attributes import parse_fields, read_text
from reveal_collector.readers.textfile import channel
from reveal_collector.sources.pmu.device import PmuDevice, pmu_devices
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane

CounterStep = tuple[int, tuple[int, ...]]

_COUNTERS = ("aperf", "mperf", "tsc")
_MIN_BUSY_SHARE = 0.1  # the clock of a less busy CPU is not representative
_PPM = 1_000_000
_HIGHEST, _LOWEST = "cpu.busy_share.highest", "cpu.busy_frequency.lowest"


def sources(roots: Roots) -> list[Source]:
    return [MsrClocks(roots), PerfGroupSource("smi", Lane.SLOW, roots, _smi)]


class MsrClocks(PerfGroupSource):
    """aperf, mperf and tsc, and two gauges: the busiest CPU's share, the slowest busy clock."""

    def __init__(self, roots: Roots) -> None:
        super().__init__("msr", Lane.SLOW, roots, _clocks)

    def read(self) -> Sequence[int | None]:
        values = list(super().read())
        return [*values, *extremes([group.last_increment for group in self.groups])]

    def _learn(self) -> None:
        super()._learn()
        if any(len(group.events) < len(_COUNTERS) for group in self.groups):
            raise _ABSENT
        self.channels += (channel(_HIGHEST), channel(_LOWEST))


def extremes(steps: Sequence[CounterStep | None]) -> tuple[int | None, int | None]:
    """Return the highest busy share (ppm) and the lowest clock while busy (Hz) of the last steps.

    A step is its duration in ns, followed by the increases of aperf, mperf and tsc.
    """
    shares, clocks = [], []
    for step in steps:
        if step is None:
            continue
        elapsed, (aperf, mperf, tsc) = step
        if not tsc or not elapsed:
            continue
        shares.append(mperf * _PPM // tsc)
        if mperf > tsc * _MIN_BUSY_SHARE:
            clocks.append(aperf * tsc * 1_000_000_000 // (mperf * elapsed))
    return max(shares, default=None), min(clocks, default=None)


_ABSENT = Unsupported(
    "the msr PMU has no aperf and mperf here, as in most virtual machines",
    "use bare metal",
)


def _clocks(roots: Roots) -> CountingPlan:
    device = _device(roots)
    events = _events(device, _COUNTERS)
    if len(events) < len(_COUNTERS):
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
    """Count on one CPU per package, because an SMI stops all of them.

    A virtual machine counts only its own SMIs, so the source is refused there.
    """
    if "hypervisor" in parse_fields(read_text(roots.proc / "cpuinfo")).get("flags", "").split():
        raise Unsupported("a virtual machine does not see the SMIs of its host", "use bare metal")
    events = _events(_device(roots), ("smi",))
    if not events:
        raise Unsupported("the msr PMU does not count SMIs here; that of Intel on bare metal does")
    event = events["smi"]
    firsts = first_of(packages(roots.sys, online(roots.sys)))
    columns = {channel("cpu.smi", name): [(cpu, event)] for name, cpu in firsts.items()}
    return CountingPlan([(cpu, [event]) for cpu in firsts.values()], columns)


def _device(roots: Roots) -> PmuDevice:
    device = pmu_devices(roots.sys).get("msr")
    if device is None:
        raise Unsupported("there is no msr PMU; only x86 has one")
    return device


def _events(device: PmuDevice, names: Sequence[str]) -> dict[str, PerfEvent]:
    found = {name: device.named(name) for name in names}
    return {name: named.event for name, named in found.items() if named is not None}
