"""Pearson correlations of rows that come in pieces: sums of products, never all rows at once.

Of each pair only the rows count in which both were read.  Values are taken off the first one
seen of their column: a level of 1e10 bytes that moves by pages would lose its movement else.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.arrays import Floats, Indices
from reveal_analyzer.selection.resampled import Item, Rows

_CHUNK = 512  # rows multiplied at a time
_LEAST = 10  # rows in common below which a correlation is not known
_ROUNDING = 1e-12  # a variance below this share of the squares is rounding


@dataclass(frozen=True, eq=False)
class Correlation:
    """``r`` (items, items) is NaN where one of two stood still or too little was read of both.

    ``moved`` tells the items that took more than one value; ``rows`` how many rows there were.
    """

    items: tuple[Item, ...]
    r: Floats
    moved: NDArray[np.bool_]
    rows: int


class Moments:
    """Gathers rows; items may come and go between pieces."""

    def __init__(self) -> None:
        self._items: dict[str, Item] = {}
        self._places: tuple[tuple[Item, ...], Indices] | None = None
        self._waiting: list[Floats] = []
        self._rows = 0
        self._first, self._low, self._high = np.zeros(0), np.zeros(0), np.zeros(0)
        # of pairs (i, j), over rows with both: their number, the sums of x_i, x_i^2 and x_i x_j
        self._count, self._sum = np.zeros((0, 0)), np.zeros((0, 0))
        self._squares, self._products = np.zeros((0, 0)), np.zeros((0, 0))

    def add(self, rows: Rows) -> None:
        places = self._known(rows.items)
        values = np.full((len(rows.values), len(self._items)), np.nan)
        values[:, places] = rows.values
        self._waiting.append(values)
        if sum(map(len, self._waiting)) >= _CHUNK:
            self._flush()

    def correlation(self) -> Correlation:
        """Of all rows so far."""
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

    def _known(self, items: tuple[Item, ...]) -> Indices:
        """Where these items stand among all that were ever seen."""
        if self._places is None or self._places[0] is not items:
            for item in items:
                self._items.setdefault(item.label, item)
            if len(self._items) > len(self._first):
                self._flush()
                self._grow(len(self._items) - len(self._first))
            at = {label: place for place, label in enumerate(self._items)}
            self._places = items, np.array([at[item.label] for item in items], np.intp)
        return self._places[1]

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
        """Take what waits into the sums."""
        if not self._waiting:
            return
        values = np.concatenate(self._waiting)
        self._waiting = []
        seen = ~np.isnan(values)
        first = values[np.argmax(seen, axis=0), np.arange(values.shape[1])]
        self._first = np.where(np.isnan(self._first), first, self._first)
        self._low = np.fmin(self._low, np.fmin.reduce(values, axis=0))
        self._high = np.fmax(self._high, np.fmax.reduce(values, axis=0))
        self._rows += len(values)
        moved = np.where(seen, values - self._first, 0.0)
        one = seen.astype(np.float64)
        self._count += one.T @ one
        self._sum += moved.T @ one
        self._squares += (moved * moved).T @ one
        self._products += moved.T @ moved
