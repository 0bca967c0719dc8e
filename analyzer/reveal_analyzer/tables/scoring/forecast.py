"""One-step forecast of every metric from the last samples of all, by ridge regression."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.arrays import Floats
from reveal_analyzer.tables.scoring.scales import CAP, Scale, robust_scale

_RIDGE = 0.1  # of the mean variance of the predictors
_LEAST = 0.1  # spread of a residual, in spreads of its metric
_CHUNK = 16_384  # rows of predictors in memory at once


class Forecast:
    """Learns x[t] from x[t-1], ... x[t-lags], each metric in its own robust spreads.

    ``since`` counts the rows of a stretch before each row: nothing is forecast across a gap.
    """

    def __init__(self, lags: int = 1) -> None:
        self.lags = lags

    def fit(self, values: Floats, since: NDArray[np.intp], scale: Scale | None = None) -> Self:
        """Fit on rows (n, m), NaN where missing; ``scale`` is their robust one, if it is known."""
        self._scale: Scale = scale or robust_scale(values)
        scaled = self._scale.distance(values)
        self._center = scaled.mean(0)
        scaled -= self._center
        self._weights = self._solve(scaled, since)
        squares = np.zeros(scaled.shape[1])
        count = 0
        for rows in self._chunks(since):
            error = scaled[rows] - self._predictors(scaled, rows) @ self._weights
            squares += np.einsum("ij,ij->j", error, error)
            count += len(rows)
        self._spread = np.maximum(np.sqrt(squares / max(1, count)), _LEAST)
        return self

    def residual(self, values: Floats, since: NDArray[np.intp]) -> Floats:
        """Return the distance (n, m) of each value from its forecast in normal residuals, capped.

        0 for missing values and for the first rows of a stretch.
        """
        scaled = self._scale.distance(values) - self._center
        out = np.zeros(values.shape)
        for rows in self._chunks(since):
            error = scaled[rows] - self._predictors(scaled, rows) @ self._weights
            out[rows] = np.minimum(np.abs(error) / self._spread, CAP)
        out[np.isnan(values)] = 0.0
        return out

    def _solve(self, scaled: Floats, since: NDArray[np.intp]) -> Floats:
        width = scaled.shape[1]
        gram = np.zeros((self.lags * width, self.lags * width))
        moment = np.zeros((self.lags * width, width))
        for rows in self._chunks(since):
            predictors = self._predictors(scaled, rows)
            gram += predictors.T @ predictors
            moment += predictors.T @ scaled[rows]
        # a constant reference has no variance at all
        ridge = max(_RIDGE * float(np.trace(gram)) / len(gram), 1e-9)
        return np.asarray(np.linalg.solve(gram + ridge * np.eye(len(gram)), moment), np.float64)

    def _chunks(self, since: NDArray[np.intp]) -> list[NDArray[np.intp]]:
        """Return the rows with enough rows before them, in chunks."""
        rows = np.flatnonzero(since >= self.lags)
        return [rows[start : start + _CHUNK] for start in range(0, len(rows), _CHUNK)]

    def _predictors(self, scaled: Floats, rows: NDArray[np.intp]) -> Floats:
        return np.hstack([scaled[rows - lag] for lag in range(1, self.lags + 1)])
