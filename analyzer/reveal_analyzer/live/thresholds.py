"""Thresholds of the subsystems, which follow their healthy scores on the node."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from reveal_analyzer.arrays import Bools, Floats
from reveal_analyzer.kernels import backend
from reveal_analyzer.kernels.live import RecentScores
from reveal_analyzer.live.settings import LiveSettings
from reveal_analyzer.state.tree import StateTree, finite_array
from reveal_contract.metric import Subsystem

_MIN_SCORES = 10  # scores below which the thresholds stay at the limit
_CALM_SCORES = 200
_PERCENTILE = 0.98


def threshold(healthy: Floats, settings: LiveSettings) -> Floats:
    """Return the threshold for healthy scores: a multiple of them, at least the limit."""
    return np.maximum(settings.multiple * healthy, settings.limit)


class Thresholds:
    """``values`` (subsystems,) are the thresholds, between ``limit`` and ``ceiling``."""

    def __init__(self, settings: LiveSettings) -> None:
        self._settings = settings
        shape = len(Subsystem), settings.keep
        self._scores = RecentScores(np.zeros(shape), np.zeros(shape))
        self._count = 0
        self._healthy: list[float] = []
        self.values: Floats = np.full(len(Subsystem), settings.limit)

    def learn(self, scores: Floats, left_out: Bools | None = None) -> None:
        """Learn the scores of a second; of subsystems that are left out a known one is repeated."""
        keep = self._settings.keep
        slot, known = self._count % keep, min(self._count, keep)
        if left_out is not None:
            repeated = self._scores.ring[:, slot if known == keep else slot % max(known, 1)]
            scores = np.where(left_out, repeated, scores)
        moved = backend.current().insert_scores(self._scores, scores, slot, known)
        self._count += 1
        known = min(self._count, keep)
        if moved:
            self._adapt(known)

    def save(self) -> StateTree:
        """Return the scores that are known, oldest first."""
        known = min(self._count, self._settings.keep)
        slots = np.arange(self._count - known, self._count) % self._settings.keep
        return {"scores": self._scores.ring[:, slots].astype(np.float16)}

    def restore(self, tree: StateTree) -> None:
        """Continue with saved scores; the settings of now decide what follows from them."""
        scores = finite_array(tree, "scores", np.float64, (len(self.values), None))
        scores = scores[:, -self._settings.keep :]
        self._count = known = scores.shape[1]
        self._scores.ring[:, :known] = scores
        self._scores.ordered[:, :known] = np.sort(scores, axis=1)
        self._adapt(known)

    def _adapt(self, known: int) -> None:
        """Adapt the thresholds to the 98th percentile of so many known scores."""
        if known < _MIN_SCORES:
            return
        healthy = self._scores.ordered[:, max(known - 1 - _scores_above(known), 0)]
        high = healthy.tolist()
        if high != self._healthy:  # most scores that come and leave are lower: nothing to do
            self._healthy = high
            # without the ceiling a noisy subsystem could never raise an alarm again
            self.values = np.minimum(threshold(healthy, self._settings), self._settings.ceiling)


@cache
def _scores_above(known: int) -> int:
    """Return how many of the known scores may be above the healthy score.

    While few scores are known, they count as part of a longer calm period.  So one excursion of a
    few seconds, too short for a finding, does not make the subsystem insensitive.
    """
    calm = max(known, _CALM_SCORES)
    return calm - math.ceil(_PERCENTILE * calm)
