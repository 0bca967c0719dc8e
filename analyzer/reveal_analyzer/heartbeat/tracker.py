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

_LONG_PERIOD_S = 2.5  # a longer step has too few periods for its phase
_CHECK_INTERVAL_S = 5
_SHOWS = 0.4  # of the strength of the lock: needed to believe a slowdown
_AGREEING, _SAME_PERIOD = 3, 0.05  # checks that find the same whole step
_UNSETTLED = 0.15  # moved by more while the reference is learned: learn it again
_MOST_CHANGE = 0.35  # from the tracked period: reported only after the lock has moved
_SETTLED, _ADAPTATION = 0.06, 0.1  # the tracked period adapts to changes below, by this share
_REFUSED_S = 300
_SAME_JOB_S = 60  # a lock that was lost for no longer keeps its reference
CHANGING = "its rhythm is changing"


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
    whole_periods: list[float] = field(default_factory=list)
    is_whole: bool = False


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

    def update(self, second: Mapping[str, Floats], *, learn: bool = True) -> StepTime | None:
        """Add one second of the job's counters: increments on an even grid.

        ``learn`` is false during an alarm: then the reference does not change.
        """
        self._clock += 1
        self._push(second)
        if self._tracked is None:
            self._tracked = self._acquire()
        tracked = self._tracked
        if tracked is None:
            return None
        periods = self._read(tracked)
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

    def _read(self, tracked: _Tracked) -> dict[int, float]:
        """Return the period over each window that enough steps fit into; {} if the lock is lost."""
        ring = self._rings[tracked.lock.channel]
        values = ring.last()
        if values is None:
            self._lose(tracked, "its counter is no longer read")
            return {}
        tracked.age += 1
        if tracked.age % _CHECK_INTERVAL_S == 0:
            if not _check_presence(tracked, ring):
                self._lose(tracked, "its rhythm was lost")
                return {}
            if not tracked.reference.period:
                _find_whole_step(tracked, ring)
        windows = tuple(window for window in WINDOWS if steps_fit(window, tracked.period))
        # the autocorrelation of a whole step peaks at multiples of its smaller steps, too
        if tracked.is_whole or tracked.period <= _LONG_PERIOD_S:
            return phase.periods(values, ring.rate, tracked.period, windows)
        shared = (self._rings[name] for name in tracked.lock.shared)
        known = [other.last() for other in shared if other.rate == ring.rate]
        return autocorrelation.periods(
            [values for values in known if values is not None], ring.rate, tracked.period, windows
        )

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


def _check_presence(tracked: _Tracked, ring: RingBuffer) -> bool:
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
        _move(tracked, tracked.presence.moved_to)
    return presence is not Presence.LOST


def _move(tracked: _Tracked, period: float) -> None:
    far = abs(period / tracked.period - 1) > _UNSETTLED
    tracked.period = period
    # a learned reference stays: the move may be the slowdown
    if far and not tracked.reference.is_learned:
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
