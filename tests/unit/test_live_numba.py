"""What the loops of the live score give is what numpy gives, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest

from reveal_analyzer import tier
from reveal_analyzer.live import steps
from reveal_analyzer.live.held import Held
from reveal_analyzer.live.settings import LiveSettings
from reveal_analyzer.live.steps import Families, Singles

pytest.importorskip("numba")
COLUMNS = 37
SETTINGS = LiveSettings()


@pytest.fixture(scope="module")
def fast() -> tier.Tier:
    return tier.numba_tier()


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    return np.random.default_rng(getattr(request, "param", 0))


def seconds(rng: np.random.Generator, count: int) -> Singles:
    """Noise, columns of few values, of none but one, and of some that are missing at times."""
    rows = rng.normal(size=(count, COLUMNS)) * 10.0 ** rng.integers(-3, 3, COLUMNS)
    rows[:, ::3] = rng.integers(-1, 3, rows[:, ::3].shape)
    rows[:, ::7] = 1.5
    rows[rng.random(rows.shape) < 0.02] = np.nan
    return rows


def families(rng: np.random.Generator) -> Families:
    sizes = rng.multinomial(COLUMNS - 8, np.ones(8) / 8) + 1
    places = np.full((3, 6), 8, np.intp)
    places[0, :5], places[1, :3] = np.arange(5), np.arange(5, 8)  # the third has none
    return Families(
        order=rng.permutation(COLUMNS).astype(np.intp),
        starts=np.cumsum([0, *sizes])[:-1].astype(np.intp),
        places=places,
        counted=np.array([3.0, 3.0, 1.0]),
        top=3,
    )


@pytest.mark.parametrize("rng", range(5), indirect=True)
def test_held_views(rng: np.random.Generator, fast: tier.Tier) -> None:
    mine, its = Held(SETTINGS.views), Held(SETTINGS.views)
    before = tier.current()
    for second in seconds(rng, 60):
        expected = mine.push(second)
        tier.use(fast)
        try:
            found = its.push(second)
        finally:
            tier.use(before)
        np.testing.assert_array_equal(found, expected, strict=True)


@pytest.mark.parametrize("rng", range(20), indirect=True)
def test_judging(rng: np.random.Generator, fast: tier.Tier) -> None:
    views = (4 * rng.normal(size=(3, 2, COLUMNS))).astype(np.float32)
    bounds = rng.normal(size=(3, 4, COLUMNS)).astype(np.float32)
    bounds[:, 2:] = 0.09 + rng.random((3, 2, COLUMNS))
    bounds[:, 2:, ::5] = np.inf  # of a new column
    own = (3 * rng.random((2, COLUMNS))).astype(np.float32)
    weights = rng.choice(np.array([0.0, 0.2, 1.0], np.float32), (3, COLUMNS))
    weights[2] = np.where(rng.random(COLUMNS) < 0.5, np.inf, 6.75)
    given = views, bounds, own, weights, families(rng)
    for found, expected in zip(fast.judge(*given), steps.judge(*given), strict=True):
        np.testing.assert_array_equal(found, expected, strict=True)


@pytest.mark.parametrize("rng", range(5), indirect=True)
def test_learning(rng: np.random.Generator, fast: tier.Tier) -> None:
    mine = np.zeros((2, 2, COLUMNS), np.float32)
    its = mine.copy()
    for outside in rng.gamma(0.3, size=(200, 2, COLUMNS)).astype(np.float32):
        steps.learn(mine, outside)
        fast.learn(its, outside)
        np.testing.assert_array_equal(its, mine, strict=True)
