"""The arithmetic of a second of the score by compiled loops: that of ``steps`` to the last bit."""

from __future__ import annotations

import numpy as np

from reveal_analyzer.arrays import Bools, Floats, Floats32, Indices
from reveal_analyzer.kernels.live import CLIP, FADING, Families, OwnScores, Place
from reveal_analyzer.numba_jit import kernel

ONE, NOTHING = np.float32(1.0), np.float32(0.0)


@kernel
def stirred(values: Floats, first: Floats, rests: Bools) -> Indices:
    """As ``steps.stirred``."""
    found = np.empty(values.size, np.intp)
    count = 0
    for column in range(values.size):
        value = values[column]
        if rests[column] and value != first[column] and not np.isnan(value):
            found[count] = column
            count += 1
    return found[:count]


@kernel
def spread_out(rows: Floats32, places: Indices, width: int) -> Floats32:
    """As ``steps.spread_out``."""
    made = np.zeros((len(rows), width), np.float32)
    for row in range(len(rows)):
        for at in range(places.size):
            made[row, places[at]] = rows[row, at]
    return made


@kernel
def exchange(
    ring: Floats32, rows: Floats32, spans: Indices, place: Place, given: Floats, out: Floats32
) -> None:
    """As ``steps.exchange``."""
    at, seconds = place
    columns, last = given.size, ring[at - 1]
    seen, rest = np.empty(columns, np.float32), np.empty(columns, np.float32)
    for column in range(columns):
        held = last[column] if seconds > 1 else NOTHING
        seen[column] = held if np.isnan(given[column]) else np.float32(given[column])
    for view in range(len(spans)):
        width, need, first = spans[view, 0], spans[view, 1], spans[view, 2]
        if width == 1:
            out[view, 0, :] = seen
            out[view, 1, :] = seen
            continue
        leaving = ring[(at - width) % len(ring)]
        rest[:] = rows[first]  # below what the first row may become
        for row in range(first, first + width - 1):
            low, high = rows[row], rows[row + 1]
            least = row == first
            for column in range(columns):
                coming, before = seen[column], rest[column]
                stays = low[column] if low[column] < leaving[column] else high[column]
                value = stays if stays < coming else coming
                low[column] = value if least or value > before else before
                rest[column] = stays
        last = rows[first + width - 1]
        for column in range(columns):
            last[column] = seen[column] if seen[column] > rest[column] else rest[column]
        there = min(width, seconds)
        need = min(need, there)
        out[view, 0, :] = rows[first + there - need]
        out[view, 1, :] = rows[first + need - 1]
    ring[at, :] = seen


def judge(
    views: Floats32, bounds: Floats32, own: Floats32, weights: Floats32, families: Families
) -> tuple[Floats32, Floats32, Floats]:
    """As ``steps.judge``."""
    columns = views.shape[-1]
    outside, rest = np.empty((2, columns), np.float32), np.empty((3, columns), np.float32)
    means = np.empty(len(families.places))
    _weigh(views, bounds, own, weights, outside, rest, CLIP)
    _pool(rest[2], families.order, families.starts, families.places, families.counted,
          families.top, means)  # fmt: skip
    return outside, rest, means


@kernel
def _weigh(
    views: Floats32,
    bounds: Floats32,
    own: Floats32,
    weights: Floats32,
    outside: Floats32,
    rest: Floats32,
    most_outside: np.float32,
) -> None:
    columns = views.shape[2]
    for way in range(2):
        worst, silenced = outside[way], rest[way]
        worst[:] = NOTHING
        for view in range(len(views)):
            held, bound, spread = views[view, way], bounds[view, way], bounds[view, 2 + way]
            for column in range(columns):
                off = held[column] - bound[column]
                far = (off if way == 0 else -off) / spread[column]
                worst[column] = far if far > worst[column] else worst[column]
        for column in range(columns):
            far = worst[column] if worst[column] < most_outside else most_outside
            worst[column] = far
            own_way = own[way, column]
            silenced[column] = far / (own_way if own_way > ONE else ONE)
    for column in range(columns):
        up, down = rest[0, column] * weights[0, column], rest[1, column] * weights[1, column]
        most = up if up > down else down
        rest[2, column] = most if most < weights[2, column] else weights[2, column]


@kernel
def _pool(
    weighed: Floats32,
    order: Indices,
    starts: Indices,
    places: Indices,
    counted: Floats,
    top: int,
    means: Floats,
) -> None:
    families = len(starts)
    worst = np.empty(top, np.float32)
    for subsystem in range(len(places)):
        worst[:] = NOTHING
        for family in places[subsystem]:
            if family == families:
                continue
            best = NOTHING
            end = starts[family + 1] if family + 1 < families else len(order)
            for at in range(starts[family], end):
                value = weighed[order[at]]
                best = value if value > best else best
            place = 0  # among the worst, which stand upward
            while place < top and best > worst[place]:
                if place:
                    worst[place - 1] = worst[place]
                worst[place] = best
                place += 1
        total = np.float64(worst[0])
        for place in range(1, top):
            total = total + np.float64(worst[place])
        means[subsystem] = total / counted[subsystem]


def learn(own: Floats32, outside: Floats32) -> None:
    """As ``steps.learn``."""
    _learn(own, outside, FADING)


@kernel
def _learn(own: Floats32, outside: Floats32, fading: np.float32) -> None:
    for way in range(2):
        for column in range(own.shape[2]):
            first, then = own[0, way, column] * fading, own[1, way, column] * fading
            now = outside[way, column]
            second = first if first < now else now
            own[1, way, column] = then if then > second else second
            own[0, way, column] = first if first > now else now


@kernel
def enlist(scores: OwnScores, new: Floats, at: int, known: int) -> bool:
    """As ``steps.enlist``: of the scores only those between the two that come and leave move."""
    moved = False
    for subsystem in range(new.size):
        row, score, leaves = scores.ordered[subsystem], new[subsystem], scores.ring[subsystem, at]
        end, place = known, known
        if known == row.size:
            if leaves == score:
                continue
            end, place = known - 1, np.searchsorted(row, leaves)
        moved = True
        while place < end and row[place + 1] < score:
            row[place] = row[place + 1]
            place += 1
        while place > 0 and row[place - 1] > score:
            row[place] = row[place - 1]
            place -= 1
        row[place] = score
        scores.ring[subsystem, at] = score
    return moved
