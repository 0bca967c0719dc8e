"""One-step forecast of every metric from the last samples of all, by ridge regression."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.arrays import Floats
from reveal_analyzer.tables.scoring.scales import CAP, Scale, robust_scale
from reveal_analyzer.tables.scoring.spans import runs_of

_RIDGE = 0.1  # of the mean variance of the predictors
_LEAST = 0.1  # spread of a residual, in spreads of its metric
_CHUNK = 16_384  # rows of predictors in memory at once

_Rows = slice | NDArray[np.intp]


class Forecast:
    """Learns x[t] from x[t-1], ... x[t-lags], each metric in its own robust spreads.

    ``since`` counts the rows of a stretch before each row: nothing is forecast across a gap.
    """

    def __init__(self, lags: int = 1) -> None:
        self.lags = lags

    def fit(self, values: Floats, since: NDArray[np.intp], scale: Scale | None = None) -> Self:
        """Fit on rows (n, m), NaN where missing; ``scale`` is their robust one, if it is known."""
        self.fit_residual(values, since, scale)
        return self

    def fit_residual(
        self, values: Floats, since: NDArray[np.intp], scale: Scale | None = None
    ) -> Floats:
        """Fit on rows and return their ``residual``, at less than the cost of both."""
        self._scale: Scale = scale or robust_scale(values)
        scaled = self._scale.distance(values)
        self._center = scaled.mean(0)
        scaled -= self._center
        self._weights = self._solve(scaled, since)
        squares = np.zeros(scaled.shape[1])
        errors = np.zeros(scaled.shape)
        count = 0
        for rows in self._chunks(since):
            errors[rows] = error = self._errors(scaled, rows)
            squares += np.einsum("ij,ij->j", error, error)
            count += len(error)
        self._spread = np.maximum(np.sqrt(squares / max(1, count)), _LEAST)
        return self._in_residuals(errors, values)

    def residual(self, values: Floats, since: NDArray[np.intp]) -> Floats:
        """Return the distance (n, m) of each value from its forecast in normal residuals, capped.

        0 for missing values and for the first rows of a stretch.
        """
        scaled = self._scale.distance(values)
        scaled -= self._center
        errors = np.zeros(values.shape)
        for rows in self._chunks(since):
            errors[rows] = self._errors(scaled, rows)
        return self._in_residuals(errors, values)

    @property
    def nbytes(self) -> int:
        """Return the memory of what was learned."""
        return self._weights.nbytes

    def _errors(self, scaled: Floats, rows: _Rows) -> Floats:
        error = scaled[rows].copy()
        for lag, weights in enumerate(np.split(self._weights, self.lags), 1):
            error -= scaled[_before(rows, lag)] @ weights
        return error

    def _in_residuals(self, errors: Floats, values: Floats) -> Floats:
        np.abs(errors, out=errors)
        errors /= self._spread
        np.minimum(errors, CAP, out=errors)
        errors[np.isnan(values)] = 0.0
        return errors

    def _solve(self, scaled: Floats, since: NDArray[np.intp]) -> Floats:
        """Return the weights of the predictors (lags x m, m)."""
        width = scaled.shape[1]
        apart = np.zeros((self.lags + 1, width, width))
        for rows in self._chunks(since):
            for lag in range(self.lags + 1):
                apart[lag] += _products(scaled, rows, lag)
        gram = self._gram(scaled, since, apart)
        moment = apart[1:].transpose(0, 2, 1).reshape(-1, width)
        # a constant reference has no variance at all
        ridge = max(_RIDGE * float(np.trace(gram)) / len(gram), 1e-9)
        return np.asarray(np.linalg.solve(gram + ridge * np.eye(len(gram)), moment), np.float64)

    def _gram(self, scaled: Floats, since: NDArray[np.intp], apart: Floats) -> Floats:
        """Return the products of all pairs of predictors, summed over the rows.

        Predictors of lags 1 and 2 are multiplied like those of 2 and 3, a row earlier.  So
        ``apart``, the products of samples some rows apart, has all sums but their ends.
        """
        width = scaled.shape[1]
        firsts, ends = runs_of(since >= self.lags)
        gram = np.empty((self.lags, width, self.lags, width))
        for distance in range(self.lags):
            total = apart[distance]
            for lag in range(1, self.lags - distance + 1):
                earlier = _products(scaled, firsts - lag, distance)
                total = total + earlier - _products(scaled, ends - lag, distance)
                gram[lag - 1, :, lag - 1 + distance] = total
                gram[lag - 1 + distance, :, lag - 1] = total.T
        return gram.reshape(self.lags * width, -1)

    def _chunks(self, since: NDArray[np.intp]) -> list[_Rows]:
        """Return the rows with enough rows before them, in chunks."""
        rows = np.flatnonzero(since >= self.lags)
        return [_compact(rows[start : start + _CHUNK]) for start in range(0, len(rows), _CHUNK)]


def _compact(rows: NDArray[np.intp]) -> _Rows:
    """Return rows in a row as a slice, which copies nothing."""
    first, end = int(rows[0]), int(rows[-1]) + 1
    return slice(first, end) if end - first == len(rows) else rows


def _before(rows: _Rows, lag: int) -> _Rows:
    return slice(rows.start - lag, rows.stop - lag) if isinstance(rows, slice) else rows - lag


def _products(scaled: Floats, rows: _Rows, apart: int) -> Floats:
    """Return the products of all pairs of metrics (m, m), the second so many rows earlier."""
    return np.asarray(scaled[rows].T @ scaled[_before(rows, apart)])
