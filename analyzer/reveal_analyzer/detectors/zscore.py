"""Mean absolute z-score over the features (paper, section 4.3)."""

from __future__ import annotations

from typing import Self

import numpy as np

from reveal_analyzer.detectors.base import Arrays, ScaledDetector
from reveal_analyzer.kernels.scaler import Floats, Scores


class ZScore(ScaledDetector):
    """How many spreads the features of a window lie off the workload's own, on average."""

    def fit_scaled(self, scaled: Scores) -> Self:
        """Nothing beyond the scaler is learned."""
        return self

    def score_scaled(self, scaled: Scores) -> Floats:
        return np.asarray(np.abs(scaled).sum(1, dtype=np.float64) / max(1, scaled.shape[1]))

    def contributions_scaled(self, scaled: Scores) -> Floats:
        """Each feature's part of the mean; they sum to the score."""
        return np.asarray(np.abs(scaled) / max(1, scaled.shape[1]), np.float64)

    def to_arrays(self) -> Arrays:
        return {}

    def from_arrays(self, arrays: Arrays, width: int) -> Self:
        return self
