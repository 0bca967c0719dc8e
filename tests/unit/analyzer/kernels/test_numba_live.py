"""The compiled loops of the live score return exactly what numpy returns."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

from reveal_analyzer.arrays import Bools, Floats32, Indices
from reveal_analyzer.kernels import backend, live
from reveal_analyzer.kernels.live import MetricGroups, RecentScores
from reveal_analyzer.kernels.order_statistics import RankedValues
from reveal_analyzer.live.column_map import ColumnMap
from reveal_analyzer.live.history import History
from reveal_analyzer.live.ranges import Ranges
from reveal_analyzer.live.settings import LiveSettings
from reveal_analyzer.live.views import SustainedViews

pytest.importorskip("numba")
COLUMNS = 37
SETTINGS = LiveSettings()


@pytest.fixture(scope="module")
def fast() -> backend.Backend:
    return backend.numba_backend()


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    return np.random.default_rng(getattr(request, "param", 0))


def seconds(rng: np.random.Generator, count: int) -> Floats32:
    """Return noise, and columns with few values, a constant value or missing values."""
    rows = rng.normal(size=(count, COLUMNS)) * 10.0 ** rng.integers(-3, 3, COLUMNS)
    rows[:, ::3] = rng.integers(-1, 3, rows[:, ::3].shape)
    rows[:, ::7] = 1.5
    rows[rng.random(rows.shape) < 0.02] = np.nan
    return rows


def families(rng: np.random.Generator) -> MetricGroups:
    sizes = rng.multinomial(COLUMNS - 8, np.ones(8) / 8) + 1
    positions = np.full((3, 6), 8, np.intp)
    positions[0, :5], positions[1, :3] = np.arange(5), np.arange(5, 8)  # the third has none
    return MetricGroups(
        order=rng.permutation(COLUMNS).astype(np.intp),
        starts=np.cumsum([0, *sizes])[:-1].astype(np.intp),
        by_subsystem=positions,
        counted=np.array([3.0, 3.0, 1.0]),
        top=3,
    )


@pytest.mark.parametrize("rng", range(5), indirect=True)
def test_sustained_views(rng: np.random.Generator, fast: backend.Backend) -> None:
    mine, its = SustainedViews(SETTINGS.views), SustainedViews(SETTINGS.views)
    before = backend.current()
    for second in seconds(rng, 60):
        expected = mine.push(second)
        backend.use(fast)
        try:
            found = its.push(second)
        finally:
            backend.use(before)
        np.testing.assert_array_equal(found, expected, strict=True)


@pytest.mark.parametrize("rng", range(5), indirect=True)
def test_ranges_of_the_history(rng: np.random.Generator, fast: backend.Backend) -> None:
    """Ranges of a history that grows, wraps and changes its columns, requested sometimes.

    Some values are left out, and some columns restored.
    """
    settings = LiveSettings(keep=40)
    mine, its = History(settings), History(settings)
    views_kept, before = SustainedViews(settings.views), backend.current()
    for second, row in enumerate(seconds(rng, 300)):
        views = views_kept.push(row)
        source = rng.permutation(np.arange(-1, COLUMNS - 1)) if second % 90 == 89 else None
        left_out = rng.random(COLUMNS) < 0.1 if second % 3 else None
        back = rng.permutation(COLUMNS)[:5] if second % 50 == 49 else None
        asked = rng.random() < 0.2
        step = Step(views, left_out, back, source, asked)
        expected = stepped(mine, step)
        backend.use(fast)
        try:
            found = stepped(its, step)
        finally:
            backend.use(before)
        if expected is not None and found is not None:
            np.testing.assert_array_equal(found.bounds, expected.bounds, strict=True)
            np.testing.assert_array_equal(found.middle, expected.middle, strict=True)


@pytest.mark.parametrize("rng", range(10), indirect=True)
def test_order_statistics_are_found_without_sorting(
    rng: np.random.Generator, fast: backend.Backend
) -> None:
    """Values with many equal ones, and replacements that move them far or not at all."""
    rows, none = (np.zeros(1, np.intp), np.zeros(1, np.intp)), np.zeros(1, np.intp)
    kept = rng.integers(-3, 4, (1, 1, 21)).astype(np.float32)
    ranks, standing = np.array([0, 2, 10, 18, 20]), RankedValues.unknown(1, 1, 5)
    fast.read_ranks(np.sort(kept[:, 0]), ranks, standing)
    for step in range(40):
        few = int(rng.integers(1, 22))
        new = rng.choice([0.0, 1.0, 9.0, rng.normal()], (few, 1, 1, 1)).astype(np.float32)
        fast.store_seconds(new, rows, none, kept, step % 21, standing, ranks)
        ordered = np.sort(kept[0, 0])
        picks = ordered[ranks]
        np.testing.assert_array_equal(standing.selected[0, 0], picks)
        np.testing.assert_array_equal(standing.below[0, 0], np.searchsorted(ordered, picks))
        np.testing.assert_array_equal(
            standing.not_above[0, 0], np.searchsorted(ordered, picks, "right")
        )
        assert not standing.stale.any()


def test_missing_values_do_not_hang(fast: backend.Backend) -> None:
    """The score admits none; with one, an endless loop would stop all nodes."""
    rows, none = (np.zeros(1, np.intp), np.zeros(1, np.intp)), np.zeros(1, np.intp)
    kept, ranks = np.arange(9, dtype=np.float32)[None, None], np.array([0, 4, 8])
    standing = RankedValues.unknown(1, 1, 3)
    fast.read_ranks(np.sort(kept[:, 0]), ranks, standing)
    fast.store_seconds(
        np.full((9, 1, 1, 1), np.nan, np.float32), rows, none, kept, 0, standing, ranks
    )
    assert np.isnan(kept).all()


@pytest.mark.parametrize("rng", range(5), indirect=True)
def test_scores_in_order(rng: np.random.Generator, fast: backend.Backend) -> None:
    mine, its = (RecentScores(np.zeros((3, 20)), np.zeros((3, 20))) for _ in range(2))
    for second in range(80):
        new = rng.choice([0.0, 0.0, rng.random(), 7.0], 3)
        for who, scores in ((backend.NUMPY, mine), (fast, its)):
            who.insert_scores(scores, new, second % 20, min(second, 20))
        np.testing.assert_array_equal(np.array(its), np.array(mine))


class Step(NamedTuple):
    views: Floats32
    left_out: Bools | None
    restored: Indices | None
    source: Indices | None
    asked: bool


def stepped(history: History, step: Step) -> Ranges | None:
    views, left_out, restored, source, asked = step
    history.append(views, left_out)
    if restored is not None:
        history.restore(restored, history.quantiles(restored[::-1]))
    if source is not None:
        history.remap(ColumnMap(source, np.zeros(source.size, np.float32)))
    return history.ranges() if asked else None


@pytest.mark.parametrize("rng", range(20), indirect=True)
def test_judging(rng: np.random.Generator, fast: backend.Backend) -> None:
    views = (4 * rng.normal(size=(3, 2, COLUMNS))).astype(np.float32)
    bounds = rng.normal(size=(3, 4, COLUMNS)).astype(np.float32)
    bounds[:, 2:] = 0.09 + rng.random((3, 2, COLUMNS))
    bounds[:, 2:, ::5] = np.inf  # of a new column
    own = (3 * rng.random((2, COLUMNS))).astype(np.float32)
    weights = rng.choice(np.array([0.0, 0.2, 1.0], np.float32), (3, COLUMNS))
    weights[2] = np.where(rng.random(COLUMNS) < 0.5, np.inf, 6.75)
    given = views, bounds, own, weights, families(rng)
    for found, expected in zip(fast.score_second(*given), live.score_second(*given), strict=True):
        np.testing.assert_array_equal(found, expected, strict=True)


@pytest.mark.parametrize("rng", range(5), indirect=True)
def test_learning(rng: np.random.Generator, fast: backend.Backend) -> None:
    mine = np.zeros((2, 2, COLUMNS), np.float32)
    its = mine.copy()
    for outside in rng.gamma(0.3, size=(200, 2, COLUMNS)).astype(np.float32):
        live.update_own_excess(mine, outside)
        fast.update_own_excess(its, outside)
        np.testing.assert_array_equal(its, mine, strict=True)
