"""Presence of a locked rhythm: whether it still shows, has moved, or is lost."""

from __future__ import annotations

from enum import Enum, auto

from reveal_analyzer.heartbeat import comb
from reveal_analyzer.heartbeat.acquisition import RhythmLock
from reveal_analyzer.heartbeat.guards import is_same_rhythm

_KEPT_STRENGTH = 0.5  # of the strength that a lock needs, to keep it
# consecutive checks without that strength after which the lock is lost; fewer while there is no
# reference that a short weakness would cost
_MOST_WEAK, _MOST_WEAK_UNREFERENCED = 6, 2
_MOVED, _MOVED_CHECKS = 0.06, 2  # by this share of the period, in so many consecutive checks
_RIVAL = 1.5  # times as strong, and too far from the period to be the same rhythm


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
        self._weak = self._rival = self._moved = 0  # consecutive checks

    def check(
        self, spectrum: comb.Spectrum, period: float, *, has_reference: bool, is_whole: bool
    ) -> Presence:
        """Compare the best comb with ``period``, the one that is tracked.

        ``is_whole``: the period is that of a whole step of several smaller ones.
        """
        fit = comb.best_fit(spectrum, self._lock.top)
        here = comb.strength(spectrum, period, self._lock.top)
        same = fit is not None and is_same_rhythm(fit.period, period)
        self.strength = max(here, fit.strength) if fit and same else here
        self._count_weak()
        # of a whole step the comb finds the smaller steps: that is no other rhythm
        self._count_rival(0.0 if fit is None or same or is_whole else fit.strength, here)
        if self._is_lost(has_reference):
            return Presence.LOST
        return self._moved_by(fit.period if fit and same else period, period)

    def _count_weak(self) -> None:
        weak = self.strength < _KEPT_STRENGTH * self._lock.needed
        self._weak = self._weak + 1 if weak else 0

    def _count_rival(self, rival: float, here: float) -> None:
        self._rival = self._rival + 1 if rival > _RIVAL * here else 0

    def _is_lost(self, has_reference: bool) -> bool:
        most = _MOST_WEAK if has_reference else _MOST_WEAK_UNREFERENCED
        return self._weak >= most or self._rival >= _MOVED_CHECKS

    def _moved_by(self, found: float, period: float) -> Presence:
        """Return MOVED once the rhythm is at another period in consecutive checks."""
        self._moved = self._moved + 1 if abs(found / period - 1) > _MOVED else 0
        if self._moved < _MOVED_CHECKS:
            return Presence.PRESENT
        self._moved, self.moved_to = 0, found
        return Presence.MOVED
