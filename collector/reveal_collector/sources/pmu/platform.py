"""Parts of a vendor's table, and the selection of the row for a CPU."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from reveal_collector.readers.sysfs_attributes import parse_fields


@dataclass(frozen=True)
class CpuModel:
    """A CPU as /proc/cpuinfo names it.

    x86: vendor_id, cpu family, model.  Arm: CPU implementer (as vendor, ``0x41``), CPU part
    (as model) and 0 for the family.
    """

    vendor: str
    family: int
    model: int


@dataclass(frozen=True)
class Count:
    """An event; its count times ``scale`` is in the unit of the metric."""

    event: str
    scale: float = 1.0


@dataclass(frozen=True)
class Platform:
    """CPUs with the same events.

    ``models`` are those within ``families`` (empty: all).  ``counters`` is the number of counters
    that one thread can program while its sibling counts, too.  Metrics in ``fixed`` need none of
    them.  ``pmu`` is the core type of a hybrid CPU, "" if all cores are alike.
    """

    name: str
    vendor: str
    families: frozenset[int]
    models: frozenset[int]
    counters: int
    events: Mapping[str, Count]
    fixed: frozenset[str] = frozenset()
    pmu: str = ""

    def matches(self, cpu: CpuModel, pmu: str = "") -> bool:
        return (
            cpu.vendor == self.vendor
            and cpu.family in self.families
            and (not self.models or cpu.model in self.models)
            and pmu == self.pmu
        )


# Events that the kernel maps for every PMU it knows (PERF_TYPE_HARDWARE, perf_event_open(2))
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


def choose(platforms: Iterable[Platform], cpu: CpuModel, pmu: str = "") -> Platform:
    """Return the first platform that matches, else one with the events that every PMU has."""
    for platform in platforms:
        if platform.matches(cpu, pmu):
            return platform
    return Platform("generic", cpu.vendor, frozenset(), frozenset(), 2, CORE)


def pack(platform: Platform, names: Sequence[str], reserved: int = 0) -> list[list[str]]:
    """Return the metrics in groups that fit into the counters that are not ``reserved``.

    The hard lockup watchdog reserves the fixed counter of cycles, so cycles then need a general
    one.  Therefore, with a reserved counter, fixed metrics count as general ones.
    """
    fixed = frozenset() if reserved else platform.fixed
    available = max(platform.counters - reserved, 1)
    groups: list[list[str]] = []
    free = 0
    for name in names:
        needed = 0 if name in fixed else 1
        if not groups or needed > free:
            groups.append([])
            free = available
        groups[-1].append(name)
        free -= needed
    return groups


def cpus(cpuinfo: str) -> dict[int, CpuModel]:
    """Return the models of the CPUs in /proc/cpuinfo by number; x86 and Arm only."""
    found: dict[int, CpuModel] = {}
    for block in cpuinfo.split("\n\n"):
        fields = parse_fields(block)
        try:
            found[int(fields["processor"])] = _cpu(fields)
        except (KeyError, ValueError):
            continue
    return found


def _cpu(fields: Mapping[str, str]) -> CpuModel:
    if "CPU part" in fields:
        return CpuModel(fields["CPU implementer"], 0, int(fields["CPU part"], 16))
    return CpuModel(fields["vendor_id"], int(fields["cpu family"]), int(fields["model"]))
