"""Step time of one job: search of its rhythm, lock, and comparison with its first minutes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from reveal_analyzer.arrays import Floats
from reveal_analyzer.heartbeat.acquisition import (
    LEAST_S,
    SEARCH_INTERVAL_S,
    TIMER,
    RhythmSearch,
)
from reveal_analyzer.heartbeat.comb import LONGEST_S
from reveal_analyzer.heartbeat.pause import PauseWatch
from reveal_analyzer.heartbeat.reference import StepReference, WindowReading
from reveal_analyzer.heartbeat.ring import RingBuffer
from reveal_analyzer.heartbeat.tracked import TrackedRhythm
from reveal_analyzer.state.tree import StateTree

_CHECK_INTERVAL_S = 5
_REFUSED_S = 300
_SAME_JOB_S = 180  # seconds with values; a lock that was lost for no longer keeps its reference
_MOST_UNREAD_S = 60  # without readable values; then the lock is lost
_FASTER_S = 600  # in a row; then the job's step time is the shorter one
CHANGING = "its rhythm is changing"
UNREAD = "its counter is no longer read"


@dataclass(frozen=True)
class StepTime:
    """A tracked rhythm, periods in s; there are no readings while the reference is learned.

    ``resumed`` is for how many seconds the job has been back from its last pause, if it made one;
    ``jumped`` for how many it has had its present step, if that became far longer at once.
    ``is_certain`` is whether the spectrum has the rhythm where it is read.
    """

    period: float
    reference: float
    channel: str
    strength: float
    readings: tuple[WindowReading, ...] = ()
    resumed: int | None = None
    jumped: int | None = None
    is_certain: bool = True

    @property
    def slower(self) -> bool:
        """Whether a window shows a slowdown; the slowdown may be over already."""
        return self.slowest is not None

    @property
    def faster(self) -> bool:
        """Whether the longest window shows a clear speed-up."""
        return bool(self.readings) and self.readings[-1].percent < -self.readings[-1].level

    @property
    def slowest(self) -> WindowReading | None:
        """The shortest window with a slowdown that neither shorter ones nor the next contradict.

        What a job does now and then disturbs the few steps of one window.  A slowdown lasts, and
        also begins to show in the next longer window.
        """
        return next((r for n, r in enumerate(self.readings) if r.slower and self._agrees(n)), None)

    def _agrees(self, number: int) -> bool:
        """Return whether the windows beside one, which is slower, show at least half of it."""
        shorter, level = self.readings[:number], self.readings[number].level
        longer = self.readings[number + 1 : number + 2]
        return all(other.percent > level / 2 for other in shorter) and all(
            other.percent > other.level / 2 for other in longer
        )


@dataclass
class _LostLock:
    """What was tracked until a lock was lost; ``paused``: its values were read all the time."""

    clock: int
    channel: str
    period: float
    reference: StepReference
    paused: bool


class RhythmTracker:
    """Tracks the step time of one job.

    ``reason`` says why there are no readings; it is empty if there are.  ``offset`` spreads the
    searches of a node's jobs over the seconds.
    """

    def __init__(self, offset: int = 0) -> None:
        self.reason = "it has been watched too briefly"
        self._rings: dict[str, RingBuffer] = {}
        self._search = RhythmSearch(LEAST_S + offset % SEARCH_INTERVAL_S)
        self._tracked: TrackedRhythm | None = None
        self._clock = 0
        self._lost: _LostLock | None = None
        self._pause = PauseWatch()
        self._faster = 0  # seconds in a row

    @property
    def is_unread(self) -> bool:
        """Whether a rhythm is locked and too few of its values were read in the last seconds."""
        return self._tracked is not None and self._tracked.unread > 0

    @property
    def is_read(self) -> bool:
        """Whether the job has a step time that slowdowns are measured against, or had it lately."""
        if self._tracked is None:
            return self._may_return()
        return bool(self._tracked.reference.period)

    def save(self) -> StateTree | None:
        """Return the lock and its reference; ``None`` if there is no lock."""
        return self._tracked.save() if self._tracked else None

    @classmethod
    def restored(cls, tree: StateTree) -> RhythmTracker:
        """Return a tracker with a saved lock, which has no values yet."""
        tracker = cls()
        tracker._tracked = TrackedRhythm.restored(tree)
        tracker._tracked.unread = 1
        return tracker

    def skip(self, seconds: int) -> None:
        """Note seconds of which no slice arrived."""
        for ring in self._rings.values():
            ring.skip(seconds)
        if self._tracked is not None:
            self._tracked.pass_by(seconds)
            self._count_unread(self._tracked, seconds)

    def accept(self) -> None:
        """Take the present step time for the reference."""
        if self._tracked is not None:
            self._tracked.learn_from(self._rings[self._tracked.lock.channel])
        self._faster = 0

    def update(self, second: Mapping[str, Floats], *, learn: bool = True) -> StepTime | None:
        """Add one second of the job's counters: increments on an even grid.

        ``learn`` is false during an alarm: then the reference does not change.
        """
        self._clock += bool(second)
        self._push(second)
        if self._tracked is None:
            self._await_return(second)
            self._tracked = self._acquire(learn=learn)
        tracked = self._tracked
        if tracked is None:
            if self._lost and self._lost.paused:
                self._pause.note()
            return None
        tracked.pass_by(1)
        self._watch_pauses(second, tracked.lock.channel, tracked.reference, tracked.period)
        periods = self._read(tracked, learn=learn)
        if not periods:
            return None
        tracked.adapt(periods)
        step = self._step_time(tracked, periods, learn=learn)
        self._follow_speed_up(step)
        return step

    def _push(self, second: Mapping[str, Floats]) -> None:
        for name, values in second.items():
            ring = self._rings.get(name)
            if ring is None or ring.rate != len(values):
                ring = self._rings[name] = RingBuffer(len(values))
            ring.push(values)
        for name, ring in self._rings.items():
            if name not in second:
                ring.push(np.full(ring.rate, np.nan))

    def _watch_pauses(
        self, second: Mapping[str, Floats], channel: str, reference: StepReference, period: float
    ) -> None:
        values = second.get(channel)
        is_read = values is not None and not np.isnan(values).any()
        work = float(values.sum()) if is_read and values is not None else None
        self._pause.update(work, reference.work, period)

    def _await_return(self, second: Mapping[str, Floats]) -> None:
        """Drop what was read before and in a pause: the rhythm after it is searched alone."""
        lost = self._lost
        if lost is None or not self._may_return():
            return
        self._watch_pauses(second, lost.channel, lost.reference, lost.period)
        if self._pause.is_on:
            for ring in self._rings.values():
                ring.restart()

    def _may_return(self) -> bool:
        """Return whether a lock was lost so lately that its job may come back to it."""
        return self._lost is not None and self._clock - self._lost.clock <= _SAME_JOB_S

    def _acquire(self, *, learn: bool) -> TrackedRhythm | None:
        """Continue the search; a rhythm that returns soon keeps its reference."""
        lock = self._search.update(self._rings)
        if any(ring.seconds >= LEAST_S for ring in self._rings.values()):
            self.reason = self._search.reason
        if lock is None:
            return None
        ring, lost = self._rings[lock.channel], self._lost
        is_back = lost and lost.channel == lock.channel and self._is_back(lost, lock.period, ring)
        self._lost = None
        if lost and is_back:
            return TrackedRhythm.begin(lock, lost.reference)
        if lock.period > LONGEST_S:
            self._search = RhythmSearch()
            return None
        tracked = TrackedRhythm.begin(lock, StepReference())
        if learn:
            tracked.learn_from(ring)
        return tracked

    def _is_back(self, lost: _LostLock, period: float, ring: RingBuffer) -> bool:
        values = ring.last(LEAST_S)
        if values is None or not self._may_return():
            return False
        return lost.reference.may_be(period, float(values.mean()) * ring.rate)

    def _read(self, tracked: TrackedRhythm, *, learn: bool) -> dict[int, float]:
        """Return the period over each window that enough steps fit into; {} if the lock is lost."""
        ring = self._rings.get(tracked.lock.channel)
        least = min(tracked.least_window, LEAST_S)
        span = ring.readable(least) if ring is not None else 0
        if ring is None or span < least:
            self._count_unread(tracked, 1)
            return {}
        # a long step needs more seconds than the check of its rhythm
        tracked.unread = 0 if span >= tracked.least_window else tracked.unread + 1
        values = ring.last(span)
        # a short span after a gap may be a pause of the job: it ends no rhythm
        if ring.seconds >= LEAST_S and not self._check(tracked, ring, values, learn=learn):
            self._lose(tracked, "its rhythm was lost")
            return {}
        return {} if values is None else self._periods(tracked, ring, values)

    def _check(
        self, tracked: TrackedRhythm, ring: RingBuffer, values: Floats | None, *, learn: bool
    ) -> bool:
        """Return whether the rhythm still shows; every few seconds its spectrum is checked."""
        tracked.age += 1
        tracked.settled_s += 1
        if values is None:  # all are equal
            return False
        if tracked.age % _CHECK_INTERVAL_S:
            return True
        if not tracked.is_present(ring):
            return False
        if learn and not tracked.reference.is_learned:
            tracked.find_whole_step(ring)
        return True

    def _periods(
        self, tracked: TrackedRhythm, ring: RingBuffer, values: Floats
    ) -> dict[int, float]:
        lock = tracked.lock
        names = (name for name in lock.shared if name != lock.channel and name in self._rings)
        shared = (self._rings[name] for name in names)
        others = [other.last() for other in shared if other.rate == ring.rate]
        channels = [values, *(other for other in others if other is not None)]
        return tracked.periods(channels, ring.rate)

    def _count_unread(self, tracked: TrackedRhythm, seconds: int) -> None:
        """Count seconds without readable values; values that are missing end no rhythm at once."""
        tracked.unread += seconds
        tracked.whole_s = 0
        self.reason = UNREAD
        # after the gap, the shortest window must fill again
        if tracked.unread > _MOST_UNREAD_S + tracked.least_window:
            self._lose(tracked, UNREAD)

    def _lose(self, tracked: TrackedRhythm, reason: str) -> None:
        if tracked.reference.period:
            self._lost = _LostLock(
                self._clock, tracked.lock.channel, tracked.period, tracked.reference,
                paused=reason != UNREAD,
            )  # fmt: skip
        known = tracked.reference.period
        self._tracked, self.reason, self._search = None, reason, RhythmSearch(known=known)

    def _refuse_timer(self) -> None:
        """Leave a job alone for a while that a timer paces."""
        self._tracked, self.reason = None, TIMER
        self._search = RhythmSearch(_REFUSED_S, TIMER)

    def _step_time(
        self, tracked: TrackedRhythm, periods: dict[int, float], *, learn: bool
    ) -> StepTime | None:
        reference, ring = tracked.reference, self._rings[tracked.lock.channel]
        readings = reference.readings(periods)
        if any(reading.slower for reading in readings):
            tracked.settled_s = 0  # a slow second is no example of the job's healthy step time
        elif learn and tracked.presence.is_certain:
            if not reference.is_learned:
                tracked.learn_steps(ring)
            values = ring.last(min(periods))
            reference.learn(periods, 0.0 if values is None else float(values.mean()) * ring.rate)
        if reference.is_timer():
            self._refuse_timer()
            return None
        self.reason = reference.unreadable_reason()
        channel, strength = tracked.lock.channel, tracked.presence.strength
        baseline, resumed = reference.period or tracked.period, self._pause.resumed
        step = StepTime(
            tracked.period, baseline, channel, strength, readings, resumed, tracked.jumped,
            tracked.presence.is_certain,
        )  # fmt: skip
        if step.slowest is None or tracked.shows(step.slowest, periods[step.slowest.window], ring):
            return step
        self.reason = CHANGING
        return replace(step, readings=())

    def _follow_speed_up(self, step: StepTime | None) -> None:
        """Take a shorter step that lasts for the reference: a slower one is measured against it."""
        self._faster = self._faster + 1 if step is not None and step.faster else 0
        if self._faster >= _FASTER_S:
            self.accept()
