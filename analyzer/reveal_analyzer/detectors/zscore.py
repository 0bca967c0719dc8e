"""Mean absolute z-score over the features (paper, section 4.3)."""

from __future__ import annotations

from typing import Self

import numpy as np

from reveal_analyzer.arrays import Floats, Floats32
from reveal_analyzer.detectors.base import Arrays, ScaledDetector


class ZScore(ScaledDetector):
    """How many spreads the features of a window lie off the workload's own, on average."""

    def fit_scaled(self, scaled: Floats32) -> Self:
        """Nothing beyond the scaler is learned."""
        return self

    def score_scaled(self, scaled: Floats32) -> Floats:
        return np.asarray(np.abs(scaled).sum(1, dtype=np.float64) / max(1, scaled.shape[1]))

    def contributions_scaled(self, scaled: Floats32) -> Floats:
        """Each feature's part of the mean; they sum to the score."""
        return np.asarray(np.abs(scaled) / max(1, scaled.shape[1]), np.float64)

    def to_arrays(self) -> Arrays:
        return {}

    def from_arrays(self, arrays: Arrays, width: int) -> Self:
        return self
