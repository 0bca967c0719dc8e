"""Features that stood still in the reference: without a spread, a z-score says nothing of them.

The detectors are fitted on the features that varied.  One that stood still, such as the sum of a
counter of errors, adds to their scores once it moves, and nothing before.  So every score of a
window in which none moved is that of the varied features alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from reveal_analyzer.arrays import Floats, Indices
from reveal_analyzer.kernels.scaler import Scaler

# spreads, at most; it equals the bound of the varied features in the analyzer, which are clipped
MOST = 8.0
_ROUNDING = 1e-9  # of the value: a smaller change is rounding


@dataclass(frozen=True)
class StillFeatures:
    """Columns that stood still, at which values, and which change counts as one spread.

    With a unit of 0 any change counts as ``MOST`` spreads; an infinite one counts for nothing.
    """

    columns: Indices
    values: Floats
    units: Floats

    @classmethod
    def of(cls, scaler: Scaler, units: Floats | None = None) -> Self:
        """Return those of a fitted scaler; ``units`` has one for each feature, 0 by default."""
        columns = scaler.still_
        chosen = np.zeros(columns.size) if units is None else units[columns]
        return cls(columns, scaler.still_mean_, chosen)

    def distances(self, windows: Floats) -> Floats:
        """Return how many spreads windows (n, features) are away, (n, still features)."""
        with np.errstate(all="ignore"):
            change = windows[:, self.columns] - self.values
            size = np.maximum(np.abs(self.values), np.abs(windows[:, self.columns]))
            moved = np.isfinite(change) & (np.abs(change) > _ROUNDING * size)
            spreads = np.clip(change / self.units, -MOST, MOST)
        return np.where(moved, spreads, 0.0)
