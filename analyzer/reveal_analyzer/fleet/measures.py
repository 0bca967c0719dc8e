"""Metrics that nodes are compared by: their level per node, and the direction that does harm.

*Standing* levels are set up and do not follow the load: they are compared whatever the nodes run.
All others follow the load and are compared only among nodes with the same workload.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache

from reveal_analyzer.arrays import Floats
from reveal_analyzer.derive.columns import LEVEL, Column, quanta
from reveal_contract import catalogue
from reveal_contract.metric import Harm, Kind, Lane, Metric, Scope, Subsystem

IDLE_PAGES = "memory.hugepages.free"
PROMISED_PAGES = "memory.hugepages.reserved"
STEP = "job.step"
MEMORY, CPUS = "memory.mem_total", "cpu.online"

STANDING: Mapping[str, Harm] = {
    IDLE_PAGES: Harm.HIGHER,
    "memory.hardware_corrupted": Harm.HIGHER,
    "cpu.online": Harm.LOWER,
    "cpu.frequency.maximum": Harm.LOWER,
    "gpu.count": Harm.LOWER,
    "gpu.power.limit": Harm.LOWER,
    "gpu.pcie.width": Harm.LOWER,
    "gpu.nvlink.active_links": Harm.LOWER,
    "network.pcie.width": Harm.LOWER,
    "network.infiniband.rate": Harm.LOWER,
    "storage.pcie.width": Harm.LOWER,
}
# a pool in use does no harm; the pods of a node decide which interfaces it has
_NOT_COMPARED = ("memory.huge_pages_total", "network.nic.up", "network.nic.speed")
_SUMMED_UNITS = (
    "bytes",
    "pages",
    "tasks",
    "packets",
    "requests",
    "connections",
    "sockets",
    "events",
)


# neither a channel nor a column: the step time that the heartbeat reads of a job
_READ = {
    STEP: Metric(
        STEP, "ns", Kind.GAUGE, Subsystem.CPU, Scope.SUBJECT, "heartbeat", Lane.DERIVED,
        "step time", "Time a step of the job takes, read from its rhythm", 1e6, Harm.HIGHER,
    ),
}  # fmt: skip


class Fold(Enum):
    """How the instances of a metric (disks, ports) are combined to one level per node."""

    TOTAL = "total"
    LARGEST = "largest"
    LEAST = "least"


@dataclass(frozen=True, slots=True)
class Measure:
    """How nodes are compared by a metric.

    ``sign`` is 1 if more does harm, -1 if less does, and 0 for activity, which may explain harm
    and decides nothing.
    """

    row: Metric
    sign: int
    standing: bool


@cache
def measure(name: str) -> Measure | None:
    """Return how a metric is compared; ``None`` if this version's catalogue does not have it."""
    try:
        row = _READ.get(name) or catalogue.find(name)
    except catalogue.UnknownMetricError:
        return None
    standing = name in STANDING
    row = replace(row, harm=STANDING.get(name, row.harm))
    sign = {Harm.HIGHER: 1, Harm.LOWER: -1, Harm.NEITHER: 0}[row.harm]
    left_out = name in _NOT_COMPARED or (row.metric_group in _NOT_COMPARED and not standing)
    return Measure(row, 0 if left_out else sign, standing)


@cache
def fold(name: str) -> Fold:
    """Return how the instances of a metric are combined: to the sum, or to the most harmful one."""
    row = catalogue.find(name)
    if STANDING.get(name, row.harm) is Harm.LOWER:
        return Fold.LEAST
    if row.scope is Scope.CPU:
        return Fold.LARGEST  # its columns are maxima over CPUs already
    return Fold.TOTAL if row.kind is Kind.COUNTER or row.unit in _SUMMED_UNITS else Fold.LARGEST


@dataclass(frozen=True)
class Quanta:
    """Least significant levels of some metrics, which grow with a node's memory and CPUs."""

    absolute: Floats
    of_memory: Floats
    of_cpus: Floats

    @classmethod
    def of(cls, measures: Iterable[Measure]) -> Quanta:
        columns = [Column(each.row, "", LEVEL) for each in measures]
        fixed = quanta(columns, 0.0, 0)
        return cls(fixed, quanta(columns, 1.0, 0) - fixed, quanta(columns, 0.0, 1) - fixed)

    def scaled(self, memory: float, cpus: float) -> Floats:
        """Return the levels for a node with this much memory (bytes) and this many CPUs."""
        levels: Floats = self.absolute + self.of_memory * memory + self.of_cpus * cpus
        return levels
