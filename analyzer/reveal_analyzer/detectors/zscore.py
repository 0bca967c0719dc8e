"""Mean absolute z-score over the features (paper, section 4.3)."""

from __future__ import annotations

from typing import Self

import numpy as np

from reveal_analyzer.arrays import Floats, Floats32
from reveal_analyzer.detectors.base import Arrays, ScaledDetector


class ZScore(ScaledDetector):
    """Mean distance of a window's features from the mean of the reference, in spreads."""

    def fit_scaled(self, scaled: Floats32) -> Self:
        """Learn nothing beyond the scaler."""
        return self

    def score_scaled(self, scaled: Floats32) -> Floats:
        return np.asarray(np.abs(scaled).sum(1, dtype=np.float64) / max(1, scaled.shape[1]))

    def contributions_scaled(self, scaled: Floats32) -> Floats:
        """Return each feature's part of the mean; the parts sum to the score."""
        return np.asarray(np.abs(scaled) / max(1, scaled.shape[1]), np.float64)

    def to_arrays(self) -> Arrays:
        return {}

    def from_arrays(self, arrays: Arrays, width: int) -> Self:
        return self
