"""Self-test of a backend on small data, run before it is used.

As a program it compiles the kernels into numba's cache, if there is one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.kernels import backend
from reveal_analyzer.kernels.conditions import Conditions
from reveal_analyzer.kernels.derive import Folds, Recipe, Ticks
from reveal_analyzer.kernels.forest import Forest
from reveal_analyzer.kernels.formulas import (
    Program,
    maximum,
    maximum_known,
    minimum,
    read,
    read_or_zero,
    share,
)
from reveal_analyzer.kernels.live import MetricGroups, RecentScores
from reveal_analyzer.kernels.order_statistics import RankedValues
from reveal_analyzer.kernels.scaler import Scaler
from reveal_contract import wire

Result = NDArray[Any]


def agrees(candidate: backend.Backend, reference: backend.Backend) -> bool:
    """Return whether both backends give the same results; this compiles the kernels of both."""
    pairs = zip(_results(candidate), _results(reference), strict=True)
    return all(np.allclose(first, second, rtol=1e-9, equal_nan=True) for first, second in pairs)


def _results(candidate: backend.Backend) -> Iterator[Result]:
    rng = np.random.default_rng(0)
    yield candidate.features(rng.normal(size=(30, 3)).cumsum(0))
    trees = Forest(
        [np.zeros(1, np.intp)], [np.zeros(1, np.float32)], [np.ones(1), np.array([2.0, 3.0])], 2.0
    )
    windows = rng.normal(size=(4, 1))
    scaled = candidate.transform(Scaler().fit(windows), windows)
    yield scaled
    yield candidate.forest_scores(trees, scaled)
    yield from _seconds(candidate, rng)
    yield from _scores(candidate, rng)


def _seconds(candidate: backend.Backend, rng: np.random.Generator) -> Iterator[Result]:
    for missing in (False, True):
        yield from _values(candidate, rng, missing)
    fast, slow = rng.integers(0, 9, (10, 3)), rng.integers(0, 9, 1)
    ticks = Ticks(fast, fast > 7, slow, slow > 9)
    pair = np.arange(2)
    recipe = Recipe(np.ones(4), pair, pair, Folds(pair, pair[:1], np.ones(1, np.bool_)), _each(), 7)
    seconds, values = candidate.derive_second(ticks, np.ones(4), np.zeros(0), recipe)
    yield from (seconds, values)
    entries = Conditions(pair, pair - 1, np.array([[0.0, 9.0, 0.0]] * 2), np.zeros(2, np.bool_))
    yield candidate.matching(entries, values, values, 2.0)


def _each() -> Program:
    """Return a program with every instruction that a formula can have."""
    first, second = read(0) + 2.0, read_or_zero(1) - read(2)
    most = maximum_known(maximum(first, second), minimum(first, second))
    return Program.of([most, share(first * second, second / first)])


def _values(
    candidate: backend.Backend, rng: np.random.Generator, missing: bool
) -> Iterator[Result]:
    """Decode messages whose steps take one byte, and nearly all bytes."""
    for most in (9, 1 << 50):
        fast, slow = rng.integers(0, most, (10, 3)), rng.integers(0, 9, 2)
        gone, slow_gone = np.full(fast.shape, missing), np.full(slow.shape, missing)
        gone[:, 1:] = False
        sent = wire.Message("n", bytes(16), 1, 1, 1, bytes(8), fast, slow, gone, slow_gone)
        gauges = np.array([True, False, True])
        came = wire.decode(wire.encode(sent, gauges), gauges, candidate.unpack)
        yield from (came.fast, came.slow, came.fast_missing, came.slow_missing)


def _scores(candidate: backend.Backend, rng: np.random.Generator) -> Iterator[Result]:
    views = np.empty((1, 2, 3), np.float32)
    ring, own = (rng.random(shape, np.float32) for shape in ((2, 3), (2, 2, 3)))
    values = np.array([0.3, 0.7, np.nan])
    candidate.slide_windows(
        ring, np.sort(ring, axis=0), np.array([[2, 1, 0]]), (0, 2), values, views
    )
    yield views
    three = np.arange(3)
    families = MetricGroups(three, three, three[None], np.full(1, 2.0), 2)
    bounds, weights = np.full((1, 4, 3), 0.5, np.float32), np.ones((3, 3), np.float32)
    judged = candidate.score_second(views, bounds, own[1], weights, families)
    yield from judged
    candidate.update_own_excess(own, judged[0])
    yield own
    second, levels = np.array([0.0, 2.0, np.nan, 3.0]), np.array([0.0, 1.0, 1.0, 1.0])
    yield candidate.changed_columns(second, levels, np.array([True, True, True, False]))
    yield candidate.scatter(bounds[0], three + 1, 5)
    yield from _ranks(candidate, rng)


def _ranks(candidate: backend.Backend, rng: np.random.Generator) -> Iterator[Result]:
    """Rank rows that were sorted before their values were replaced."""
    rows, columns, ranks = (np.zeros(1, np.intp), np.zeros(1, np.intp)), np.arange(3), np.arange(2)
    kept, new = (
        rng.integers(0, 4, shape).astype(np.float32) for shape in ((3, 1, 5), (2, 1, 2, 3))
    )
    ranked = RankedValues.unknown(3, 1, 2)
    candidate.read_ranks(np.sort(kept[:, 0]), ranks, ranked)
    yield candidate.differing(new, rows, np.ascontiguousarray(kept[:, 0, 0]))
    candidate.store_seconds(new, rows, columns, kept, 4, ranked, ranks)
    candidate.read_ranks(np.sort(kept[ranked.stale]), ranks, ranked)
    yield from (kept, ranked.selected)
    picks, levels = np.sort(rng.random((3, 1, 7), np.float32)), rng.random(4, np.float32)
    yield from candidate.range_bounds(picks, rows, columns, levels, np.full(1, 0.15, np.float32))
    scores = RecentScores(rng.random((1, 2)), np.zeros((1, 2)))
    scores.ordered[:] = np.sort(scores.ring)
    candidate.insert_scores(scores, rng.random(1), 0, 2)
    yield from scores


def _fill_cache() -> None:
    fast = backend.numba_backend()
    from reveal_analyzer import numba_jit  # noqa: PLC0415 - loads numba, if there is one

    if numba_jit.all_cached():
        agrees(fast, backend.NUMPY)


if __name__ == "__main__":
    _fill_cache()
