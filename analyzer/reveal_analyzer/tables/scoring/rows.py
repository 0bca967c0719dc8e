"""A table with its baseline before it, read one block of metrics at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.arrays import Bools, Floats, Ints
from reveal_analyzer.tables.scoring.table import Table

Progress = Callable[[float], None]  # called with the share that is done

METRICS = 128  # metrics per block; the matrices of a block grow with their square

_CELLS = 1 << 22  # values per block: 32 MiB, and ten times that while it is processed
_MAX_HOLE = 3  # samples for which a missing metric keeps its last value
_GAP = 3  # steps without a row that make a gap, which nothing may span


@dataclass(frozen=True)
class TableRows:
    """The rows of a baseline, if there is one, followed by those of the table that is scored.

    The metrics are the table's; a metric that the baseline does not have is missing there.
    ``progress`` is called before each block.
    """

    table: Table
    baseline: Table | None = None
    progress: Progress | None = None

    @property
    def baseline_rows(self) -> int:
        """Return the number of rows of the baseline."""
        return len(self.baseline) if self.baseline else 0

    def __len__(self) -> int:
        return self.baseline_rows + len(self.table)

    @cached_property
    def times(self) -> Ints:
        """Return nanoseconds (n,); where the baseline ends they may jump in either direction."""
        own = self.table.times_ns
        return np.concatenate([self.baseline.times_ns, own]) if self.baseline else own

    @cached_property
    def since(self) -> NDArray[np.intp]:
        """Return how many rows without a gap are before each row; (n,)."""
        begins = np.ones(len(self), np.bool_)
        limit = _GAP * max(1, self.table.period_ns)
        steps = np.diff(self.times)
        begins[1:] = (steps <= 0) | (steps > limit)
        if self.baseline_rows:
            begins[self.baseline_rows] = True
        indices = np.arange(len(self))
        return indices - np.maximum.accumulate(np.where(begins, indices, 0))

    @property
    def width(self) -> int:
        """Return the number of metrics of a block."""
        return max(1, min(METRICS, _CELLS // max(1, len(self))))

    def blocks(self) -> Iterator[Floats]:
        """Yield values (n, few metrics) of neighboring metrics; infinite values are missing."""
        width = self.width
        for first in range(0, len(self.table.names), width):
            if self.progress:
                self.progress(first / len(self.table.names))
            chosen = slice(first, first + width)
            values = self.table.values[:, chosen]
            if self.baseline:
                values = np.concatenate([self._of_baseline(chosen), values])
            yield _fill_holes(np.where(np.isfinite(values), values, np.nan), self.since)

    def _of_baseline(self, chosen: slice) -> Floats:
        assert self.baseline is not None
        indices = self._indices[chosen]
        values = self.baseline.values[:, indices]
        values[:, indices < 0] = np.nan
        return values

    @cached_property
    def _indices(self) -> NDArray[np.intp]:
        """Return the baseline's column of each metric, -1 if it has none."""
        assert self.baseline is not None
        index_of = {name: index for index, name in enumerate(self.baseline.names)}
        return np.array([index_of.get(name, -1) for name in self.table.names], np.intp)


def _fill_holes(values: Floats, since: NDArray[np.intp]) -> Floats:
    """Fill short holes with the last known value of the same stretch."""
    missing: Bools = np.isnan(values)
    if not missing.any():
        return values
    rows = np.arange(len(values))[:, None]
    last = np.maximum.accumulate(np.where(missing, -1, rows), axis=0)
    near = (last >= 0) & (rows - last <= np.minimum(_MAX_HOLE, since[:, None]))
    repeated = np.take_along_axis(values, np.maximum(last, 0), axis=0)
    return np.where(near, repeated, np.nan)
