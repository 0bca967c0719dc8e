"""Arithmetic of the live score for one second, in single precision: the numpy reference.

``numba_live`` computes the same bits in one pass per kernel: all operations are comparisons,
subtractions, divisions and multiplications in the same order.  Single precision halves the memory
that is touched every second for thousands of nodes; the seventh digit of a value decides nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reveal_analyzer.arrays import Bools, Floats, Floats32, Indices

RingPosition = tuple[int, int]
CLIP = np.float32(50.0)  # spreads; a larger excess does not count for more
DECAY = np.float32(0.99)  # per second, of the own excess that suppresses
UNIT, ZERO = np.float32(1.0), np.float32(0.0)


def changed_columns(values: Floats, levels: Floats, constant: Bools) -> Indices:
    """Return the constant columns whose value is not at its level; a missing value is no change."""
    unlike = constant & (values != levels) & ~np.isnan(values)
    return np.flatnonzero(unlike)


def scatter(rows: Floats32, indices: Indices, width: int) -> Floats32:
    """Place rows of some columns into rows of ``width`` columns, 0 elsewhere."""
    result = np.zeros((len(rows), width), np.float32)
    result[:, indices] = rows
    return result


class MetricGroups(NamedTuple):
    """Which columns form a metric group, and which groups form a subsystem.

    ``order`` lists the columns group by group, ``starts`` where each group begins.
    ``by_subsystem`` (subsystems, width) are the groups of each subsystem, padded with the number of
    groups.  ``counted`` is the number of groups in each subsystem's mean, at most ``top``.
    """

    order: Indices
    starts: Indices
    by_subsystem: Indices
    counted: Floats
    top: int


class RecentScores(NamedTuple):
    """The last scores of each subsystem, as a ring and sorted: (subsystems, ``keep``)."""

    ring: Floats
    ordered: Floats


def slide_windows(
    ring: Floats32,
    ordered: Floats32,
    spans: Indices,
    position: RingPosition,
    values: Floats,
    out: Floats32,
) -> None:
    """Add a second to the windows; write what was sustained upward and downward to ``out``.

    ``out`` is (views, 2, columns).  A missing value (NaN) repeats the last value, 0 if there is
    none.

    ``ring`` holds the last seconds, ``ordered`` the sorted rows of each window, infinite for
    seconds that do not exist yet.  ``position`` is the slot of this second in the ring and the
    number of seconds known with it.  ``spans`` (views, 3) are the width of a window, the number of
    seconds that must reach a level, and the first of the window's rows in ``ordered`` if it is
    wider than one.
    """
    slot, seconds = position
    current = values.astype(np.float32)
    missing = np.isnan(current)
    current[missing] = ring[slot - 1, missing] if seconds > 1 else ZERO
    for view, (width, need, first) in enumerate(spans.tolist()):
        if width == 1:
            out[view] = current
            continue
        window = ordered[first : first + width]
        leaving = ring[(slot - width) % len(ring)]
        remaining = np.where(window[:-1] < leaving, window[:-1], window[1:])
        np.minimum(remaining, current, out=window[:-1])
        window[-1] = current
        np.maximum(window[1:], remaining, out=window[1:])
        filled = min(width, seconds)
        least = min(need, filled)
        out[view, 0], out[view, 1] = window[filled - least], window[least - 1]
    ring[slot] = current


def excess(views: Floats32, bounds: Floats32) -> Floats32:
    """Return the distance outside the range in spreads, (2, columns) of the worst view; 0 within.

    ``bounds`` (views, 4, columns): highest, lowest, spread upward and downward.
    """
    outside = np.empty_like(views)
    np.subtract(views[:, 0], bounds[:, 0], out=outside[:, 0])
    np.subtract(bounds[:, 1], views[:, 1], out=outside[:, 1])
    outside /= bounds[:, 2:]
    worst: Floats32 = outside.max(axis=0)
    np.maximum(worst, ZERO, out=worst)
    return np.minimum(worst, CLIP, out=worst)


def weigh(suppressed: Floats32, weights: Floats32) -> Floats32:
    """Return the excess (2, columns) weighted by ``weights`` (3, columns).

    The rows of ``weights`` are the factors upward and downward, and the cap of the result.
    """
    weighted: Floats32 = np.minimum((suppressed * weights[:2]).max(axis=0), weights[2])
    return weighted


def subsystem_means(weighted: Floats32, families: MetricGroups) -> Floats:
    """Return the mean of the worst groups of every subsystem; ``weighted`` is never negative."""
    best = np.zeros(len(families.starts) + 1, weighted.dtype)
    if families.order.size:
        np.maximum.reduceat(weighted[families.order], families.starts, out=best[:-1])
    worst = np.sort(best[families.by_subsystem], axis=1)[:, -families.top :].astype(np.float64)
    total = worst[:, 0]
    for group in worst.T[1:]:  # in this order, so that numba gives the same bits
        total = total + group
    return total / families.counted


def score_second(
    views: Floats32, bounds: Floats32, own: Floats32, weights: Floats32, families: MetricGroups
) -> tuple[Floats32, Floats32, Floats]:
    """Return the excess (2, columns), the suppressed excess with its weighted value, and the means.

    An excess is suppressed by the column's ``own`` excess in seconds that were accepted as normal.
    """
    outside = excess(views, bounds)
    rest = np.empty((3, views.shape[-1]), np.float32)
    np.divide(outside, np.maximum(own, UNIT), out=rest[:2])
    rest[2] = weigh(rest[:2], weights)
    return outside, rest, subsystem_means(rest[2], families)


def update_own_excess(own: Floats32, outside: Floats32) -> None:
    """Update the highest and second highest recent excess (2, 2, columns) with one more second."""
    own *= DECAY
    first, second = own
    np.maximum(second, np.minimum(first, outside), out=second)
    np.maximum(first, outside, out=first)


def insert_scores(scores: RecentScores, new: Floats, slot: int, known: int) -> bool:
    """Insert a score of each subsystem; in a full ring it replaces the one in ``slot``.

    Return whether the sorted scores changed.  The reference; ``numba_live`` moves fewer values.
    """
    full = known == scores.ring.shape[1]
    if full and (scores.ring[:, slot] == new).all():
        return False
    for ring, ordered, score in zip(*scores, new, strict=True):
        row = ordered[:known]
        if full:
            row = np.delete(row, np.searchsorted(row, ring[slot]))
        ordered[: row.size + 1] = np.insert(row, np.searchsorted(row, score), score)
        ring[slot] = score
    return True
