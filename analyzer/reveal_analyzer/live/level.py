"""A subsystem's own healthy scores on one node, and the cut that follows from them."""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, insort
from functools import cache

from reveal_analyzer.live.settings import LiveSettings

_LEAST = 10  # scores before they say anything
_CALM = 200
_USUAL = 0.98


class OwnLevel:
    """``cut``: the limit, or so many times the usual high, within what would blind."""

    def __init__(self, settings: LiveSettings) -> None:
        self._settings = settings
        self._scores = array("d", bytes(8 * settings.keep))  # a ring
        self._ordered = array("d")  # the same, lowest first
        self._taken = 0
        self.cut = settings.limit

    def learn(self, score: float) -> None:
        """Take in the score of a second that was accepted."""
        scores, ordered = self._scores, self._ordered
        place = self._taken % len(scores)
        if self._taken >= len(scores):
            del ordered[bisect_left(ordered, scores[place])]
        scores[place] = score
        insort(ordered, score)
        self._taken += 1
        if self._taken >= _LEAST:
            level = self._settings.multiple * self._usual_high()
            self.cut = min(max(self._settings.limit, level), self._settings.blind)

    def _usual_high(self) -> float:
        """The 98th percentile."""
        known = len(self._ordered)
        return self._ordered[max(known - 1 - _spare(known), 0)]


@cache
def _spare(known: int) -> int:
    """How many scores may be higher than the usual high.

    While few are known they count as part of a longer calm, so that one excursion of a few
    seconds, too short to be a finding anyway, does not blind the subsystem.
    """
    calm = max(known, _CALM)
    return calm - math.ceil(_USUAL * calm)
