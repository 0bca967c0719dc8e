"""Pearson correlations of rows that arrive in blocks, from running sums of products.

A pair counts the rows in which both items were read.  Sums use the difference from the first value
of each item: otherwise a level of 1e10 bytes that moves by pages would lose its movement to
rounding.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.arrays import Floats, Indices
from reveal_analyzer.selection.resampler import MetricInstance, ResampledRows

_CHUNK = 512  # rows multiplied at a time
_LEAST = 10  # rows in common below which a correlation is not known
_ROUNDING = 1e-12  # a variance below this share of the squares is rounding


@dataclass(frozen=True, eq=False)
class Correlation:
    """``r`` (items, items) is NaN if one of two was constant or too few rows have both.

    ``moved`` marks the items that had more than one value; ``rows`` is the number of rows.
    """

    items: tuple[MetricInstance, ...]
    r: Floats
    moved: NDArray[np.bool_]
    rows: int


class CorrelationSums:
    """Accumulates rows; items may come and go between blocks."""

    def __init__(self) -> None:
        self._items: dict[str, MetricInstance] = {}
        self._indices: tuple[tuple[MetricInstance, ...], Indices] | None = None
        self._buffer: list[Floats] = []
        self._rows = 0
        self._first, self._low, self._high = np.zeros(0), np.zeros(0), np.zeros(0)
        # for pairs (i, j), over rows with both: their number, sums of x_i, x_i^2 and x_i x_j
        self._count, self._sum = np.zeros((0, 0)), np.zeros((0, 0))
        self._squares, self._products = np.zeros((0, 0)), np.zeros((0, 0))

    def add(self, rows: ResampledRows) -> None:
        indices = self._known(rows.items)
        values = np.full((len(rows.values), len(self._items)), np.nan)
        values[:, indices] = rows.values
        self._buffer.append(values)
        if sum(map(len, self._buffer)) >= _CHUNK:
            self._flush()

    def correlation(self) -> Correlation:
        """Return the correlation of all rows so far."""
        self._flush()
        count, total = self._count, self._sum
        with np.errstate(all="ignore"):
            variance = self._squares - total * total / count
            variance[variance <= _ROUNDING * self._squares] = np.nan
            covariance = self._products - total * total.T / count
            r = np.clip(covariance / np.sqrt(variance * variance.T), -1.0, 1.0)
            r[count < _LEAST] = np.nan
            moved = self._high > self._low
        r[np.diag(moved & ~np.isnan(np.diag(r)))] = 1.0
        return Correlation(tuple(self._items.values()), r, moved, self._rows)

    def _known(self, items: tuple[MetricInstance, ...]) -> Indices:
        """Return the indices of these items among all items so far."""
        if self._indices is None or self._indices[0] is not items:
            for item in items:
                self._items.setdefault(item.label, item)
            if len(self._items) > len(self._first):
                self._flush()
                self._grow(len(self._items) - len(self._first))
            index_of = {label: index for index, label in enumerate(self._items)}
            self._indices = items, np.array([index_of[item.label] for item in items], np.intp)
        return self._indices[1]

    def _grow(self, more: int) -> None:
        unknown = np.full(more, np.nan)
        self._first = np.concatenate([self._first, unknown])
        self._low = np.concatenate([self._low, unknown])
        self._high = np.concatenate([self._high, unknown])
        self._count, self._sum, self._squares, self._products = (
            np.pad(each, (0, more))
            for each in (self._count, self._sum, self._squares, self._products)
        )

    def _flush(self) -> None:
        """Add the buffered rows to the sums."""
        if not self._buffer:
            return
        values = np.concatenate(self._buffer)
        self._buffer = []
        known = ~np.isnan(values)
        first = values[np.argmax(known, axis=0), np.arange(values.shape[1])]
        self._first = np.where(np.isnan(self._first), first, self._first)
        self._low = np.fmin(self._low, np.fmin.reduce(values, axis=0))
        self._high = np.fmax(self._high, np.fmax.reduce(values, axis=0))
        self._rows += len(values)
        moved = np.where(known, values - self._first, 0.0)
        present = known.astype(np.float64)
        self._count += present.T @ present
        self._sum += moved.T @ present
        self._squares += (moved * moved).T @ present
        self._products += moved.T @ moved
