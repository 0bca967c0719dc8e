"""Arithmetic of the live score for one second, in compiled loops: same bits as ``live``."""

from __future__ import annotations

import numpy as np

from reveal_analyzer.arrays import Bools, Floats, Floats32, Indices
from reveal_analyzer.kernels.live import CLIP, DECAY, MetricGroups, RecentScores, RingPosition
from reveal_analyzer.numba_jit import kernel

UNIT, ZERO = np.float32(1.0), np.float32(0.0)


@kernel
def changed_columns(values: Floats, levels: Floats, constant: Bools) -> Indices:
    """Return the constant columns whose value changed; see ``live.changed_columns``."""
    found = np.empty(values.size, np.intp)
    count = 0
    for column in range(values.size):
        value = values[column]
        if constant[column] and value != levels[column] and not np.isnan(value):
            found[count] = column
            count += 1
    return found[:count]


@kernel
def scatter(rows: Floats32, indices: Indices, width: int) -> Floats32:
    """Place rows of some columns into wider rows; see ``live.scatter``."""
    result = np.zeros((len(rows), width), np.float32)
    for row in range(len(rows)):
        for index in range(indices.size):
            result[row, indices[index]] = rows[row, index]
    return result


@kernel
def slide_windows(
    ring: Floats32,
    ordered: Floats32,
    spans: Indices,
    position: RingPosition,
    values: Floats,
    out: Floats32,
) -> None:
    """Add a second to the windows; see ``live.slide_windows``."""
    slot, seconds = position
    columns, last = values.size, ring[slot - 1]
    current, remaining = np.empty(columns, np.float32), np.empty(columns, np.float32)
    for column in range(columns):
        previous = last[column] if seconds > 1 else ZERO
        current[column] = previous if np.isnan(values[column]) else np.float32(values[column])
    for view in range(len(spans)):
        width, need, first = spans[view, 0], spans[view, 1], spans[view, 2]
        if width == 1:
            out[view, 0, :] = current
            out[view, 1, :] = current
            continue
        leaving = ring[(slot - width) % len(ring)]
        remaining[:] = ordered[first]  # lower bound of the first row
        for row in range(first, first + width - 1):
            low, high = ordered[row], ordered[row + 1]
            least = row == first
            for column in range(columns):
                incoming, below = current[column], remaining[column]
                stays = low[column] if low[column] < leaving[column] else high[column]
                value = stays if stays < incoming else incoming
                low[column] = value if least or value > below else below
                remaining[column] = stays
        last = ordered[first + width - 1]
        for column in range(columns):
            last[column] = (
                current[column] if current[column] > remaining[column] else remaining[column]
            )
        filled = min(width, seconds)
        need = min(need, filled)
        out[view, 0, :] = ordered[first + filled - need]
        out[view, 1, :] = ordered[first + need - 1]
    ring[slot, :] = current


def score_second(
    views: Floats32, bounds: Floats32, own: Floats32, weights: Floats32, families: MetricGroups
) -> tuple[Floats32, Floats32, Floats]:
    """Return excess, suppressed excess and means; see ``live.score_second``."""
    columns = views.shape[-1]
    outside, rest = np.empty((2, columns), np.float32), np.empty((3, columns), np.float32)
    means = np.empty(len(families.by_subsystem))
    _weigh(views, bounds, own, weights, outside, rest, CLIP)
    _pool(rest[2], families.order, families.starts, families.by_subsystem, families.counted,
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
        worst, suppressed = outside[way], rest[way]
        worst[:] = ZERO
        for view in range(len(views)):
            observed, bound, spread = views[view, way], bounds[view, way], bounds[view, 2 + way]
            for column in range(columns):
                distance = observed[column] - bound[column]
                spreads = (distance if way == 0 else -distance) / spread[column]
                worst[column] = spreads if spreads > worst[column] else worst[column]
        for column in range(columns):
            spreads = worst[column] if worst[column] < most_outside else most_outside
            worst[column] = spreads
            own_way = own[way, column]
            suppressed[column] = spreads / (own_way if own_way > UNIT else UNIT)
    for column in range(columns):
        up, down = rest[0, column] * weights[0, column], rest[1, column] * weights[1, column]
        most = up if up > down else down
        rest[2, column] = most if most < weights[2, column] else weights[2, column]


@kernel
def _pool(
    weighted: Floats32,
    order: Indices,
    starts: Indices,
    by_subsystem: Indices,
    counted: Floats,
    top: int,
    means: Floats,
) -> None:
    groups = len(starts)
    worst = np.empty(top, np.float32)
    for subsystem in range(len(by_subsystem)):
        worst[:] = ZERO
        for group in by_subsystem[subsystem]:
            if group == groups:
                continue
            best = ZERO
            end = starts[group + 1] if group + 1 < groups else len(order)
            for index in range(starts[group], end):
                value = weighted[order[index]]
                best = value if value > best else best
            rank = 0  # among the worst, in ascending order
            while rank < top and best > worst[rank]:
                if rank:
                    worst[rank - 1] = worst[rank]
                worst[rank] = best
                rank += 1
        total = np.float64(worst[0])
        for rank in range(1, top):
            total = total + np.float64(worst[rank])
        means[subsystem] = total / counted[subsystem]


def update_own_excess(own: Floats32, outside: Floats32) -> None:
    """Update the recent own excess; see ``live.update_own_excess``."""
    _learn(own, outside, DECAY)


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
def insert_scores(scores: RecentScores, new: Floats, slot: int, known: int) -> bool:
    """Insert a score of each subsystem; see ``live.insert_scores``.

    Only the scores between the one that leaves and the one that comes are moved.
    """
    moved = False
    for subsystem in range(new.size):
        ordered, score, leaving = (
            scores.ordered[subsystem],
            new[subsystem],
            scores.ring[subsystem, slot],
        )
        last, position = known, known
        if known == ordered.size:
            if leaving == score:
                continue
            last, position = known - 1, np.searchsorted(ordered, leaving)
        moved = True
        while position < last and ordered[position + 1] < score:
            ordered[position] = ordered[position + 1]
            position += 1
        while position > 0 and ordered[position - 1] > score:
            ordered[position] = ordered[position - 1]
            position -= 1
        ordered[position] = score
        scores.ring[subsystem, slot] = score
    return moved
