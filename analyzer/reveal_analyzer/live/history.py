"""Accepted history of one node, stored so that new ranges are cheap.

New ranges need the order statistics of five minutes of every column.  So the seconds of a column
are stored side by side, and a column that has been constant all the time is neither sorted nor
stored: on most hosts that is every second column.  The values at the ranks are kept, and only rows
in which they may have changed are read again (``kernels.order_statistics``).  New seconds wait in a
buffer until ranges are requested, as storing a single one touches a thousand distant addresses.
"""

from __future__ import annotations

import numpy as np

from reveal_analyzer.arrays import Bools, Floats32, Indices
from reveal_analyzer.kernels import backend
from reveal_analyzer.kernels.order_statistics import RankedValues
from reveal_analyzer.live.column_map import ColumnMap, flagged, positions
from reveal_analyzer.live.packing import pack_quantiles, unpack_quantiles
from reveal_analyzer.live.ranges import Ranges, selected_ranks, spread_floors
from reveal_analyzer.live.resampling import QUANTILES, ascending, resample, shuffled
from reveal_analyzer.live.settings import LiveSettings
from reveal_analyzer.state.tree import StateTree, array, finite_array, integer

_BUFFERED = 32  # seconds


class History:
    """A ring of the last ``settings.keep`` seconds that were accepted as normal."""

    def __init__(self, settings: LiveSettings) -> None:
        self._settings = settings
        # a view of one second needs one row, as both directions are the value itself
        rows = [
            (view, direction)
            for view, (width, _) in enumerate(settings.views)
            for direction in (0, 1)
            if width > 1 or not direction
        ]
        views = range(len(settings.views))
        row_views, row_directions = (np.array(part, np.intp) for part in zip(*rows, strict=True))
        self._rows = row_views, row_directions
        upward = [rows.index((view, 0)) for view in views]
        downward = [rows.index((view, 1) if (view, 1) in rows else (view, 0)) for view in views]
        self._sides = np.array(upward, np.intp), np.array(downward, np.intp)
        self._floors = spread_floors(settings)
        self._buffer: list[Floats32] = []
        self._left_out: list[Bools | None] = []  # of each buffered second
        self._stored = 0
        self._start(0)

    def _start(self, columns: int) -> None:
        self._levels: Floats32 = np.zeros(columns, np.float32)
        self._varying: Indices = np.zeros(0, np.intp)  # the columns that _kept has rows of
        rows = self._rows[0].size
        self._kept: Floats32 = np.zeros((0, rows, self._settings.keep), np.float32)
        self._ranked = RankedValues.unknown(0, rows, QUANTILES)

    @property
    def rows(self) -> int:
        """Return the number of rows that are stored of a column."""
        return self._rows[0].size

    def __len__(self) -> int:
        return min(self._stored + len(self._buffer), self._settings.keep)

    def append(self, views: Floats32, left_out: Bools | None = None) -> None:
        """Add the views (views, 2, columns) of a second; the array must not change later.

        Of columns that are left out, an accepted value is repeated.
        """
        self._buffer.append(views)
        self._left_out.append(left_out)
        if len(self._buffer) >= min(_BUFFERED, self._settings.keep):
            self._flush()

    def ranges(self) -> Ranges:
        """Return the ranges of the history; needs at least one second."""
        self._flush()
        self._rank_stale_rows()
        bounds, middle, constant = backend.current().range_bounds(
            self._ranked.selected, self._sides, self._varying, self._levels, self._floors
        )
        if constant.any():
            self._drop_constant(constant)
        return Ranges(bounds, middle)

    def constant_levels(self) -> tuple[Floats32, Bools]:
        """Return the level of each column, and which have not left it in all the history."""
        self._flush()
        constant = np.ones(self._levels.size, np.bool_)
        constant[self._varying] = False
        return self._levels, constant

    def _rank_stale_rows(self) -> None:
        stale = self._ranked.stale
        if stale.any():
            rows = self._kept[stale, : len(self)]
            rows.sort(axis=-1)
            backend.current().read_ranks(rows, selected_ranks(len(self)), self._ranked)

    def quantiles(self, columns: Indices) -> Floats32:
        """Return the history of columns as (columns, rows, 7): each row's values at the ranks."""
        self._flush()
        self._rank_stale_rows()
        rows = self._row_of(columns)
        levels = self._levels[columns][:, None, None]
        result = np.broadcast_to(levels, (columns.size, self._rows[0].size, QUANTILES)).copy()
        varying = rows >= 0
        result[varying] = self._ranked.selected[rows[varying]]
        return result

    def restore(self, columns: Indices, quantiles: Floats32) -> None:
        """Replace the history of columns by one with these ``quantiles``, as returned before."""
        self._flush()
        self._add_varying(flagged(columns, self._levels.size))
        rows = self._row_of(columns)
        self._kept[rows, :, : len(self)] = resample(quantiles, len(self))
        self._ranked.stale[rows] = True

    def remap(self, column_map: ColumnMap) -> None:
        """Adopt a new set of columns."""
        self._flush()
        if not self._stored:
            return
        self._levels = column_map.levels(self._levels)
        # row of each previous column, -1 for constant ones; the last entry serves new columns
        last = max(column_map.source.max(initial=-1), self._varying.max(initial=-1))
        previous = positions(self._varying, last + 2)[column_map.source]
        self._varying = np.flatnonzero(previous >= 0)
        self._select(previous[self._varying])

    def _row_of(self, columns: Indices) -> Indices:
        """Return the row of each column in ``_kept``, -1 for constant ones."""
        return positions(self._varying, self._levels.size)[columns]

    def _flush(self) -> None:
        """Store the buffered seconds."""
        if not self._buffer:
            return
        if not self._stored:
            self._start(self._buffer[0].shape[-1])
            self._levels[:] = self._buffer[0][0, 0]
        kernels, new = backend.current(), np.array(self._buffer, np.float32)
        self._repeat_accepted(new)
        self._add_varying(kernels.differing(new, self._rows, self._levels))
        keep, ranks = self._settings.keep, selected_ranks(self._settings.keep)
        if self._stored < keep:  # the ranks depend on the number of seconds
            self._ranked.stale[:] = True
        first = self._stored % keep
        kernels.store_seconds(
            new, self._rows, self._varying, self._kept, first, self._ranked, ranks
        )
        self._stored += len(new)
        self._buffer, self._left_out = [], []

    def _repeat_accepted(self, new: Floats32) -> None:
        """Replace what was left out by the value in its slot, so that no accepted one is lost.

        A slot that was never used takes the value of a used one.
        """
        marked = [(second, mark) for second, mark in enumerate(self._left_out) if mark is not None]
        if not marked:
            return
        found = [np.flatnonzero(mark) for _, mark in marked]
        seconds = np.repeat([second for second, _ in marked], [each.size for each in found])
        columns = np.concatenate(found)
        new[seconds, :, :, columns] = self._levels[columns][:, None, None]
        rows = self._row_of(columns)
        stored = rows >= 0
        seconds, columns, rows = seconds[stored], columns[stored], rows[stored]
        slots = (self._stored + seconds) % self._settings.keep
        slots = np.where(slots < self._stored, slots, slots % max(self._stored, 1))
        views, ways = self._rows
        new[seconds[:, None], views, ways, columns[:, None]] = self._kept[rows, :, slots]

    def _add_varying(self, moved: Bools) -> None:
        """Add rows for columns that were constant until now, filled with their level."""
        moved[self._varying] = False
        fresh = np.flatnonzero(moved)
        if fresh.size:
            shape = fresh.size, *self._kept.shape[1:]
            constant = np.broadcast_to(self._levels[fresh][:, None, None], shape)
            self._varying = np.concatenate([self._varying, fresh])
            self._kept = np.concatenate([self._kept, constant])
            unknown = RankedValues.unknown(fresh.size, self._kept.shape[1], QUANTILES)
            self._ranked = self._ranked.concat(unknown)

    def _drop_constant(self, constant: Bools) -> None:
        """Drop the rows of columns that are the same in every second by now."""
        self._levels[self._varying[constant]] = self._ranked.selected[constant, 0, 0]
        self._varying = self._varying[~constant]
        self._select(~constant)

    def _select(self, chosen: Indices | Bools) -> None:
        """Keep the rows of these columns only."""
        self._kept, self._ranked = self._kept[chosen], self._ranked.select(chosen)

    def bounds_of(self, quantiles: Floats32) -> Floats32:
        """Return the bounds (views, 4, columns) of a history with these quantiles."""
        columns = len(quantiles)
        levels, every = np.zeros(columns, np.float32), np.arange(columns)
        bounds, _, _ = backend.current().range_bounds(
            quantiles, self._sides, every, levels, self._floors
        )
        return bounds

    def save(self) -> StateTree:
        """Return the number of seconds and the quantiles of all columns; needs one second."""
        self._flush()
        base, steps = pack_quantiles(self.quantiles(np.arange(self._levels.size)))
        return {"seconds": len(self), "middle": base, "quantiles": steps}

    def load(self, tree: StateTree, columns: int) -> None:
        """Start with a saved history of so many columns."""
        count = integer(tree, "seconds", least=1, most=1 << 20)
        shape = QUANTILES, self._rows[0].size, columns
        base = finite_array(tree, "middle", np.float32, (columns,))
        quantiles = unpack_quantiles(base, array(tree, "quantiles", np.int16, shape))
        np.maximum.accumulate(quantiles, axis=-1, out=quantiles)  # whatever the bytes were
        self._start(columns)
        self._levels[:] = quantiles[:, 0, 0]
        self._stored = min(count, self._settings.keep)
        varying = np.flatnonzero((quantiles != quantiles[:, :1, :1]).any(axis=(1, 2)))
        if varying.size:
            self._fill(varying, quantiles[varying])

    def _fill(self, varying: Indices, quantiles: Floats32) -> None:
        """Start with the history of the columns that vary; its values at the ranks are known."""
        count, values = self._stored, ascending(quantiles, self._stored)
        ranked = RankedValues.unknown(varying.size, self.rows, QUANTILES)
        ordered = values.reshape(-1, count)
        backend.current().read_ranks(ordered, selected_ranks(count), ranked)
        self._varying, self._ranked = varying, ranked
        self._kept = shuffled(values)
        if count < self._settings.keep:
            unused = np.zeros((*values.shape[:2], self._settings.keep - count), np.float32)
            self._kept = np.concatenate([self._kept, unused], axis=-1)
