"""A subsystem's own healthy scores on one node, and the cut that follows from them."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import deque

from reveal_analyzer.live.settings import LiveSettings

_LEAST = 10  # scores before they say anything
_CALM = 200
_USUAL = 0.98


class OwnLevel:
    """``cut``: the limit, or so many times the usual high, within what would blind."""

    def __init__(self, settings: LiveSettings) -> None:
        self._settings = settings
        self._scores: deque[float] = deque()
        self._sorted: list[float] = []
        self.cut = settings.limit

    def learn(self, score: float) -> None:
        """Take in the score of a second that was accepted."""
        self._scores.append(score)
        insort(self._sorted, score)
        if len(self._scores) > self._settings.keep:
            del self._sorted[bisect_left(self._sorted, self._scores.popleft())]
        if len(self._scores) >= _LEAST:
            level = self._settings.multiple * self._usual_high()
            self.cut = min(max(self._settings.limit, level), self._settings.blind)

    def _usual_high(self) -> float:
        """The 98th percentile.

        While few scores are known they count as part of a longer calm, so that one excursion of
        a few seconds, too short to be a finding anyway, does not blind the subsystem.
        """
        calm = max(len(self._sorted), _CALM)
        spare = calm - math.ceil(_USUAL * calm)
        return self._sorted[max(len(self._sorted) - 1 - spare, 0)]
