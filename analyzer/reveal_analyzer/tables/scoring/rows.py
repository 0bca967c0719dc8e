"""A table with its baseline before it, read a block of metrics at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.arrays import Bools, Floats, Ints
from reveal_analyzer.tables.scoring.table import Table

METRICS = 128  # in a block at most; the matrices of a block grow with its square

_CELLS = 1 << 24  # in a block: 128 MiB, and some times that while it is worked on
_HELD = 3  # samples for which a metric that is missing keeps its last value
_GAP = 3  # steps without a row after which nothing may span the hole


@dataclass(frozen=True)
class Rows:
    """The rows of a baseline, if there is one, and then those of the table that is judged.

    Metrics are the table's; one that the baseline lacks is missing there.
    """

    table: Table
    baseline: Table | None = None

    @property
    def before(self) -> int:
        """How many rows are the baseline's."""
        return len(self.baseline) if self.baseline else 0

    def __len__(self) -> int:
        return self.before + len(self.table)

    @cached_property
    def times(self) -> Ints:
        """Nanoseconds (n,); where the baseline ends they may jump, either way."""
        own = self.table.times_ns
        return np.concatenate([self.baseline.times_ns, own]) if self.baseline else own

    @cached_property
    def since(self) -> NDArray[np.intp]:
        """How many rows of its stretch without a gap stand before each row; (n,)."""
        begins = np.ones(len(self), np.bool_)
        limit = _GAP * max(1, self.table.period_ns)
        steps = np.diff(self.times)
        begins[1:] = (steps <= 0) | (steps > limit)
        if self.before:
            begins[self.before] = True
        places = np.arange(len(self))
        return places - np.maximum.accumulate(np.where(begins, places, 0))

    def blocks(self) -> Iterator[Floats]:
        """Values (n, few metrics) of neighbouring metrics; infinite ones are missing."""
        width = max(1, min(METRICS, _CELLS // max(1, len(self))))
        for first in range(0, len(self.table.names), width):
            chosen = slice(first, first + width)
            values = self.table.values[:, chosen]
            if self.baseline:
                values = np.concatenate([self._of_baseline(chosen), values])
            yield _held(np.where(np.isfinite(values), values, np.nan), self.since)

    def _of_baseline(self, chosen: slice) -> Floats:
        assert self.baseline is not None
        places = self._places[chosen]
        values = self.baseline.values[:, places]
        values[:, places < 0] = np.nan
        return values

    @cached_property
    def _places(self) -> NDArray[np.intp]:
        """The column of the baseline of each metric, -1 where it has none."""
        assert self.baseline is not None
        at = {name: place for place, name in enumerate(self.baseline.names)}
        return np.array([at.get(name, -1) for name in self.table.names], np.intp)


def _held(values: Floats, since: NDArray[np.intp]) -> Floats:
    """Values with short holes filled by what was last known in the same stretch."""
    missing: Bools = np.isnan(values)
    if not missing.any():
        return values
    rows = np.arange(len(values))[:, None]
    last = np.maximum.accumulate(np.where(missing, -1, rows), axis=0)
    near = (last >= 0) & (rows - last <= np.minimum(_HELD, since[:, None]))
    held = np.take_along_axis(values, np.maximum(last, 0), axis=0)
    return np.where(near, held, np.nan)
