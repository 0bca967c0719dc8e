"""Step time of one job: search of its rhythm, lock, and comparison with its first minutes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from reveal_analyzer.arrays import Floats
from reveal_analyzer.heartbeat import autocorrelation, comb, phase
from reveal_analyzer.heartbeat.acquisition import (
    LEAST_S,
    SEARCH_INTERVAL_S,
    TIMER,
    RhythmLock,
    RhythmSearch,
)
from reveal_analyzer.heartbeat.guards import is_same_rhythm, steps_fit
from reveal_analyzer.heartbeat.presence import Presence, PresenceCheck
from reveal_analyzer.heartbeat.reference import WINDOWS, StepReference, WindowReading
from reveal_analyzer.heartbeat.ring import SPAN_S, RingBuffer
from reveal_analyzer.state.records import restore_record, save_record
from reveal_analyzer.state.tree import StateError, StateTree, flag, number, section

_LONG_PERIOD_S = 2.5  # a longer step has too few periods for its phase
_CHECK_INTERVAL_S = 5
_SHOWS = 0.4  # of the strength of the lock: needed to believe a slowdown
_AGREEING, _SAME_PERIOD = 3, 0.05  # checks that find the same whole step
_UNSETTLED = 0.15  # moved by more while the reference is learned: learn it again
_MOST_CHANGE = 0.35  # from the tracked period: reported only after the lock has moved
_SETTLED, _ADAPTATION = 0.06, 0.1  # the tracked period adapts to changes below, by this share
_REFUSED_S = 300
_SAME_JOB_S = 60  # seconds with values; a lock that was lost for no longer keeps its reference
_MOST_UNREAD_S = 60  # without readable values; then the lock is lost
CHANGING = "its rhythm is changing"
UNREAD = "its counter is no longer read"


@dataclass(frozen=True)
class StepTime:
    """A tracked rhythm, periods in s; there are no readings while the reference is learned."""

    period: float
    reference: float
    channel: str
    strength: float
    readings: tuple[WindowReading, ...] = ()

    @property
    def slower(self) -> bool:
        """Whether a window shows a slowdown; the slowdown may be over already."""
        return self.slowest is not None

    @property
    def slowest(self) -> WindowReading | None:
        """The shortest window with a slowdown that no shorter window contradicts."""
        for reading in self.readings:
            shorter = (other for other in self.readings if other.window < reading.window)
            if reading.slower and all(other.percent > reading.level / 2 for other in shorter):
                return reading
        return None


@dataclass
class _Tracked:
    """State that exists only while a rhythm is locked."""

    lock: RhythmLock
    period: float
    presence: PresenceCheck
    reference: StepReference
    age: int = 0
    unread: int = 0  # seconds in a row in which too few values were read
    whole_periods: list[float] = field(default_factory=list)
    is_whole: bool = False

    @property
    def least_window(self) -> int:
        """The shortest window (s) that enough steps fit into."""
        return next((w for w in WINDOWS if steps_fit(w, self.period)), SPAN_S)

    def save(self) -> StateTree:
        """Return the lock, the period and the reference; checks of the last seconds start again."""
        return {
            "lock": save_record(self.lock),
            "period": self.period,
            "whole": self.is_whole,
            "reference": self.reference.save(),
        }

    @classmethod
    def restored(cls, tree: StateTree) -> _Tracked:
        lock = restore_record(RhythmLock, section(tree, "lock"))
        period = number(tree, "period")
        if min(period, lock.period) <= 0:
            raise StateError("the period of a rhythm must be above 0")
        reference = StepReference.restored(section(tree, "reference"))
        return cls(lock, period, PresenceCheck(lock), reference, is_whole=flag(tree, "whole"))


@dataclass
class _LostLock:
    """What was tracked until a lock was lost."""

    clock: int
    channel: str
    reference: StepReference


class RhythmTracker:
    """Tracks the step time of one job.

    ``reason`` says why there are no readings; it is empty if there are.  ``offset`` spreads the
    searches of a node's jobs over the seconds.
    """

    def __init__(self, offset: int = 0) -> None:
        self.reason = "it has been watched too briefly"
        self._rings: dict[str, RingBuffer] = {}
        self._search = RhythmSearch(LEAST_S + offset % SEARCH_INTERVAL_S)
        self._tracked: _Tracked | None = None
        self._clock = 0
        self._lost: _LostLock | None = None

    @property
    def is_unread(self) -> bool:
        """Whether a rhythm is locked and too few of its values were read in the last seconds."""
        return self._tracked is not None and self._tracked.unread > 0

    def save(self) -> StateTree | None:
        """Return the lock and its reference; ``None`` if there is no lock."""
        return self._tracked.save() if self._tracked else None

    @classmethod
    def restored(cls, tree: StateTree) -> RhythmTracker:
        """Return a tracker with a saved lock, which has no values yet."""
        tracker = cls()
        tracker._tracked = _Tracked.restored(tree)
        tracker._tracked.unread = 1
        return tracker

    def skip(self, seconds: int) -> None:
        """Note seconds of which no slice arrived."""
        for ring in self._rings.values():
            ring.skip(seconds)
        if self._tracked is not None:
            self._count_unread(self._tracked, seconds)

    def update(self, second: Mapping[str, Floats], *, learn: bool = True) -> StepTime | None:
        """Add one second of the job's counters: increments on an even grid.

        ``learn`` is false during an alarm: then the reference does not change.
        """
        self._clock += bool(second)
        self._push(second)
        if self._tracked is None:
            self._tracked = self._acquire()
        tracked = self._tracked
        if tracked is None:
            return None
        periods = self._read(tracked, learn=learn)
        if not periods:
            return None
        longest = periods[max(periods)]
        # a small change is adapted to; a large one waits until the presence check confirms it
        if abs(longest / tracked.period - 1) < _SETTLED:
            tracked.period += _ADAPTATION * (longest - tracked.period)
        return self._step_time(tracked, periods, learn)

    def _push(self, second: Mapping[str, Floats]) -> None:
        for name, values in second.items():
            ring = self._rings.get(name)
            if ring is None or ring.rate != len(values):
                ring = self._rings[name] = RingBuffer(len(values))
            ring.push(values)
        for name, ring in self._rings.items():
            if name not in second:
                ring.push(np.full(ring.rate, np.nan))

    def _acquire(self) -> _Tracked | None:
        """Continue the search; a rhythm that returns soon keeps its reference."""
        lock = self._search.update(self._rings)
        if any(ring.seconds >= LEAST_S for ring in self._rings.values()):
            self.reason = self._search.reason
        if lock is None:
            return None
        lost, self._lost = self._lost, None
        reference = lost.reference if lost and self._is_back(lost, lock) else StepReference()
        return _Tracked(lock, lock.period, PresenceCheck(lock), reference)

    def _is_back(self, lost: _LostLock, lock: RhythmLock) -> bool:
        if self._clock - lost.clock > _SAME_JOB_S or lost.channel != lock.channel:
            return False
        return is_same_rhythm(lock.period, lost.reference.period)

    def _read(self, tracked: _Tracked, *, learn: bool) -> dict[int, float]:
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
        self, tracked: _Tracked, ring: RingBuffer, values: Floats | None, *, learn: bool
    ) -> bool:
        """Return whether the rhythm still shows; every few seconds its spectrum is checked."""
        tracked.age += 1
        if values is None:  # all are equal
            return False
        if tracked.age % _CHECK_INTERVAL_S:
            return True
        if not _check_presence(tracked, ring, learn=learn):
            return False
        if not tracked.reference.period:
            _find_whole_step(tracked, ring)
        return True

    def _periods(self, tracked: _Tracked, ring: RingBuffer, values: Floats) -> dict[int, float]:
        windows = tuple(window for window in WINDOWS if steps_fit(window, tracked.period))
        # the autocorrelation of a whole step peaks at multiples of its smaller steps, too
        if tracked.is_whole or tracked.period <= _LONG_PERIOD_S:
            return phase.periods(values, ring.rate, tracked.period, windows)
        shared = (self._rings[name] for name in tracked.lock.shared if name in self._rings)
        known = [other.last() for other in shared if other.rate == ring.rate]
        return autocorrelation.periods(
            [values for values in known if values is not None], ring.rate, tracked.period, windows
        )

    def _count_unread(self, tracked: _Tracked, seconds: int) -> None:
        """Count seconds without readable values; values that are missing end no rhythm at once."""
        tracked.unread += seconds
        self.reason = UNREAD
        # after the gap, the shortest window must fill again
        if tracked.unread > _MOST_UNREAD_S + tracked.least_window:
            self._lose(tracked, UNREAD)

    def _lose(self, tracked: _Tracked, reason: str) -> None:
        if tracked.reference.period:
            self._lost = _LostLock(self._clock, tracked.lock.channel, tracked.reference)
        self._tracked, self.reason, self._search = None, reason, RhythmSearch()

    def _refuse_timer(self) -> None:
        """Leave a job alone for a while that a timer paces."""
        self._tracked, self.reason = None, TIMER
        self._search = RhythmSearch(_REFUSED_S, TIMER)

    def _step_time(
        self, tracked: _Tracked, periods: dict[int, float], learn: bool
    ) -> StepTime | None:
        reference = tracked.reference
        readings = reference.readings(periods)
        # a slow second is no example of the job's healthy step time
        if learn and not any(reading.slower for reading in readings):
            reference.learn(periods)
        if reference.is_timer():
            self._refuse_timer()
            return None
        self.reason = reference.unreadable_reason()
        channel, strength = tracked.lock.channel, tracked.presence.strength
        baseline = reference.period or tracked.period
        step = StepTime(tracked.period, baseline, channel, strength, readings)
        if step.slowest is None or self._shows(tracked, step.slowest, periods):
            return step
        self.reason = CHANGING
        return StepTime(tracked.period, baseline, channel, strength)

    def _shows(self, tracked: _Tracked, reading: WindowReading, periods: dict[int, float]) -> bool:
        """Return whether the slower rhythm is in the spectrum: the job may do something else."""
        lock = tracked.lock
        ring = self._rings[lock.channel]
        values = ring.last(reading.window)
        period = periods[reading.window]
        if values is None or abs(period / tracked.period - 1) > _MOST_CHANGE:
            return False
        strength = comb.strength(comb.spectrum(values, ring.rate), period, lock.top)
        return strength >= _SHOWS * min(lock.strength, 3 * lock.needed)


def _check_presence(tracked: _Tracked, ring: RingBuffer, *, learn: bool) -> bool:
    """Return whether the rhythm still shows; track it where it moved to."""
    values = ring.last(LEAST_S if steps_fit(LEAST_S, tracked.period) else SPAN_S)
    if values is None:
        return False
    presence = tracked.presence.check(
        comb.spectrum(values, ring.rate),
        tracked.period,
        has_reference=bool(tracked.reference.period),
        is_whole=tracked.is_whole,
    )
    if presence is Presence.MOVED:
        _move(tracked, tracked.presence.moved_to, learn=learn)
    return presence is not Presence.LOST


def _move(tracked: _Tracked, period: float, *, learn: bool) -> None:
    far = abs(period / tracked.period - 1) > _UNSETTLED
    tracked.period = period
    # a learned reference stays: the move may be the slowdown; so does any while nothing is learned
    if far and learn and not tracked.reference.is_learned:
        tracked.reference = StepReference()


def _find_whole_step(tracked: _Tracked, ring: RingBuffer) -> None:
    """Track the whole step, if the locked one is a part of it; before anything is learned."""
    values = ring.last()
    if values is None or ring.seconds < SPAN_S:
        return
    fit = comb.slower_fit(comb.spectrum(values, ring.rate), tracked.period)
    if fit is None:
        return
    tracked.whole_periods.append(fit.period)
    same = [p for p in tracked.whole_periods if abs(p / fit.period - 1) < _SAME_PERIOD]
    if len(same) >= _AGREEING:
        tracked.period = float(np.median(same))
        tracked.whole_periods, tracked.is_whole = [], True
        tracked.reference = StepReference()
