"""Searching a job's counters for a rhythm: a lock needs several looks that agree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from reveal_analyzer.heartbeat import comb
from reveal_analyzer.heartbeat.guards import is_alias
from reveal_analyzer.heartbeat.ring import Ring

LEAST_S = 30
LOOK_S = 5  # between two looks while nothing shows; every second once something does
_AGREEING, _APART = 5, 1.05
_STRONG, _STRONG_FINE = 0.20, 0.10  # a wider band holds more noise beside the teeth
_MANY_TURNS_S = 2.5
_COARSE_HZ = 4.6  # the band of a counter read at 10 Hz
_FINE_RATE = 25

NO_RHYTHM = "no rhythm in its counters"
ALIAS = "its rhythm may be the shadow of a faster one"
TIMER = "its rhythm is a timer's"
UNCERTAIN = "a rhythm is not yet certain"


@dataclass(frozen=True)
class Lock:
    """A rhythm: period in s, the counter that carries it, and those that share it.

    ``top`` (Hz) ends the band in which its strength was seen; ``needed`` is the least there.
    """

    period: float
    channel: str
    strength: float
    needed: float
    top: float | None
    shared: tuple[str, ...]


@dataclass(frozen=True)
class _Look:
    channel: str
    claim: comb.Claim
    needed: float
    top: float | None


def strong(rate: float, period: float, top: float | None = None) -> float:
    """The strength that a claim of this period (s) needs in a band of this width.

    A minute holds few turns of a long step, and what a server or a host does wanders slowly:
    both put more into the teeth of long steps.
    """
    needed = _STRONG_FINE if rate > _FINE_RATE and top is None else _STRONG
    return float(needed * max(1.0, period / _MANY_TURNS_S) ** 1.5)


class Search:
    """Looks for the rhythm of one job; ``why`` says what speaks against one so far.

    It begins after ``wait`` seconds: so that those of many jobs spread, and one that was refused
    is left alone for a while.
    """

    def __init__(self, wait: int = 0, why: str = NO_RHYTHM) -> None:
        self.why = why
        self._looks: list[_Look] = []
        self._wait = wait

    def step(self, rings: Mapping[str, Ring]) -> Lock | None:
        """Once a second; most of them cost nothing."""
        self._wait -= 1
        if self._wait > 0:
            return None
        looks, self.why = _look(rings)
        if not looks:
            self._looks, self._wait = [], LOOK_S
            return None
        first = looks[0]
        held = [look for look in self._looks if look.channel == first.channel]
        self._looks = [*held[1 - _AGREEING :], first]
        return self._agreed(looks)

    def _agreed(self, looks: list[_Look]) -> Lock | None:
        periods = [look.claim.period for look in self._looks]
        if len(periods) < _AGREEING or max(periods) > _APART * min(periods):
            return None
        period, first = float(np.median(periods)), looks[0]
        near = (look for look in looks if 1 / _APART < look.claim.period / period < _APART)
        shared = tuple(dict.fromkeys(look.channel for look in near))
        return Lock(period, first.channel, first.claim.strength, first.needed, first.top, shared)


def _look(rings: Mapping[str, Ring]) -> tuple[list[_Look], str]:
    """Claims that can be believed, the one that most surpasses what it needs first."""
    found: list[_Look] = []
    why = NO_RHYTHM
    for name, ring in rings.items():
        values = ring.last() if ring.seconds >= LEAST_S else None
        if values is None:
            continue
        seen = comb.spectrum(values, ring.rate)
        for top in (None, _COARSE_HZ) if ring.rate > _FINE_RATE else (None,):
            claim = comb.best(seen, top)
            if claim is None:
                continue
            needed = strong(ring.rate, claim.period, top)
            if claim.strength < needed:
                continue
            if is_alias(seen, claim.period):
                why = ALIAS
                continue
            found.append(_Look(name, claim, needed, top))
    found.sort(key=lambda look: -look.claim.strength / look.needed)
    return found, UNCERTAIN if found else why
