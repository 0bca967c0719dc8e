"""The vocabulary of the catalogue: what a metric is and which values its columns take."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """What the successive values of a channel mean."""

    COUNTER = "counter"  # monotone; only differences mean anything
    GAUGE = "gauge"  # a level
    STATE = "state"  # a level that takes few values; a change is an event
    RATIO = "ratio"  # a quotient of other channels, computed by the analyzer


class Subsystem(StrEnum):
    """The five areas a finding is attributed to (paper, section 4.4)."""

    CPU = "CPU"
    GPU = "GPU"
    MEMORY = "Memory"
    NETWORK = "Network"
    STORAGE = "Storage"


class Scope(StrEnum):
    """What one instance of a metric is; also the label of the instance."""

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


class Lane(StrEnum):
    """How often a channel is read."""

    FAST = "fast"  # every tick (10 Hz)
    SLOW = "slow"  # once a slice (1 Hz), staggered over the ticks
    RARE = "rare"  # every ten seconds; its last value is sent with each slice
    DERIVED = "derived"  # computed by the analyzer, never on the wire


class Harm(StrEnum):
    """The direction in which a change of this metric hurts a workload."""

    HIGHER = "higher"
    LOWER = "lower"
    NEITHER = "neither"  # activity: a change is context, never harm


class Role(StrEnum):
    """Which features a metric gets (paper, section 4.2)."""

    DYNAMIC = "dynamic"  # all window features
    EVENT = "event"  # sums over the window
    STATIC = "static"  # compared between nodes only


class Capacity(StrEnum):
    """What a relative quantum is a share of."""

    ABSOLUTE = ""
    MEMORY = "memory"  # bytes of RAM of the node
    CPUS = "cpus"  # number of online CPUs


@dataclass(frozen=True, slots=True)
class Metric:
    """One row of the catalogue.

    ``quantum`` is the smallest amount that matters: per second for a counter, a level in
    ``unit`` for a gauge; times the node's capacity where ``capacity`` is not absolute.
    ``family`` groups metrics of the same quantity: a group counts once in the live score.
    ``weight`` scales the harm of metrics that hurt less than others.  ``origin`` is the name that
    other tools use (kernel file and field, NVML call, tool column).
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

    @property
    def metric_group(self) -> str:
        """The group of metrics that count once together; its own name for a single metric."""
        return self.family or self.name
