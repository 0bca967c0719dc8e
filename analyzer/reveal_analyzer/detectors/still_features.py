"""Features that stood still in the reference: without a spread, a z-score says nothing of them.

The detectors are fitted on the features that varied.  One that stood still, such as the sum of a
counter of errors, adds to their scores once it moves, and nothing before.  So every score of a
window in which none moved is that of the varied features alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
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
        result = np.zeros((len(windows), self.columns.size))
        columns, values, units = self._counting
        read = windows[:, columns]
        others = np.flatnonzero((read != values).any(axis=0))  # few, in most windows
        if others.size:
            read, values, units = read[:, others], values[others], units[others]
            with np.errstate(all="ignore"):
                change = read - values
                size = np.maximum(np.abs(values), np.abs(read))
                moved = np.isfinite(change) & (np.abs(change) > _ROUNDING * size)
                spreads = np.clip(change / units, -MOST, MOST)
            result[:, self._counted[others]] = np.where(moved, spreads, 0.0)
        return result

    @cached_property
    def _counted(self) -> Indices:
        return np.flatnonzero(np.isfinite(self.units))

    @cached_property
    def _counting(self) -> tuple[Indices, Floats, Floats]:
        """Columns, values and units of those whose change counts."""
        return self.columns[self._counted], self.values[self._counted], self.units[self._counted]
