"""A rhythm that is locked: its period, its reference, and how both follow the job."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from reveal_analyzer.arrays import Floats
from reveal_analyzer.heartbeat import autocorrelation, comb, phase
from reveal_analyzer.heartbeat.acquisition import LEAST_S, RhythmLock
from reveal_analyzer.heartbeat.guards import LEAST_STEPS_KNOWN, is_alias, steps_fit
from reveal_analyzer.heartbeat.presence import Presence, PresenceCheck
from reveal_analyzer.heartbeat.reference import WINDOWS, StepReference, WindowReading
from reveal_analyzer.heartbeat.ring import SPAN_S, RingBuffer
from reveal_analyzer.state.records import restore_record, save_record
from reveal_analyzer.state.tree import StateError, StateTree, flag, number, section

LONG_PERIOD_S = 2.5  # a longer step has too few periods for its phase
_FEW_STEPS = 2.5  # in the values that one step is read from
_NEAR, _NEAR_WHOLE = 1.4, 1.1  # of the period: where a longer step is searched
_SHOWS = 0.4  # of the strength of the lock: needed to believe a slowdown
_AGREEING, _SAME_PERIOD = 3, 0.05  # checks that find the same whole step
_BELOW = 0.9  # of the frequency of the smaller step: the lines below are of the whole step alone
_FAR = 0.15  # a rhythm that moves by more has changed, or was never where it was tracked
_FAR_BETTER = 1.5  # times the autocorrelation: needed to believe that a known step is far longer
_MOST_CHANGE = 0.35  # from the tracked period: reported only after the lock has moved
_SETTLED, _ADAPTATION = 0.06, 0.1  # the tracked period adapts to changes below, by this share
_CLEARLY = 1.5  # times as strong
_CHANGING_S = 20  # before a rhythm is known to have moved, in which it was moving


@dataclass
class TrackedRhythm:
    """State that exists only while a rhythm is locked.

    ``settled_s`` counts the seconds since it last moved or read slower: the ring holds one rhythm
    once they are as many as it spans.  ``jumped`` is for how many seconds the job has had the step
    that it jumped to; ``whole_s`` for how many there has been no gap in its values.
    """

    lock: RhythmLock
    period: float
    presence: PresenceCheck
    reference: StepReference
    age: int = 0
    unread: int = 0  # seconds in a row in which too few values were read
    settled_s: int = SPAN_S
    jumped: int | None = None
    whole_s: int = SPAN_S
    whole_periods: list[float] = field(default_factory=list)
    is_whole: bool = False

    @classmethod
    def begin(cls, lock: RhythmLock, reference: StepReference) -> TrackedRhythm:
        """Return the rhythm of a new lock."""
        return cls(lock, lock.period, PresenceCheck(lock), reference)

    @property
    def windows(self) -> tuple[int, ...]:
        """The windows (s) that enough steps fit into.

        A job that is known may have become so slow that only a few fit into the longest.
        """
        fitting = tuple(window for window in WINDOWS if steps_fit(window, self.period))
        known = self.reference.period and steps_fit(SPAN_S, self.period, LEAST_STEPS_KNOWN)
        return fitting or ((SPAN_S,) if known else ())

    @property
    def least_window(self) -> int:
        """The shortest window (s) that enough steps fit into."""
        return next(iter(self.windows), SPAN_S)

    @property
    def is_by_phase(self) -> bool:
        """Whether the period is read from the phase, else from the autocorrelation."""
        return self.period <= LONG_PERIOD_S

    def periods(self, channels: Sequence[Floats], rate: int) -> dict[int, float]:
        """Return the period over each window that the values fill; the first channel is its own."""
        if self.is_by_phase:
            return phase.periods(channels[0], rate, self.period, self.windows)
        # the autocorrelation of a whole step peaks at multiples of its smaller steps, too
        reach = _NEAR_WHOLE if self.is_whole else _NEAR
        return autocorrelation.periods(channels, rate, self.period, self.windows, reach)

    def save(self) -> StateTree:
        """Return the lock, the period and the reference; checks of the last seconds start again."""
        return {
            "lock": save_record(self.lock),
            "period": self.period,
            "whole": self.is_whole,
            "reference": self.reference.save(),
        }

    @classmethod
    def restored(cls, tree: StateTree) -> TrackedRhythm:
        lock = restore_record(RhythmLock, section(tree, "lock"))
        period = number(tree, "period")
        if min(period, lock.period) <= 0:
            raise StateError("the period of a rhythm must be above 0")
        reference = StepReference.restored(section(tree, "reference"))
        restored = cls.begin(lock, reference)
        restored.period, restored.is_whole = period, flag(tree, "whole")
        return restored

    def pass_by(self, seconds: int) -> None:
        """Note the time."""
        self.whole_s += seconds
        if self.jumped is not None:
            self.jumped += seconds

    def adapt(self, periods: Mapping[int, float]) -> None:
        """Follow a small change; a large one waits until the presence check confirms it."""
        longest = periods[max(periods)]
        if abs(longest / self.period - 1) < _SETTLED:
            self.period += _ADAPTATION * (longest - self.period)

    def shows(self, reading: WindowReading, period: float, ring: RingBuffer) -> bool:
        """Return whether the slower rhythm is in the spectrum: the job may do something else."""
        values = ring.last(reading.window)
        if values is None or abs(period / self.period - 1) > _MOST_CHANGE:
            return False
        strength = comb.strength(comb.spectrum(values, ring.rate), period, self.lock.top)
        return strength >= _SHOWS * min(self.lock.strength, 3 * self.lock.needed)

    def is_present(self, ring: RingBuffer) -> bool:
        """Return whether the rhythm still shows; track it where it moved to."""
        # the lines of whole steps are close together: a short time does not tell them apart
        is_short = steps_fit(LEAST_S, self.period) and not self.is_whole
        values = ring.last(LEAST_S if is_short else SPAN_S)
        if values is None:
            return False
        presence = self.presence.check(
            comb.spectrum(values, ring.rate), self.period, self.reference, is_whole=self.is_whole
        )
        if presence is Presence.MOVED and self._has_moved(
            self.presence.moved_to, values, ring.rate
        ):
            self._move(self.presence.moved_to, ring)
        return presence is not Presence.LOST

    def find_whole_step(self, ring: RingBuffer) -> None:
        """Track the whole step, if the locked one is a part of it.

        A minute that holds two rhythms has a common multiple of both, which is no step.
        """
        values = ring.last()
        is_settled = self.settled_s >= SPAN_S and self.presence.is_certain
        if values is None or ring.seconds < SPAN_S or not is_settled:
            return
        spectrum = comb.spectrum(values, ring.rate)
        fit = comb.slower_fit(spectrum, self.period)
        # short bursts have overtones beyond the sampling, whose aliases are a slow comb
        if fit is None or is_alias(spectrum, fit.period, _BELOW / self.period):
            return
        # some of its parts repeat themselves, too, but less exactly than all of them
        fewer = fit.period - self.period
        if not autocorrelation.repeats_better(values, ring.rate, fit.period, fewer):
            return
        self.whole_periods.append(fit.period)
        same = [p for p in self.whole_periods if abs(p / fit.period - 1) < _SAME_PERIOD]
        if len(same) >= _AGREEING:
            self.period = float(np.median(same))
            self.whole_periods, self.is_whole = [], True
            self.learn_from(ring)

    def learn_from(self, ring: RingBuffer) -> None:
        """Learn a new reference, at once from the seconds that are in the ring."""
        self.reference = StepReference()
        values = ring.last(ring.seconds)
        if values is None:
            return
        for end in range(self.least_window, ring.seconds + 1):
            before = values[: end * ring.rate]
            periods = self.periods([before], ring.rate)
            near = {w: p for w, p in periods.items() if abs(p / self.period - 1) < _SETTLED}
            self.reference.learn(near, float(before.mean()) * ring.rate)

    def learn_steps(self, ring: RingBuffer) -> None:
        """Learn how long single long steps took: all in the ring at first, then the last one."""
        values, least = ring.last(), math.ceil(_FEW_STEPS * self.period)
        if self.is_by_phase or values is None:
            return
        first = ring.seconds if self.reference.has_steps else least
        for end in range(max(least, first), ring.seconds + 1):
            length = autocorrelation.last_step(values[: end * ring.rate], ring.rate, self.period)
            if length is not None:
                self.reference.learn_step(length)

    def _has_moved(self, period: float, values: Floats, rate: int) -> bool:
        """Return whether a far rhythm replaces the present one, which is not there any more.

        A minute with an evaluation and a checkpoint holds few long steps between them, whose lines
        are not clear.  Several steps of a known job repeat themselves nearly as exactly as one; a
        step that became longer leaves nothing that repeats after the shorter one.
        """
        if abs(period / self.period - 1) <= _FAR:
            return True
        if self.reference.period and period > self.period:
            return autocorrelation.repeats_better(values, rate, period, self.period, _FAR_BETTER)
        return self.is_by_phase or autocorrelation.repeats_better(values, rate, period, self.period)

    def _move(self, period: float, ring: RingBuffer) -> None:
        before, self.period = self.period, period
        if abs(period / before - 1) <= _FAR:
            return
        self.settled_s, self.jumped = 0, self._jump_age(before, ring)
        if self._was_wrong(before, ring):
            self.reference = StepReference()
        else:
            self.reference.forget_last(_CHANGING_S)

    def _jump_age(self, before: float, ring: RingBuffer) -> int | None:
        """Return since when a step is there that is too long for readings to follow it."""
        values = ring.last(ring.seconds)
        if values is None or self.period / before <= 1 + _MOST_CHANGE:
            return None
        return round(phase.line_age(values, ring.rate, self.period))

    def _was_wrong(self, before: float, ring: RingBuffer) -> bool:
        """Return whether the period before was wrong: the first half of the ring has this one, too.

        After a gap the ring has only what came after it.
        """
        values = ring.last(ring.seconds)
        if values is None or self.reference.is_learned or self.whole_s < SPAN_S:
            return False
        spectrum = comb.spectrum(values[: len(values) // 2], ring.rate)
        if comb.is_dense(spectrum, self.period):
            return False
        known = comb.strength(spectrum, before, self.lock.top)
        # the comb of a multiple of the period has all of its power, too
        return comb.strength(spectrum, self.period, self.lock.top) > _CLEARLY * known
