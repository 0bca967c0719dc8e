"""Values at given ranks of rows of kept seconds, in compiled loops.

Values that come and leave change how many values lie below the value at a rank.  While the rank
lies between the two counts the value at it is the same.  Otherwise the new value is a neighbor in
sorted order, which is found faster than by sorting.
"""

from __future__ import annotations

import numpy as np

from reveal_analyzer.arrays import Bools, Floats32, Indices, Ints16
from reveal_analyzer.kernels.order_statistics import KeptRows, RankedValues
from reveal_analyzer.numba_jit import inlined, kernel

_LANES = 8  # minima computed side by side, as each step of a single one waits for the last
_UP, _DOWN = np.float32(1.0), np.float32(-1.0)


@kernel
def differing(new: Floats32, rows: KeptRows, levels: Floats32) -> Bools:
    """Return which columns left their level; see ``order_statistics.differing``."""
    views, ways = rows
    unequal = np.zeros(levels.size, np.bool_)
    for second in range(len(new)):
        for row in range(views.size):
            values = new[second, views[row], ways[row]]
            for column in range(levels.size):
                unequal[column] |= values[column] != levels[column]
    return unequal


@kernel
def store_seconds(
    new: Floats32,
    rows: KeptRows,
    columns: Indices,
    kept: Floats32,
    first: int,
    ranked: RankedValues,
    ranks: Indices,
) -> None:
    """Store new seconds; see ``order_statistics.store_seconds``.

    Rows whose values at the ranks were known do not become stale.
    """
    incoming, previous = _gather(new, rows, columns), np.empty(len(new), np.float32)
    lanes = np.empty(_LANES, np.float32)
    for column_index in range(columns.size):
        for row in range(rows[0].size):
            values, current = kept[column_index, row], incoming[row, column_index]
            changed = False
            for second in range(current.size):
                slot = first + second
                slot = slot - values.size if slot >= values.size else slot
                previous[second] = values[slot]
                values[slot] = current[second]
                changed |= previous[second] != current[second]
            if changed and not ranked.stale[column_index, row]:
                selected, below = (
                    ranked.selected[column_index, row],
                    ranked.below[column_index, row],
                )
                not_above = ranked.not_above[column_index, row]
                if _count_moves(previous, current, selected, below, not_above, ranks):
                    _walk_ranks(values, selected, below, not_above, ranks, lanes)


@inlined
def _gather(new: Floats32, rows: KeptRows, columns: Indices) -> Floats32:
    """Return the new seconds of these columns side by side: (rows, columns, seconds)."""
    views, ways = rows
    incoming = np.empty((views.size, columns.size, len(new)), np.float32)
    for row in range(views.size):
        for second in range(len(new)):
            values = new[second, views[row], ways[row]]
            for column_index in range(columns.size):
                incoming[row, column_index, second] = values[columns[column_index]]
    return incoming


@inlined
def _count_moves(
    previous: Floats32,
    current: Floats32,
    selected: Floats32,
    below: Ints16,
    not_above: Ints16,
    ranks: Indices,
) -> bool:
    """Update the counts; return whether a value at a rank may have changed."""
    moved = False
    for rank in range(ranks.size):
        value, fewer, more = selected[rank], 0, 0
        for second in range(current.size):
            fewer += int(current[second] < value) - int(previous[second] < value)
            more += int(current[second] <= value) - int(previous[second] <= value)
        below[rank] += np.int16(fewer)
        not_above[rank] += np.int16(more)
        moved |= below[rank] > ranks[rank] or not_above[rank] <= ranks[rank]
    return moved


@inlined
def _walk_ranks(
    values: Floats32,
    selected: Floats32,
    below: Ints16,
    not_above: Ints16,
    ranks: Indices,
    lanes: Floats32,
) -> None:
    """Walk from the old value at each rank to the new one, one distinct value at a time.

    It ends at the last value, whatever the values are (NaN among them).
    """
    for rank in range(ranks.size):
        target = ranks[rank]
        while below[rank] > target or not_above[rank] <= target:
            direction = _DOWN if below[rank] > target else _UP
            nearest = _next_value(values, selected[rank], direction, lanes)
            if nearest == selected[rank]:
                break
            fewer, more = 0, 0
            for index in range(values.size):
                fewer += int(values[index] < nearest)
                more += int(values[index] <= nearest)
            selected[rank], below[rank], not_above[rank] = nearest, fewer, more


@inlined
def _next_value(
    values: Floats32, value: np.float32, direction: np.float32, lanes: Floats32
) -> np.float32:
    """Return the next higher (``direction`` 1) or lower (-1) value, infinite if there is none."""
    whole, beyond = values.size // _LANES * _LANES, direction * value
    lanes[:] = np.inf
    for first in range(0, whole, _LANES):
        for lane in range(_LANES):
            value, best = direction * values[first + lane], lanes[lane]
            lanes[lane] = value if value > beyond and value < best else best
    found = lanes[0]
    for lane in range(1, _LANES):
        found = lanes[lane] if lanes[lane] < found else found
    for index in range(whole, values.size):
        value = direction * values[index]
        found = value if value > beyond and value < found else found
    nearest: np.float32 = direction * found
    return nearest


@kernel
def read_ranks(ordered: Floats32, ranks: Indices, ranked: RankedValues) -> None:
    """Read the values at the ranks of the stale rows; see ``order_statistics.read_ranks``.

    The ranks ascend, so equal values at two of them are counted once.
    """
    number = 0
    for column_index in range(len(ranked.stale)):
        for row in range(ranked.stale.shape[1]):
            if not ranked.stale[column_index, row]:
                continue
            values, low, high = ordered[number], 0, 0
            for rank in range(ranks.size):
                position = ranks[rank]
                value = values[position]
                if position >= high:
                    low, high = position, position + 1
                    while low > 0 and values[low - 1] == value:
                        low -= 1
                    while high < values.size and values[high] == value:
                        high += 1
                ranked.selected[column_index, row, rank] = value
                ranked.below[column_index, row, rank] = low
                ranked.not_above[column_index, row, rank] = high
            ranked.stale[column_index, row] = False
            number += 1


@kernel
def range_bounds(
    selected: Floats32, sides: KeptRows, varying: Indices, levels: Floats32, floors: Floats32
) -> tuple[Floats32, Floats32, Bools]:
    """Return bounds, middle and constant columns; see ``order_statistics.range_bounds``."""
    bounds, middle = np.empty((floors.size, 4, levels.size), np.float32), levels.copy()
    for view in range(floors.size):
        bounds[view, 0], bounds[view, 1] = levels, levels
        bounds[view, 2:] = floors[view]
    constant = np.empty(varying.size, np.bool_)
    half = np.float32(0.5)
    for column_index in range(varying.size):
        column, values = varying[column_index], selected[column_index]
        for view in range(floors.size):
            up, down, floor = values[sides[0][view]], values[sides[1][view]], floors[view]
            above, below = (up[4] - up[2]) * half, (down[4] - down[2]) * half
            bounds[view, 0, column], bounds[view, 1, column] = up[5], down[1]
            bounds[view, 2, column] = above if above > floor else floor
            bounds[view, 3, column] = below if below > floor else floor
        middle[column] = values[sides[0][0], 3]
        constant[column_index] = True
        for row in range(selected.shape[1]):
            constant[column_index] &= (
                values[row, 0] == values[0, 0] and values[row, 6] == values[0, 0]
            )
    return bounds, middle, constant
