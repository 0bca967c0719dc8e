"""Mapping of columns after the set of columns has changed."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.arrays import Bools, Floats32, Indices

_Float = TypeVar("_Float", bound=np.floating[Any])


class ColumnMap(NamedTuple):
    """Previous index of each column, -1 for a new one, and the scaled level of new columns."""

    source: Indices
    level: Floats32

    def levels(self, rows: NDArray[_Float]) -> NDArray[_Float]:
        """Return rows of levels in the new order; a new column has been at its level always."""
        result = self.excess(rows)
        new = self.source < 0
        result[..., new] = self.level[new]
        return result

    def excess(self, rows: NDArray[_Float]) -> NDArray[_Float]:
        """Return rows of excess in the new order; a new column has never been in excess: 0."""
        if not rows.shape[-1]:
            return np.zeros((*rows.shape[:-1], self.source.size), rows.dtype)
        result = rows.take(self.source, axis=-1)  # unlike an index, take keeps the memory order
        result[..., self.source < 0] = 0.0
        return result

    def flags(self, marked: Bools) -> Bools:
        """Return marks of columns in the new order; a new column is not marked."""
        if not marked.size:
            return np.zeros(self.source.size, np.bool_)
        return marked.take(self.source) & (self.source >= 0)


def flagged(columns: Indices, width: int) -> Bools:
    """Return (width,) marks of these columns."""
    marks = np.zeros(width, np.bool_)
    marks[columns] = True
    return marks


def positions(columns: Indices, width: int) -> Indices:
    """Return (width,): the position of each column in ``columns``, -1 where it is not there."""
    result = np.full(width, -1, np.intp)
    result[columns] = np.arange(columns.size)
    return result
