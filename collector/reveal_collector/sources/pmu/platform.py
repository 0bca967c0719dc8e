"""What a vendor's table is made of, and which of its rows is this CPU's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from reveal_collector.readers.sysfs_attributes import parse_fields


@dataclass(frozen=True)
class Cpu:
    """A CPU as /proc/cpuinfo names it.

    x86: vendor_id, cpu family, model.  Arm: CPU implementer (as vendor, ``0x41``), CPU part
    (as model) and 0 for the family.
    """

    vendor: str
    family: int
    model: int


@dataclass(frozen=True)
class Count:
    """An event; its count times ``scale`` is in the metric's unit."""

    event: str
    scale: float = 1.0


@dataclass(frozen=True)
class Platform:
    """CPUs that count alike.

    ``models`` are theirs within ``families`` (none: all).  ``counters`` can be programmed
    for one thread when its sibling counts too; what stands in ``fixed`` needs none of them.
    ``pmu`` is the core type of hybrid CPUs, "" where all cores are alike.
    """

    name: str
    vendor: str
    families: frozenset[int]
    models: frozenset[int]
    counters: int
    events: Mapping[str, Count]
    fixed: frozenset[str] = frozenset()
    pmu: str = ""

    def fits(self, cpu: Cpu, pmu: str = "") -> bool:
        return (
            cpu.vendor == self.vendor
            and cpu.family in self.families
            and (not self.models or cpu.model in self.models)
            and pmu == self.pmu
        )


# What the kernel maps for every PMU it knows (PERF_TYPE_HARDWARE, perf_event_open(2))
GENERIC = {
    "cpu-cycles": 0,
    "instructions": 1,
    "cache-references": 2,
    "cache-misses": 3,
    "branches": 4,
    "branch-misses": 5,
}
CORE = {
    "cpu.pmu.cycles": Count("cpu-cycles"),
    "cpu.pmu.instructions": Count("instructions"),
    "cpu.pmu.branches": Count("branches"),
    "cpu.pmu.branch_misses": Count("branch-misses"),
}


def choose(platforms: Iterable[Platform], cpu: Cpu, pmu: str = "") -> Platform:
    """The first that fits; else what every PMU counts, in as few counters as any has."""
    for platform in platforms:
        if platform.fits(cpu, pmu):
            return platform
    return Platform("generic", cpu.vendor, frozenset(), frozenset(), 2, CORE)


def pack(platform: Platform, names: Sequence[str], taken: int = 0) -> list[list[str]]:
    """Metrics in groups of which each fits into the counters not ``taken`` by others.

    The watchdog for hard lockups takes the counter of cycles, which then need a general one:
    with a counter taken, fixed ones are counted as general.
    """
    fixed = frozenset() if taken else platform.fixed
    room = max(platform.counters - taken, 1)
    groups: list[list[str]] = []
    left = 0
    for name in names:
        needs = 0 if name in fixed else 1
        if not groups or needs > left:
            groups.append([])
            left = room
        groups[-1].append(name)
        left -= needs
    return groups


def cpus(cpuinfo: str) -> dict[int, Cpu]:
    """CPU number -> what it is, from /proc/cpuinfo of x86 or Arm; others are left out."""
    found: dict[int, Cpu] = {}
    for block in cpuinfo.split("\n\n"):
        told = parse_fields(block)
        try:
            found[int(told["processor"])] = _cpu(told)
        except (KeyError, ValueError):
            continue
    return found


def _cpu(told: Mapping[str, str]) -> Cpu:
    if "CPU part" in told:
        return Cpu(told["CPU implementer"], 0, int(told["CPU part"], 16))
    return Cpu(told["vendor_id"], int(told["cpu family"]), int(told["model"]))
