"""The weights of a forecast are those of a ridge regression, also across gaps."""

from __future__ import annotations

import numpy as np
import pytest

from reveal_analyzer.tables.scoring import forecast
from reveal_analyzer.tables.scoring.forecast import Forecast
from reveal_analyzer.tables.scoring.scales import plain_scale

LAGS = 3


def stretches(*lengths: int) -> np.ndarray:
    """Return how many rows of its stretch are before each row."""
    return np.concatenate([np.arange(length) for length in lengths])


@pytest.mark.parametrize("chunk", [16, 16_384])
@pytest.mark.parametrize("lengths", [(200,), (90, 2, 3, 4, 101), (50, 50, 50, 50)])
def test_residuals_are_those_of_the_normal_equations(
    lengths: tuple[int, ...], chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forecast, "_CHUNK", chunk)
    values = np.cumsum(np.random.default_rng(3).normal(size=(200, 4)), axis=0)
    since, scale = stretches(*lengths), plain_scale(values)
    scaled = scale.distance(values)
    scaled -= scaled.mean(0)
    rows = np.flatnonzero(since >= LAGS)
    predictors = np.hstack([scaled[rows - lag] for lag in (1, 2, 3)])
    gram = predictors.T @ predictors
    ridge = 0.1 * np.trace(gram) / len(gram) * np.eye(len(gram))
    weights = np.linalg.solve(gram + ridge, predictors.T @ scaled[rows])
    error = scaled[rows] - predictors @ weights
    spread = np.maximum(np.sqrt((error**2).mean(0)), 0.1)
    found = Forecast(LAGS).fit_residual(values, since, scale)
    assert found[rows] == pytest.approx(np.abs(error) / spread, rel=1e-9, abs=1e-9)
    assert not found[since < LAGS].any()


def test_residuals_of_the_fit_are_those_of_the_same_values() -> None:
    values = np.random.default_rng(4).normal(size=(300, 5))
    values[7, 2] = np.nan
    since = stretches(120, 180)
    learned = Forecast(LAGS)
    found = learned.fit_residual(values, since)
    assert found.tolist() == learned.residual(values, since).tolist()
    assert found[7, 2] == 0.0


def test_too_few_rows_for_the_lags_have_no_residual() -> None:
    assert not Forecast(LAGS).fit_residual(np.ones((4, 2)), stretches(2, 2)).any()
