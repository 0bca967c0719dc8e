"""Vocabulary of the catalogue: the fields of a metric and the values that they take."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from reveal_contract.bounds import BY_UNIT, UNBOUNDED, Bounds


class Kind(StrEnum):
    """Meaning of successive readings of a channel."""

    COUNTER = "counter"  # monotone: only differences have a meaning
    GAUGE = "gauge"  # a level
    STATE = "state"  # a level that takes few values; a change is an event
    RATIO = "ratio"  # a quotient of other channels, computed by the analyzer


class Subsystem(StrEnum):
    """The five areas that a finding is attributed to (paper, section 4.4)."""

    CPU = "CPU"
    GPU = "GPU"
    MEMORY = "Memory"
    NETWORK = "Network"
    STORAGE = "Storage"


class Scope(StrEnum):
    """Entity that one instance of a metric describes; also the label of the instance."""

    NODE = "node"
    CPU = "cpu"
    NUMA = "numa"
    IRQ = "irq"
    NIC = "nic"
    DISK = "disk"
    GPU = "gpu"
    PORT = "port"
    PACKAGE = "package"  # a socket
    STATE = "state"  # an idle state
    SENSOR = "sensor"
    SUBJECT = "subject"  # a pod; off Kubernetes a unit, cgroup or process group
    PAIR = "pair"  # a subject that lost time, and the one that took it


class Lane(StrEnum):
    """How often a channel is read."""

    FAST = "fast"  # every tick (10 Hz)
    SLOW = "slow"  # once a slice (1 Hz), staggered over the ticks
    RARE = "rare"  # every ten seconds; its last value is sent with each slice
    DERIVED = "derived"  # computed by the analyzer, never on the wire


class Harm(StrEnum):
    """Direction in which a change of the metric harms a workload."""

    HIGHER = "higher"
    LOWER = "lower"
    NEITHER = "neither"  # activity: a change is context and never harm


class Role(StrEnum):
    """Features that a metric gets (paper, section 4.2)."""

    DYNAMIC = "dynamic"  # all window features
    EVENT = "event"  # sums over the window
    STATIC = "static"  # compared between nodes only


class Capacity(StrEnum):
    """Capacity of the node that a relative quantum is a share of."""

    ABSOLUTE = ""
    MEMORY = "memory"  # bytes of RAM of the node
    CPUS = "cpus"  # number of online CPUs


@dataclass(frozen=True, slots=True)
class Metric:
    """One row of the catalogue.

    ``quantum`` is the amount that begins to matter: per second for a counter, a level in ``unit``
    for a gauge.  If ``capacity`` is not absolute, it is multiplied by that capacity of the node.
    ``family`` groups metrics that measure the same thing; the live score counts a group once.
    ``weight`` scales the harm of metrics that matter less than others.  ``origin`` is the name
    outside this project (kernel file and field, NVML call, column of a tool).  ``bounds`` are the
    values that a level can have, by default those of its unit.
    """

    name: str
    unit: str
    kind: Kind
    subsystem: Subsystem
    scope: Scope
    source: str
    lane: Lane
    origin: str
    meaning: str
    quantum: float
    harm: Harm = Harm.NEITHER
    weight: float = 1.0
    capacity: Capacity = Capacity.ABSOLUTE
    family: str = ""
    role: Role = Role.DYNAMIC
    bounds: Bounds | None = None

    @property
    def limits(self) -> Bounds:
        """The values that a reading can have; a counter has no limits."""
        if self.kind is Kind.COUNTER:
            return UNBOUNDED
        return self.bounds or BY_UNIT.get(self.unit, UNBOUNDED)

    @property
    def metric_group(self) -> str:
        """The group that the metric counts in: its family, by default the metric alone."""
        return self.family or self.name
