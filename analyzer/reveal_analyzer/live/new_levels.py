"""Levels that were learned although they came with an alarm, and what was normal before each.

The score learns a lasting fault as the new normal of its columns, so that it can detect others.
When the level from before returns, the history from before is more accurate than the one that was
learned during the fault, so it is kept as quantiles and restored, column by column.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from reveal_analyzer.arrays import Bools, Floats32, Indices, Ints
from reveal_analyzer.kernels import live
from reveal_analyzer.kernels.live import UNIT
from reveal_analyzer.live.gate import CALM_S
from reveal_analyzer.live.history import History
from reveal_analyzer.live.packing import effective, pack_quantiles, unpack_quantiles
from reveal_analyzer.live.resampling import QUANTILES
from reveal_analyzer.state.tree import StateError, StateTree, array, finite_array

LONGEST_S = 24 * 3600  # after a day the new level is how the node is


@dataclass(frozen=True)
class ColumnsBefore:
    """What was normal for some columns before their level changed; the first axis is the column.

    ``columns`` are indices among all columns of the node.  ``quantiles`` (n, rows, 7) are those of
    ``History``, ``bounds`` (n, views, 4) those of ``Ranges``, ``own_excess`` (n, 2, 2) that of
    ``Baseline``.
    """

    columns: Indices
    quantiles: Floats32
    bounds: Floats32
    own_excess: Floats32

    def select(self, chosen: Indices | Bools) -> ColumnsBefore:
        """Return some of the columns."""
        return ColumnsBefore(*(getattr(self, part.name)[chosen] for part in fields(self)))

    def joined(self, other: ColumnsBefore) -> ColumnsBefore:
        """Return these columns and those of ``other``."""
        parts = ((getattr(self, part.name), getattr(other, part.name)) for part in fields(self))
        return ColumnsBefore(*(np.concatenate(pair) for pair in parts))

    def excess(self, views: Floats32) -> Floats32:
        """Return the suppressed distance of views (views, 2, n) from before, (2, n) in spreads."""
        outside = live.excess(views, self.bounds.transpose(1, 2, 0))
        outside /= np.maximum(self.own_excess[:, 1].T, UNIT)
        return outside


class NewLevels:
    """The columns of one node that are in a learned new level, second by second."""

    def __init__(self) -> None:
        self._before: ColumnsBefore | None = None
        self._seconds: Ints = np.zeros(0, np.int64)  # since the level was learned
        self._calm: Ints = np.zeros(0, np.int64)

    @property
    def before(self) -> ColumnsBefore | None:
        """Return what was normal for these columns before; None if there are none."""
        return self._before

    @property
    def columns(self) -> Indices:
        """Return their indices among all columns."""
        return np.zeros(0, np.intp) if self._before is None else self._before.columns

    @property
    def seconds(self) -> Ints:
        """Return for how many seconds the level of each has been learned."""
        return self._seconds

    def add(self, before: ColumnsBefore) -> None:
        """Add columns whose level begins to be learned; none may be there already."""
        none = np.zeros(before.columns.size, np.int64)
        self._before = before if self._before is None else self._before.joined(before)
        self._seconds = np.concatenate([self._seconds, none])
        self._calm = np.concatenate([self._calm, none])

    def update(self, excess: Floats32, missing: Bools) -> ColumnsBefore | None:
        """Count a second by each column's distance from before; return those that are back.

        A missing column is neither back nor away.
        """
        assert self._before is not None, "there are columns"
        near = (excess <= UNIT).all(axis=0)
        self._seconds = self._seconds + 1
        self._calm = np.where(missing, self._calm, np.where(near, self._calm + 1, 0))
        back, over = self._calm >= CALM_S, self._seconds >= LONGEST_S
        returned = self._before.select(back) if back.any() else None
        if back.any() or over.any():
            self._keep(~(back | over))
        return returned

    def adopt_table(self, source: Indices) -> None:
        """Adopt another table: previous index of each of its columns, -1 for new ones."""
        if self._before is None:
            return
        columns = self._before.columns
        now = np.full(max(source.max(initial=-1), columns.max(initial=-1)) + 1, -1, np.intp)
        known = source >= 0
        now[source[known]] = np.flatnonzero(known)
        kept = now[columns] >= 0
        self._keep(kept)
        if self._before is not None:
            self._before = replace(self._before, columns=now[columns[kept]])

    def _keep(self, chosen: Bools) -> None:
        assert self._before is not None, "there are columns"
        self._before = self._before.select(chosen) if chosen.any() else None
        self._seconds, self._calm = self._seconds[chosen], self._calm[chosen]

    def save(self) -> StateTree:
        """Return what was normal before, without bounds: they follow from the quantiles."""
        before = self._before
        if before is None:
            return {}
        middle, quantiles = pack_quantiles(before.quantiles)
        return {
            "columns": before.columns.astype(np.int32),
            "middle": middle,
            "quantiles": quantiles,
            "own_excess": effective(before.own_excess),
            "seconds": self._seconds.astype(np.int32),
            "calm": self._calm.astype(np.int16),
        }

    def restore(self, tree: StateTree, columns: int, history: History) -> None:
        """Continue with saved levels; ``columns`` is the number of all columns."""
        if not tree:
            return
        indices = array(tree, "columns", np.intp, (None,))
        if indices.size and not 0 <= indices.min() <= indices.max() < columns:
            raise StateError("'columns' are not those of the table")
        if not indices.size:
            return
        count, rows = indices.size, history.rows
        middle = finite_array(tree, "middle", np.float32, (count,))
        steps = array(tree, "quantiles", np.int16, (QUANTILES, rows, count))
        quantiles = unpack_quantiles(middle, steps)
        self._before = ColumnsBefore(
            columns=indices,
            quantiles=quantiles,
            bounds=history.bounds_of(quantiles).transpose(2, 0, 1),
            own_excess=finite_array(tree, "own_excess", np.float32, (count, 2, 2)),
        )
        self._seconds = array(tree, "seconds", np.int64, (count,))
        self._calm = array(tree, "calm", np.int64, (count,))
