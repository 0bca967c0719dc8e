"""What nodes are compared by: which level of a metric stands for a node, and what of it hurts.

*Standing* levels are set up, not caused by work: they are compared whatever the nodes run.  All
others follow the load: they are compared among nodes with the same work only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache

from reveal_contract import catalogue
from reveal_contract.metric import Harm, Kind, Lane, Metric, Scope, Subsystem

IDLE_PAGES = "memory.hugepages.free"
PROMISED_PAGES = "memory.hugepages.reserved"
STEP = "job.step"

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
# a pool in use harms nobody; which interfaces a node has is decided by its pods
_NOT_COMPARED = ("memory.huge_pages_total", "network.nic.up", "network.nic.speed")
_ADDED_UP = ("bytes", "pages", "tasks", "packets", "requests", "connections", "sockets", "events")


# no channel and no column: what the heartbeat reads of a job
_READ = {
    STEP: Metric(
        STEP, "ns", Kind.GAUGE, Subsystem.CPU, Scope.SUBJECT, "heartbeat", Lane.DERIVED,
        "step time", "Time a step of the job takes, read from its rhythm", 1e6, Harm.HIGHER,
    ),
}  # fmt: skip


class Fold(Enum):
    """How the instances of a metric (disks, ports, NUMA nodes) become one level of a node."""

    TOTAL = "total"
    LARGEST = "largest"
    LEAST = "least"


@dataclass(frozen=True, slots=True)
class Measure:
    """A metric as nodes are compared by it; ``sign`` is 1 where more hurts, -1 where less does.

    0 is activity: it explains, and decides nothing.
    """

    row: Metric
    sign: int
    standing: bool


@cache
def measure(name: str) -> Measure | None:
    """How a metric is compared; ``None`` for one this version's catalogue does not have."""
    try:
        row = _READ.get(name) or catalogue.find(name)
    except catalogue.UnknownMetricError:
        return None
    standing = name in STANDING
    row = replace(row, harm=STANDING.get(name, row.harm))
    sign = {Harm.HIGHER: 1, Harm.LOWER: -1, Harm.NEITHER: 0}[row.harm]
    left_out = name in _NOT_COMPARED or (row.vote in _NOT_COMPARED and not standing)
    return Measure(row, 0 if left_out else sign, standing)


@cache
def fold(name: str) -> Fold:
    """The instance that hurts most speaks for the node; what adds up is added up."""
    row = catalogue.find(name)
    if STANDING.get(name, row.harm) is Harm.LOWER:
        return Fold.LEAST
    if row.scope is Scope.CPU:
        return Fold.LARGEST  # it was folded so already
    return Fold.TOTAL if row.kind is Kind.COUNTER or row.unit in _ADDED_UP else Fold.LARGEST
