"""What stands at some ranks of kept rows by compiled loops: what ``standing`` finds.

A value that comes and one that leaves move the counts below and up to what stands at a rank;
while the rank lies between the two counts, the same stands there.  Where it does not, what stands
there now is a neighbour of what stood there, or one of its neighbours: found sooner than by
sorting.
"""

from __future__ import annotations

import numpy as np

from reveal_analyzer.arrays import Bools, Floats32, Indices, Ints16
from reveal_analyzer.kernels.order_statistics import Rows, Standing
from reveal_analyzer.numba_jit import kernel, part

_LANES = 8  # minima taken side by side: one after the other they wait for each other
_UP, _DOWN = np.float32(1.0), np.float32(-1.0)


@kernel
def differing(new: Floats32, rows: Rows, still: Floats32) -> Bools:
    """As ``standing.differing``."""
    views, ways = rows
    unlike = np.zeros(still.size, np.bool_)
    for second in range(len(new)):
        for row in range(views.size):
            values = new[second, views[row], ways[row]]
            for column in range(still.size):
                unlike[column] |= values[column] != still[column]
    return unlike


@kernel
def renew(
    new: Floats32, rows: Rows, columns: Indices, kept: Floats32, first: int, standing: Standing,
    ranks: Indices,
) -> None:  # fmt: skip
    """As ``standing.renew``, but rows of which it is known what stood there do not become stale."""
    coming, before = _gathered(new, rows, columns), np.empty(len(new), np.float32)
    lanes = np.empty(_LANES, np.float32)
    for place in range(columns.size):
        for row in range(rows[0].size):
            values, now = kept[place, row], coming[row, place]
            other = False
            for second in range(now.size):
                at = first + second
                at = at - values.size if at >= values.size else at
                before[second] = values[at]
                values[at] = now[second]
                other |= before[second] != now[second]
            if other and not standing.stale[place, row]:
                picks, below = standing.picks[place, row], standing.below[place, row]
                upto = standing.upto[place, row]
                if _moved(before, now, picks, below, upto, ranks):
                    _follow(values, picks, below, upto, ranks, lanes)


@part
def _gathered(new: Floats32, rows: Rows, columns: Indices) -> Floats32:
    """The new seconds of these columns side by side: (rows, columns, seconds)."""
    views, ways = rows
    coming = np.empty((views.size, columns.size, len(new)), np.float32)
    for row in range(views.size):
        for second in range(len(new)):
            values = new[second, views[row], ways[row]]
            for place in range(columns.size):
                coming[row, place, second] = values[columns[place]]
    return coming


@part
def _moved(
    before: Floats32, now: Floats32, picks: Floats32, less: Ints16, most: Ints16, ranks: Indices
) -> bool:
    """Count what comes and leaves; whether any of the picks may stand elsewhere now."""
    moved = False
    for rank in range(ranks.size):
        pick, under, upto = picks[rank], 0, 0
        for second in range(now.size):
            under += int(now[second] < pick) - int(before[second] < pick)
            upto += int(now[second] <= pick) - int(before[second] <= pick)
        less[rank] += np.int16(under)
        most[rank] += np.int16(upto)
        moved |= less[rank] > ranks[rank] or most[rank] <= ranks[rank]
    return moved


@part
def _follow(
    values: Floats32, picks: Floats32, less: Ints16, most: Ints16, ranks: Indices, lanes: Floats32
) -> None:
    """Go from what stood at each rank to what stands there, one value after the other.

    It ends beyond the last one, whatever the values.
    """
    for rank in range(ranks.size):
        place = ranks[rank]
        while less[rank] > place or most[rank] <= place:
            way = _DOWN if less[rank] > place else _UP
            nearest = _neighbour(values, picks[rank], way, lanes)
            if nearest == picks[rank]:
                break
            under, upto = 0, 0
            for at in range(values.size):
                under += int(values[at] < nearest)
                upto += int(values[at] <= nearest)
            picks[rank], less[rank], most[rank] = nearest, under, upto


@part
def _neighbour(values: Floats32, pick: np.float32, way: np.float32, lanes: Floats32) -> np.float32:
    """The next one that is higher (``way`` 1) or lower (-1), infinite where there is none."""
    whole, beyond = values.size // _LANES * _LANES, way * pick
    lanes[:] = np.inf
    for first in range(0, whole, _LANES):
        for lane in range(_LANES):
            value, best = way * values[first + lane], lanes[lane]
            lanes[lane] = value if value > beyond and value < best else best
    found = lanes[0]
    for lane in range(1, _LANES):
        found = lanes[lane] if lanes[lane] < found else found
    for at in range(whole, values.size):
        value = way * values[at]
        found = value if value > beyond and value < found else found
    nearest: np.float32 = way * found
    return nearest


@kernel
def stand(ordered: Floats32, ranks: Indices, standing: Standing) -> None:
    """As ``standing.stand``; the ranks go up, and what stands at two of them is looked at once."""
    number = 0
    for place in range(len(standing.stale)):
        for row in range(standing.stale.shape[1]):
            if not standing.stale[place, row]:
                continue
            values, low, high = ordered[number], 0, 0
            for rank in range(ranks.size):
                at = ranks[rank]
                value = values[at]
                if at >= high:
                    low, high = at, at + 1
                    while low > 0 and values[low - 1] == value:
                        low -= 1
                    while high < values.size and values[high] == value:
                        high += 1
                standing.picks[place, row, rank] = value
                standing.below[place, row, rank] = low
                standing.upto[place, row, rank] = high
            standing.stale[place, row] = False
            number += 1


@kernel
def bound(
    picks: Floats32, sides: Rows, moving: Indices, still: Floats32, floors: Floats32
) -> tuple[Floats32, Floats32, Bools]:
    """As ``standing.bound``."""
    bounds, middle = np.empty((floors.size, 4, still.size), np.float32), still.copy()
    for view in range(floors.size):
        bounds[view, 0], bounds[view, 1] = still, still
        bounds[view, 2:] = floors[view]
    calm = np.empty(moving.size, np.bool_)
    half = np.float32(0.5)
    for place in range(moving.size):
        column, of = moving[place], picks[place]
        for view in range(floors.size):
            up, down, floor = of[sides[0][view]], of[sides[1][view]], floors[view]
            above, below = (up[4] - up[2]) * half, (down[4] - down[2]) * half
            bounds[view, 0, column], bounds[view, 1, column] = up[5], down[1]
            bounds[view, 2, column] = above if above > floor else floor
            bounds[view, 3, column] = below if below > floor else floor
        middle[column] = of[sides[0][0], 3]
        calm[place] = True
        for row in range(picks.shape[1]):
            calm[place] &= of[row, 0] == of[0, 0] and of[row, 6] == of[0, 0]
    return bounds, middle, calm
