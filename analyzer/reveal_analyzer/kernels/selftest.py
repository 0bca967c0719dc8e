"""Small data on which a tier's loops must answer as numpy does, before anybody relies on them.

As a program it compiles the loops into the cache, and does nothing where none can be kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.kernels import backend
from reveal_analyzer.kernels.conditions import Entries
from reveal_analyzer.kernels.derive import Folds, Recipe, Ticks
from reveal_analyzer.kernels.forest import Forest
from reveal_analyzer.kernels.formulas import (
    Program,
    known,
    larger,
    larger_known,
    read,
    share,
    smaller,
)
from reveal_analyzer.kernels.live import Families, OwnScores
from reveal_analyzer.kernels.order_statistics import Standing
from reveal_analyzer.kernels.scaler import Scaler
from reveal_contract import wire

Answer = NDArray[Any]


def agrees(mine: backend.Tier, its: backend.Tier) -> bool:
    """Whether both answer alike; what is compiled is, meanwhile."""
    answers = zip(_answers(mine), _answers(its), strict=True)
    return all(np.allclose(one, other, rtol=1e-9, equal_nan=True) for one, other in answers)


def _answers(one: backend.Tier) -> Iterator[Answer]:
    rng = np.random.default_rng(0)
    yield one.features(rng.normal(size=(30, 3)).cumsum(0))
    trees = Forest(
        [np.zeros(1, np.intp)], [np.zeros(1, np.float32)], [np.ones(1), np.array([2.0, 3.0])], 2.0
    )
    windows = rng.normal(size=(4, 1))
    scaled = one.scaled(Scaler().fit(windows), windows)
    yield scaled
    yield one.forest_scores(trees, scaled)
    yield from _seconds(one, rng)
    yield from _scores(one, rng)


def _seconds(one: backend.Tier, rng: np.random.Generator) -> Iterator[Answer]:
    for missing in (False, True):
        yield from _values(one, rng, missing)
    fast, slow = rng.integers(0, 9, (10, 3)), rng.integers(0, 9, 1)
    ticks = Ticks(fast, fast > 7, slow, slow > 9)
    pair = np.arange(2)
    recipe = Recipe(np.ones(4), pair, pair, Folds(pair, pair[:1], np.ones(1, np.bool_)), _each(), 7)
    seconds, values = one.derive(ticks, np.ones(4), np.zeros(0), recipe)
    yield from (seconds, values)
    entries = Entries(pair, pair - 1, np.array([[0.0, 9.0, 0.0]] * 2), np.zeros(2, np.bool_))
    yield one.met(entries, values, values, 2.0)


def _each() -> Program:
    """Each step that a formula has."""
    one, other = read(0) + 2.0, known(1) - read(2)
    most = larger_known(larger(one, other), smaller(one, other))
    return Program.of([most, share(one * other, other / one)])


def _values(one: backend.Tier, rng: np.random.Generator, missing: bool) -> Iterator[Answer]:
    """Of messages whose steps take one byte, and nearly all of them."""
    for most in (9, 1 << 50):
        fast, slow = rng.integers(0, most, (10, 3)), rng.integers(0, 9, 2)
        gone, slow_gone = np.full(fast.shape, missing), np.full(slow.shape, missing)
        gone[:, 1:] = False
        sent = wire.Message("n", bytes(16), 1, 1, 1, bytes(8), fast, slow, gone, slow_gone)
        gauges = np.array([True, False, True])
        came = wire.decode(wire.encode(sent, gauges), gauges, one.unpack)
        yield from (came.fast, came.slow, came.fast_missing, came.slow_missing)


def _scores(one: backend.Tier, rng: np.random.Generator) -> Iterator[Answer]:
    views = np.empty((1, 2, 3), np.float32)
    ring, own = (rng.random(shape, np.float32) for shape in ((2, 3), (2, 2, 3)))
    seen = np.array([0.3, 0.7, np.nan])
    one.exchange(ring, np.sort(ring, axis=0), np.array([[2, 1, 0]]), (0, 2), seen, views)
    yield views
    three = np.arange(3)
    families = Families(three, three, three[None], np.full(1, 2.0), 2)
    bounds, weights = np.full((1, 4, 3), 0.5, np.float32), np.ones((3, 3), np.float32)
    judged = one.judge(views, bounds, own[1], weights, families)
    yield from judged
    one.learn(own, judged[0])
    yield own
    values, level = np.array([0.0, 2.0, np.nan, 3.0]), np.array([0.0, 1.0, 1.0, 1.0])
    yield one.stirred(values, level, np.array([True, True, True, False]))
    yield one.spread_out(bounds[0], three + 1, 5)
    yield from _kept(one, rng)


def _kept(one: backend.Tier, rng: np.random.Generator) -> Iterator[Answer]:
    """Of rows that were sorted before their values were exchanged."""
    rows, columns, ranks = (np.zeros(1, np.intp), np.zeros(1, np.intp)), np.arange(3), np.arange(2)
    kept, new = (
        rng.integers(0, 4, shape).astype(np.float32) for shape in ((3, 1, 5), (2, 1, 2, 3))
    )
    standing = Standing.unknown(3, 1, 2)
    one.stand(np.sort(kept[:, 0]), ranks, standing)
    yield one.differing(new, rows, np.ascontiguousarray(kept[:, 0, 0]))
    one.renew(new, rows, columns, kept, 4, standing, ranks)
    one.stand(np.sort(kept[standing.stale]), ranks, standing)
    yield from (kept, standing.picks)
    picks, still = np.sort(rng.random((3, 1, 7), np.float32)), rng.random(4, np.float32)
    yield from one.bound(picks, rows, columns, still, np.full(1, 0.15, np.float32))
    scores = OwnScores(rng.random((1, 2)), np.zeros((1, 2)))
    scores.ordered[:] = np.sort(scores.ring)
    one.enlist(scores, rng.random(1), 0, 2)
    yield from scores


def _fill_cache() -> None:
    fast = backend.numba_tier()
    from reveal_analyzer import numba_jit  # noqa: PLC0415 - loads numba, if there is one

    if numba_jit.keeps():
        agrees(fast, backend.NUMPY)


if __name__ == "__main__":
    _fill_cache()
