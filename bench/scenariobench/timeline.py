"""What a timeline is made of: spans of faults, disturbances of the stream, events of the analyzer.

All times are seconds of the timeline, from its first slice.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from zlib import crc32

from reveal_contract.metric import Subsystem
from scenariobench.clip import Clip

WARMUP_S = 90  # healthy seconds before anything happens
SETTLE_S = 12.0  # after a fault the host settles: what opens then is neither right nor false


@dataclass(frozen=True)
class Span:
    """A fault from ``start`` on for ``seconds``.

    ``layered`` adds the differences of the clip to the seconds below it; otherwise the seconds of
    the clip are played themselves, and no other span may be played at the same time.
    """

    clip: Clip
    start: int
    seconds: int
    layered: bool = False

    @property
    def onset(self) -> float:
        fault = self.clip.fault
        assert fault is not None
        return self.start + fault.onset % 1

    @property
    def end(self) -> float:
        fault = self.clip.fault
        assert fault is not None
        return self.start + self.seconds + fault.offset % 1


class DisturbanceKind(StrEnum):
    MISSING = "missing"  # channels without a value: a source that broke, a driver that hangs
    GONE = "gone"  # channels that leave the table: a device that was removed
    GAP = "gap"  # slices that never arrive
    CLOCK = "clock"  # the wall clock is set
    AWAY = "away"  # the node is down, and boots again


@dataclass(frozen=True)
class Disturbance:
    """One disturbance of the stream.

    ``channels`` are beginnings of channel labels (``metric`` or ``metric{instance}``), or an
    instance behind ``@``.  ``step_s`` is by how much the clock is set.
    """

    kind: DisturbanceKind
    start: int
    seconds: int = 0  # 0: until the end
    channels: tuple[str, ...] = ()
    step_s: int = 0

    @property
    def stop(self) -> float:
        return self.start + self.seconds if self.seconds else float("inf")

    def covers(self, second: int) -> bool:
        return self.start <= second < self.stop


class AnalyzerChange(StrEnum):
    KILL = "kill"  # SIGKILL, and another one eight seconds later
    ROLL = "roll"  # another one starts, then SIGTERM
    SCALE = "scale"  # 1 -> 2 -> 1, and the node moves both times
    PATCH = "patch"  # as ROLL, with other settings


@dataclass(frozen=True)
class AnalyzerEvent:
    change: AnalyzerChange
    second: int


@dataclass(frozen=True)
class Truth:
    """One fault as it should be reported.

    ``causes`` are the names of hypotheses that are right, none where a score without a cause is
    right, too.  ``culprits`` are the names of pods that may come first; none where no process is
    at fault.  ``end`` is the last moment in which it can be observed.
    ``unobserved``: the evidence ends before the fault does, so the finding has to say so.
    ``reports`` is the number of findings that are right: two where the node was not observed for so
    long that the fault is another one.
    """

    name: str
    subsystems: frozenset[Subsystem]
    causes: frozenset[str]
    culprits: frozenset[str]
    onset: float
    end: float
    unobserved: bool = False
    resolve_within: float = 30.0
    open_within: float = 6.0
    reports: tuple[int, ...] = (1,)
    lasting: bool = False


@dataclass(frozen=True)
class Timeline:
    """One timeline; ``base`` are the healthy clips that its quiet seconds come from."""

    row: str
    name: str
    seed: int
    seconds: int
    base: tuple[Clip, ...]
    spans: tuple[Span, ...] = ()
    truths: tuple[Truth, ...] = ()
    disturbances: tuple[Disturbance, ...] = ()
    events: tuple[AnalyzerEvent, ...] = field(default=())

    @property
    def label(self) -> str:
        return f"{self.row}/{self.name}"

    @cached_property
    def node(self) -> str:
        """Name of the node.

        Analyzers save a node first some seconds after its first slice, up to a minute, by a hash
        of its name.  One that is to be killed gets a name that is saved soon.
        """
        name = f"{self.row}-{self.name}".lower().replace("_", "-").replace(" ", "-")
        if not any(event.change is AnalyzerChange.KILL for event in self.events):
            return name
        return next(
            candidate
            for number in range(10_000)
            if 1 <= crc32((candidate := f"{name}-{number}").encode()) % 60 <= 3
        )
