"""The subsystems' own healthy scores on one node, and the cuts that follow from them."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from reveal_analyzer.arrays import Floats
from reveal_analyzer.kernels import backend
from reveal_analyzer.kernels.live import RecentScores
from reveal_analyzer.live.settings import LiveSettings
from reveal_contract.metric import Subsystem

_LEAST = 10  # scores before they say anything
_CALM = 200
_USUAL = 0.98


class OwnLevels:
    """``cuts`` (subsystems): the limit, or so many times the usual high; never what would blind."""

    def __init__(self, settings: LiveSettings) -> None:
        self._settings = settings
        shape = len(Subsystem), settings.keep
        self._scores = RecentScores(np.zeros(shape), np.zeros(shape))
        self._taken = 0
        self._usual: list[float] = []
        self.cuts: Floats = np.full(len(Subsystem), settings.limit)

    def learn(self, scores: Floats) -> None:
        """Take in the scores of a second that was accepted."""
        keep = self._settings.keep
        at, before = self._taken % keep, min(self._taken, keep)
        moved = backend.current().insert_scores(self._scores, scores, at, before)
        self._taken += 1
        known = min(self._taken, keep)
        if moved and known >= _LEAST:
            # the 98th percentile
            self._follow(self._scores.ordered[:, max(known - 1 - _spare(known), 0)])

    def _follow(self, usual: Floats) -> None:
        high = usual.tolist()
        if high != self._usual:  # most scores that come and leave are lower
            self._usual = high
            level = np.maximum(self._settings.multiple * usual, self._settings.limit)
            self.cuts = np.minimum(level, self._settings.blind)


@cache
def _spare(known: int) -> int:
    """How many scores may be higher than the usual high.

    While few are known they count as part of a longer calm, so that one excursion of a few
    seconds, too short to be a finding anyway, does not blind the subsystem.
    """
    calm = max(known, _CALM)
    return calm - math.ceil(_USUAL * calm)
