"""Names of the lost-time ledger: where the time of each subject's threads went, and who took it.

A collector ships cumulative counters in ns, once a second.  Each moment in the life of a thread
belongs to exactly one of ``PARTS``, so their increments add up to the increment of ``THREAD_TIME``,
which is counted separately.  A second in which they differ by more than ``TOLERANCE`` lost events
of the kernel and is not to be used (``adds_up``).

Instances of ``ledger.*`` are those of other subject channels.  Two rows have names of their own:
``KERNEL``, the kernel's threads, and ``OTHER``, all subjects that are too small to be named.
Instances of ``PAIRS`` name two subjects, ``victim<culprit``.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import NamedTuple

SOURCE = "ledger"
THREADS_SOURCE = "ledger-threads"  # where BPF programs cannot count
RESOLUTION_NS = 100_000  # of the values on the wire
TOLERANCE = 0.01

KERNEL, OTHER = "kernel", "other"
NAMELESS = (KERNEL, OTHER)  # nobody whom one could move or limit

RUN = "ledger.run"
WAIT_OTHERS, WAIT_SELF = "ledger.wait_others", "ledger.wait_self"
WAIT_IDLE = "ledger.wait_idle"
THROTTLED = "ledger.throttled"
IO_OTHERS, IO_OWN = "ledger.io_others", "ledger.io_own"
MEMORY, IRQ = "ledger.memory", "ledger.irq"
STOLEN = "ledger.stolen"  # derived: the part of RUN in which the hypervisor ran another machine
LOCKED, KILLABLE = "ledger.locked", "ledger.killable"
STOPPED, SLEEP = "ledger.stopped", "ledger.sleep"
THREAD_TIME = "ledger.thread_time"
DISK = "ledger.disk"

# All time but that of sleep: a subject worked, or would have worked.
DESIRED = (
    RUN, WAIT_OTHERS, WAIT_SELF, WAIT_IDLE, THROTTLED, IO_OTHERS, IO_OWN, MEMORY, IRQ, LOCKED,
    STOPPED,
)  # fmt: skip
PARTS = (*DESIRED, KILLABLE, SLEEP)
# Lost to others or to limits; WAIT_SELF, WAIT_IDLE and IO_OWN explain and are never a fault.
LOST = (WAIT_OTHERS, THROTTLED, IO_OTHERS, MEMORY, IRQ, STOPPED, STOLEN)

LOST_CPU, LOST_DISK = "ledger.lost_cpu", "ledger.lost_disk"
TAKEN_CPU, TAKEN_DISK = "ledger.taken_cpu", "ledger.taken_disk"  # derived, by culprit
TAKEN = (TAKEN_CPU, TAKEN_DISK)
STOPPED_SHARE = "ledger.stopped_share"  # derived: of the wanted time, of a subject that works
JUDGED = (*TAKEN, STOPPED_SHARE)  # what certain signatures ask for that the ledger decides
PAIRS = (LOST_CPU, LOST_DISK)  # the largest parts of WAIT_OTHERS and IO_OTHERS, by culprit

WAITS = "ledger.waits"
LONG_WAITS = {1: "ledger.waits_1ms", 10: "ledger.waits_10ms", 100: "ledger.waits_100ms"}

TIER = "ledger.tier"
MISSED, FOLDED, COST = "ledger.missed", "ledger.folded", "ledger.cost"

_SEPARATOR, _QUOTED = "<", "%3C"


class Tier(IntEnum):
    """What the host permits, and with it what the ledger tells."""

    SCHEDSTAT = 0  # run and wait times of the busiest subjects, without culprits
    TASKSTATS = 1  # the same of every subject, with delays that overlap
    BPF = 3  # all parts, exact and disjoint, with culprits


class Pair(NamedTuple):
    """Who lost time, and to whom."""

    victim: str
    culprit: str

    @property
    def instance(self) -> str:
        """The instance of the pair's channels; ``<`` in names (of processes) is quoted."""
        return _SEPARATOR.join(name.replace(_SEPARATOR, _QUOTED) for name in self)


def pair_of(instance: str) -> Pair:
    """Return the two names of an instance; raises ``ValueError`` if it is none of a pair."""
    victim, culprit = instance.split(_SEPARATOR)
    return Pair(victim.replace(_QUOTED, _SEPARATOR), culprit.replace(_QUOTED, _SEPARATOR))


def adds_up(increments: Mapping[str, float]) -> bool:
    """Return whether the parts of one subject in one second add up to its thread time.

    A difference of some units of the resolution, one for each part, is rounding.
    """
    total = sum(increments[part] for part in PARTS)
    allowed = TOLERANCE * increments[THREAD_TIME] + len(PARTS) * RESOLUTION_NS
    return abs(total - increments[THREAD_TIME]) <= allowed
