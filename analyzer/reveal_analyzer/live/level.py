"""A subsystem's own healthy scores on one node, and the cut that follows from them."""

from __future__ import annotations

import math
from array import array

import numpy as np

from reveal_analyzer.live.settings import LiveSettings

_LEAST = 10  # scores before they say anything
_CALM = 200
_USUAL = 0.98


class OwnLevel:
    """``cut``: the limit, or so many times the usual high, within what would blind."""

    def __init__(self, settings: LiveSettings) -> None:
        self._settings = settings
        self._scores = array("d", bytes(8 * settings.keep))  # a ring
        self._taken = 0
        self._spare = -1
        self._high = 0.0
        self.cut = settings.limit

    def learn(self, score: float) -> None:
        """Take in the score of a second that was accepted."""
        scores = self._scores
        place = self._taken % len(scores)
        left = scores[place] if self._taken >= len(scores) else -math.inf
        scores[place] = score
        self._taken += 1
        if self._stays(left, score):
            return
        self._high = self._usual_high()
        if self._taken >= _LEAST:
            level = self._settings.multiple * self._high
            self.cut = min(max(self._settings.limit, level), self._settings.blind)

    def _stays(self, left: float, came: float) -> bool:
        """Whether the usual high cannot have moved, as nearly always: then nothing is sorted."""
        if left == -math.inf:  # there is one more
            known, before = self._taken, self._spare
            self._spare = _spare(known)
            if self._spare != before or known <= max(self._spare + 1, _LEAST):
                return False
        high = self._high
        return left == came or (left < high and came <= high) or (left > high and came >= high)

    def _usual_high(self) -> float:
        """The 98th percentile."""
        known = min(self._taken, len(self._scores))
        place = max(known - 1 - self._spare, 0)
        return float(np.partition(np.frombuffer(self._scores)[:known], place)[place])


def _spare(known: int) -> int:
    """How many scores may be higher than the usual high.

    While few are known they count as part of a longer calm, so that one excursion of a few
    seconds, too short to be a finding anyway, does not blind the subsystem.
    """
    calm = max(known, _CALM)
    return calm - math.ceil(_USUAL * calm)
