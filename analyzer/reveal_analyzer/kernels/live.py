"""The arithmetic of a second of the score, on plain arrays in single precision.

Here is the reference, in numpy; ``numba_steps`` does the same in one pass each, to the last bit:
all of it is comparing, subtracting, dividing and multiplying, in the same order.  A value's
seventh digit decides nothing, and what is touched each second of thousands of nodes is halved.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reveal_analyzer.arrays import Bools, Floats, Floats32, Indices

Place = tuple[int, int]
CLIP = np.float32(50.0)  # spreads beyond which more is not worse
FADING = np.float32(0.99)  # a second, of the excess that silences
ONE, NOTHING = np.float32(1.0), np.float32(0.0)


def stirred(values: Floats, first: Floats, rests: Bools) -> Indices:
    """The columns that rest and are another than at first now; a missing value is no news."""
    unlike = rests & (values != first) & ~np.isnan(values)
    return np.flatnonzero(unlike)


def spread_out(rows: Floats32, places: Indices, width: int) -> Floats32:
    """The rows of so many columns, 0 where they have none."""
    made = np.zeros((len(rows), width), np.float32)
    made[:, places] = rows
    return made


class Families(NamedTuple):
    """Which columns share a vote, and which votes a subsystem.

    ``order`` are the columns, family by family from ``starts`` on; ``places`` (subsystems,
    width) a subsystem's families, those it lacks beyond the last; ``counted`` how many of the
    ``top`` worst make its mean.
    """

    order: Indices
    starts: Indices
    places: Indices
    counted: Floats
    top: int


class OwnScores(NamedTuple):
    """Of each subsystem the last scores, in a ring and lowest first: (subsystems, ``keep``)."""

    ring: Floats
    ordered: Floats


def exchange(
    ring: Floats32, rows: Floats32, spans: Indices, place: Place, given: Floats, out: Floats32
) -> None:
    """Take a second into the windows; ``out`` (views, 2, columns) held upward and downward.

    What is missing of it (NaN) is no news: the last value holds, 0 before there is one.

    ``ring`` has the last seconds, ``rows`` those of each window sorted, infinite where there
    was none yet; ``place`` is where in the ring this one goes, and how many there are with it.
    ``spans`` (views, 3) tells how wide a window is, of how many seconds a level must be, and
    where its rows begin, if it is wider than one.
    """
    at, seconds = place
    seen = given.astype(np.float32)
    lost = np.isnan(seen)
    seen[lost] = ring[at - 1, lost] if seconds > 1 else NOTHING
    for view, (width, need, first) in enumerate(spans.tolist()):
        if width == 1:
            out[view] = seen
            continue
        window = rows[first : first + width]
        leaving = ring[(at - width) % len(ring)]
        rest = np.where(window[:-1] < leaving, window[:-1], window[1:])
        np.minimum(rest, seen, out=window[:-1])
        window[-1] = seen
        np.maximum(window[1:], rest, out=window[1:])
        there = min(width, seconds)
        least = min(need, there)
        out[view, 0], out[view, 1] = window[there - least], window[least - 1]
    ring[at] = seen


def excess(views: Floats32, bounds: Floats32) -> Floats32:
    """How far outside, in spreads: (2, columns) of the worst view; 0 within.

    ``bounds`` (views, 4, columns): highest, lowest, spread upward and downward.
    """
    outside = np.empty_like(views)
    np.subtract(views[:, 0], bounds[:, 0], out=outside[:, 0])
    np.subtract(bounds[:, 1], views[:, 1], out=outside[:, 1])
    outside /= bounds[:, 2:]
    worst: Floats32 = outside.max(axis=0)
    np.maximum(worst, NOTHING, out=worst)
    return np.minimum(worst, CLIP, out=worst)


def shown(silenced: Floats32, weights: Floats32) -> Floats32:
    """Excess (2, columns) by ``weights`` (3, columns): upward, downward, and the most of it."""
    weighed: Floats32 = np.minimum((silenced * weights[:2]).max(axis=0), weights[2])
    return weighed


def means(weighed: Floats32, families: Families) -> Floats:
    """Of every subsystem the mean of its worst families; ``weighed`` is never below 0."""
    best = np.zeros(len(families.starts) + 1, weighed.dtype)
    if families.order.size:
        np.maximum.reduceat(weighed[families.order], families.starts, out=best[:-1])
    worst = np.sort(best[families.places], axis=1)[:, -families.top :].astype(np.float64)
    total = worst[:, 0]
    for each in worst.T[1:]:  # one after the other, as everywhere
        total = total + each
    return total / families.counted


def judge(
    views: Floats32, bounds: Floats32, own: Floats32, weights: Floats32, families: Families
) -> tuple[Floats32, Floats32, Floats]:
    """Excess (2, columns); silenced by the ``own`` one, with what shows of it; the means."""
    outside = excess(views, bounds)
    rest = np.empty((3, views.shape[-1]), np.float32)
    np.divide(outside, np.maximum(own, ONE), out=rest[:2])
    rest[2] = shown(rest[:2], weights)
    return outside, rest, means(rest[2], families)


def learn(own: Floats32, outside: Floats32) -> None:
    """The highest and second highest excess (2, 2, columns) of lately, a second later."""
    own *= FADING
    first, then = own
    np.maximum(then, np.minimum(first, outside), out=then)
    np.maximum(first, outside, out=first)


def enlist(scores: OwnScores, new: Floats, at: int, known: int) -> bool:
    """Take in a score of each subsystem; the one that stood ``at`` the place leaves a full ring.

    Whether any is in another place now.  The reference; ``numba_steps`` moves fewer.
    """
    full = known == scores.ring.shape[1]
    if full and (scores.ring[:, at] == new).all():
        return False
    for ring, ordered, score in zip(*scores, new, strict=True):
        row = ordered[:known]
        if full:
            row = np.delete(row, np.searchsorted(row, ring[at]))
        ordered[: row.size + 1] = np.insert(row, np.searchsorted(row, score), score)
        ring[at] = score
    return True
