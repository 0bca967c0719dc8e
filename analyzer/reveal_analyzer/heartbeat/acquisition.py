"""Acquisition: the search of a job's counters for a rhythm, locked once several results agree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from reveal_analyzer.heartbeat import comb
from reveal_analyzer.heartbeat.guards import is_alias
from reveal_analyzer.heartbeat.ring import RingBuffer

LEAST_S = 30
SEARCH_INTERVAL_S = 5  # while there is no candidate; every second once there is one
_AGREEING, _MOST_RATIO = 5, 1.05
# a finer counter has a wider band, with more noise between the teeth
_NEEDED_STRENGTH, _NEEDED_STRENGTH_FINE = 0.20, 0.10
_LONG_PERIOD_S = 2.5
_COARSE_HZ = 4.6  # upper end of the band of a counter that is read at 10 Hz
_FINE_RATE = 25

NO_RHYTHM = "no rhythm in its counters"
ALIAS = "its rhythm may be an alias of a faster one"
TIMER = "its rhythm is that of a timer"
UNCERTAIN = "its rhythm is not certain yet"


@dataclass(frozen=True)
class RhythmLock:
    """A rhythm: its period in s, the counter that carries it, and those that share it.

    ``top`` (Hz) is the upper end of the band in which ``strength`` was measured (``None``: the
    whole band); ``needed`` is the least strength for a lock in that band.
    """

    period: float
    channel: str
    strength: float
    needed: float
    top: float | None
    shared: tuple[str, ...]


@dataclass(frozen=True)
class _Candidate:
    channel: str
    fit: comb.CombFit
    needed: float
    top: float | None


def needed_strength(rate: float, period: float, top: float | None = None) -> float:
    """Return the least strength of a comb with this period (s) in a band of this width.

    A minute has few periods of a long step, and the load of a server or a host wanders slowly.
    Both put more noise into the teeth of long steps.
    """
    fine = rate > _FINE_RATE and top is None
    needed = _NEEDED_STRENGTH_FINE if fine else _NEEDED_STRENGTH
    return float(needed * max(1.0, period / _LONG_PERIOD_S) ** 1.5)


class RhythmSearch:
    """Searches for the rhythm of one job; ``reason`` says why there is no lock yet.

    It starts after ``wait`` seconds: this spreads the searches of many jobs, and leaves a job
    alone for a while whose rhythm was refused.  ``known`` is the period (s) of a job that may
    return with longer steps, 0 without one.
    """

    def __init__(self, wait: int = 0, reason: str = NO_RHYTHM, known: float = 0.0) -> None:
        self.reason = reason
        self._known = known
        self._best: list[_Candidate] = []  # of the last searches, all on one channel
        self._wait = wait

    def update(self, rings: Mapping[str, RingBuffer]) -> RhythmLock | None:
        """Search once a second; most seconds only count down."""
        self._wait -= 1
        if self._wait > 0:
            return None
        candidates, self.reason = _candidates(rings, self._known)
        if not candidates:
            self._best, self._wait = [], SEARCH_INTERVAL_S
            return None
        first = candidates[0]
        same = [candidate for candidate in self._best if candidate.channel == first.channel]
        self._best = [*same[1 - _AGREEING :], first]
        return self._agreed(candidates)

    def _agreed(self, candidates: list[_Candidate]) -> RhythmLock | None:
        """Return a lock if the last searches found about the same period."""
        periods = [candidate.fit.period for candidate in self._best]
        if len(periods) < _AGREEING or max(periods) > _MOST_RATIO * min(periods):
            return None
        period, first = float(np.median(periods)), candidates[0]
        near = (c for c in candidates if 1 / _MOST_RATIO < c.fit.period / period < _MOST_RATIO)
        shared = tuple(dict.fromkeys(candidate.channel for candidate in near))
        return RhythmLock(
            period, first.channel, first.fit.strength, first.needed, first.top, shared
        )


def _candidates(rings: Mapping[str, RingBuffer], known: float) -> tuple[list[_Candidate], str]:
    """Return the credible rhythms, and the reason against a lock.

    The first candidate is the one whose strength exceeds the needed one by the largest factor.
    """
    found: list[_Candidate] = []
    reason = NO_RHYTHM
    for name, ring in rings.items():
        values = ring.last() if ring.seconds >= LEAST_S else None
        if values is None:
            continue
        spectrum = comb.spectrum(values, ring.rate)
        # a slow rhythm may be strong only in the lower part of a wide band
        for top in (None, _COARSE_HZ) if ring.rate > _FINE_RATE else (None,):
            fit = comb.best_fit(spectrum, top, comb.LONGEST_KNOWN_S if known else comb.LONGEST_S)
            if fit is None:
                continue
            # steps that were longer than this in the same job are no news
            needed = needed_strength(ring.rate, min(fit.period, known or fit.period), top)
            if fit.strength < needed:
                continue
            if is_alias(spectrum, fit.period):
                reason = ALIAS
                continue
            found.append(_Candidate(name, fit, needed, top))
    found.sort(key=lambda candidate: -candidate.fit.strength / candidate.needed)
    return found, UNCERTAIN if found else reason
