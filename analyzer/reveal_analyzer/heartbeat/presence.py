"""Presence of a locked rhythm: whether it still shows, has moved, or is lost."""

from __future__ import annotations

from enum import Enum, auto

import numpy as np

from reveal_analyzer.heartbeat import comb
from reveal_analyzer.heartbeat.acquisition import RhythmLock
from reveal_analyzer.heartbeat.guards import SAME_RHYTHM, is_same_rhythm
from reveal_analyzer.heartbeat.reference import StepReference

_KEPT_STRENGTH = 0.5  # of the strength that a lock needs, to keep it
# consecutive checks without that strength after which the lock is lost; fewer while there is no
# reference that a short weakness would cost
_MOST_WEAK, _MOST_WEAK_UNREFERENCED = 6, 2
_MOVED, _MOVED_CHECKS = 0.06, 2  # by this share of the period, in so many consecutive checks
_RIVAL = 1.5  # times as strong, and too far from the period to be the same rhythm
_LEAST_PARTS = 1.5  # parts in a step, at least: a longer one is compared with its parts
_CLOSE = 0.15  # of the period: a rhythm that moves by more must be as strong as a new one
_MOST_PARTS, _SAME_PART = 4, 0.2  # in a step whose multiple is searched, and the tolerance
_JUMP_CHECKS, _SAME_RIVAL = 3, 1.05  # checks that find the same rival, up to this ratio


class Presence(Enum):
    """Result of one check."""

    PRESENT = auto()
    MOVED = auto()  # the same rhythm, at the period ``PresenceCheck.moved_to``
    LOST = auto()


class PresenceCheck:
    """Checks one locked rhythm every few seconds against the spectrum of its counter."""

    def __init__(self, lock: RhythmLock) -> None:
        self._lock = lock
        self.strength = lock.strength
        self.moved_to = lock.period
        self._weak = self._moved = 0  # consecutive checks
        self._rivals: list[float] = []  # periods that consecutive checks found instead

    @property
    def is_certain(self) -> bool:
        """Whether the last check found the rhythm where it is tracked."""
        return not (self._weak or self._moved or self._rivals)

    def check(
        self, spectrum: comb.Spectrum, period: float, reference: StepReference, *, is_whole: bool
    ) -> Presence:
        """Compare the best comb with ``period``, the one that is tracked.

        ``is_whole``: the period is that of a whole step of several smaller ones.  A job with a
        reference may be so slow that its rhythm seems to be another one.
        """
        fit = self._best(spectrum, period, is_known=bool(reference.period), is_whole=is_whole)
        if fit is not None and _has_parts(spectrum, fit.period, period):
            fit = None
        here = comb.strength(spectrum, period, self._lock.top)
        same = fit is not None and (is_whole or is_same_rhythm(fit.period, period))
        self.strength = max(here, fit.strength) if fit and same else here
        self._count_weak()
        work = spectrum.mean * spectrum.rate
        rival = None if same else fit
        slower = rival is not None and reference.may_be(rival.period, work)
        # the comb of a step that was several times as long holds the shorter one, too
        is_back = slower and rival is not None and rival.period < period
        self._count_rival(rival, here if is_back else _RIVAL * here)
        if slower and self._rivals_agree():
            return self._move_to(self._rivals[-1])
        if self._is_lost(bool(reference.period), may_be_slower=slower):
            return Presence.LOST
        if fit is None or not same or not self._may_move(fit, period, here):
            return self._moved_by(period, period)
        return self._moved_by(fit.period, period)

    def _best(
        self, spectrum: comb.Spectrum, period: float, *, is_known: bool, is_whole: bool
    ) -> comb.CombFit | None:
        # the comb would find the smaller steps of a whole one
        if is_whole:
            return comb.moved_fit(spectrum, period, period)
        longest = comb.LONGEST_KNOWN_S if is_known else comb.LONGEST_S
        fit = comb.best_fit(spectrum, self._lock.top, longest)
        # a step that changes may look like its parts for a while
        if fit and is_known and fit.period < SAME_RHYTHM[0] * period:
            moved = comb.moved_fit(spectrum, period, fit.period)
            return fit if moved is None or _share_part(moved.period, period, fit.period) else moved
        return fit

    def _may_move(self, fit: comb.CombFit, period: float, here: float) -> bool:
        """Return whether a rhythm is close to the period, or clearly there and not here any more.

        The comb of a multiple of the period has all of its power, too.
        """
        is_close = abs(fit.period / period - 1) <= _CLOSE
        return is_close or fit.strength >= max(self._lock.needed, _RIVAL * here)

    def _count_weak(self) -> None:
        weak = self.strength < _KEPT_STRENGTH * self._lock.needed
        self._weak = self._weak + 1 if weak else 0

    def _count_rival(self, rival: comb.CombFit | None, least: float) -> None:
        if rival is None or rival.strength < least:
            self._rivals = []
        else:
            self._rivals = [*self._rivals, rival.period][-_MOST_WEAK:]

    def _rivals_agree(self) -> bool:
        last = self._rivals[-_JUMP_CHECKS:]
        return len(last) == _JUMP_CHECKS and max(last) < _SAME_RIVAL * min(last)

    def _is_lost(self, has_reference: bool, *, may_be_slower: bool) -> bool:
        most = _MOST_WEAK if has_reference else _MOST_WEAK_UNREFERENCED
        most_rivals = _MOST_WEAK if may_be_slower else _MOVED_CHECKS
        return self._weak >= most or len(self._rivals) >= most_rivals

    def _moved_by(self, found: float, period: float) -> Presence:
        """Return MOVED once the rhythm is at another period in consecutive checks."""
        self._moved = self._moved + 1 if abs(found / period - 1) > _MOVED else 0
        return self._move_to(found) if self._moved >= _MOVED_CHECKS else Presence.PRESENT

    def _move_to(self, period: float) -> Presence:
        self._moved, self._weak, self._rivals, self.moved_to = 0, 0, [], period
        return Presence.MOVED


def _share_part(moved: float, period: float, part: float) -> bool:
    """Return whether two periods are multiples of one part, which has not changed.

    Each multiple holds the lines of the part: which one is the step is unknown.
    """
    multiples = np.array([moved, period]) / part
    whole = np.round(multiples)
    return bool((whole <= _MOST_PARTS).all() and (np.abs(multiples - whole) < _SAME_PART).all())


def _has_parts(spectrum: comb.Spectrum, longer: float, period: float) -> bool:
    """Return whether a longer step consists of parts of about the period, which go on.

    The line of one burst in each step is stronger than its overtones.  The line of parts is
    stronger than that of the step.
    """
    if longer < _LEAST_PARTS * period:
        return False
    return comb.line_power(spectrum, period) > comb.line_power(spectrum, longer)
