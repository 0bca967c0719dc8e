"""The features of numpy and of numba are tsfresh's, to 1e-9, over random and recorded series.

``proc_windows.npz`` holds 9 s of numbers read ten times a second from /proc of a busy machine
(counters as differences, gauges as levels; 90 ticks x 145 series, some of them constant).
"""

import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from statsmodels.tsa.stattools import adfuller
from tsfresh import extract_features
from tsfresh.feature_extraction.settings import from_columns

from reveal_analyzer.arrays import Floats
from reveal_analyzer.features import numpy_impl
from reveal_analyzer.features.table import (
    FEATURES,
    Feature,
    FeatureFamily,
    column_name,
    definitions,
)
from reveal_analyzer.kernels import backend

Features = Callable[..., Floats]

RECORDED = Path(__file__).parents[3] / "fixtures" / "proc_windows.npz"
NAMED = [feature for feature in FEATURES if feature.family is not FeatureFamily.STATIONARITY]
TREND = next(row for row, f in enumerate(FEATURES) if f.family is FeatureFamily.TREND)
STATISTIC = next(row for row, f in enumerate(FEATURES) if f.name == "augmented_dickey_fuller")


@pytest.fixture(params=["numpy", "numba"])
def features(request: pytest.FixtureRequest) -> Features:
    if request.param == "numpy":
        return numpy_impl.features
    pytest.importorskip("numba")
    return backend.numba_backend().features


def recorded(ticks: int) -> Floats:
    with np.load(RECORDED) as archive:
        values = archive["values"]
    return np.concatenate([values[begin : begin + ticks] for begin in (0, 30, 90 - ticks)], axis=1)


def random_series(ticks: int) -> Floats:
    rng = np.random.default_rng(7)
    noise = rng.normal(size=(ticks, 40))
    few = rng.integers(0, 3, (ticks, 40)).astype(float)
    return np.concatenate([noise, noise.cumsum(0), few, rng.lognormal(3, 2, (ticks, 20))], axis=1)


def degenerate(ticks: int) -> Floats:
    spike_first, spike_mid = np.zeros((2, ticks))
    spike_first[0] = spike_mid[ticks // 2] = 5.0
    two = np.where(np.arange(ticks) % 2, 3.0, -1.0)
    ramp = np.arange(ticks) * 0.1
    columns = [np.zeros(ticks), np.full(ticks, 0.1), np.full(ticks, 7e11), spike_first, spike_mid]
    columns += [two, ramp, ramp[::-1], two * 1e-6, two * 3e-5, np.sign(ramp - 1), 10 * spike_mid]
    return np.stack(columns, axis=1)


def reference(window: Floats) -> Floats:
    """Return the cached result of ``computed``."""
    return computed(window.tobytes(), window.shape)


@cache
def computed(data: bytes, shape: tuple[int, int]) -> Floats:
    """Return tsfresh's values of the 30 features it can name, (features, channels)."""
    window = np.frombuffer(data).reshape(shape)
    ticks, channels = shape
    kinds = [f"c{column:04d}" for column in range(channels)]
    long = pd.DataFrame(
        {
            "id": 0,
            "kind": np.repeat(kinds, ticks),
            "time": np.tile(np.arange(ticks), channels),
            "value": window.T.ravel(),
        }
    )
    asked = from_columns([column_name("any", feature) for feature in NAMED])["any"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        table = extract_features(
            long, column_id="id", column_sort="time", column_kind="kind", column_value="value",
            default_fc_parameters=asked, n_jobs=0, disable_progressbar=True,
        )  # fmt: skip
    assert len(table.columns) == len(NAMED) * channels
    return np.array([[table[column_name(kind, f)].iloc[0] for kind in kinds] for f in NAMED])


def assert_equal_to_tsfresh(features: Features, window: Floats, relative: float = 1e-9) -> None:
    window = np.ascontiguousarray(window)
    ours, theirs = features(window)[: len(NAMED)], reference(window)
    assert ours.shape == theirs.shape
    # 0.1 has a mean that is not 0.1: constant to us, a line through rounding noise to scipy
    varies = (window != window[0]).any(0)
    for row, feature in enumerate(NAMED):
        mine, its, nothing = ours[row], theirs[row], rounding(feature, window)
        if feature.family is FeatureFamily.TREND:
            mine, its, nothing = (part[varies] for part in (mine, its, nothing))
        np.testing.assert_array_equal(np.isnan(mine), np.isnan(its), err_msg=feature.suffix)
        off = np.abs(mine - its) > relative * np.abs(its) + nothing
        assert not off.any(), (feature.suffix, mine[off][:3], its[off][:3])


def rounding(feature: Feature, window: Floats) -> Floats:
    """Return the magnitude up to which a value is rounding, without relative precision."""
    if feature.family is not FeatureFamily.TREND:
        return np.full(window.shape[1], 1e-12)
    attr = feature.params[0][1]
    if attr in {"pvalue", "rvalue"}:
        return np.full(window.shape[1], 1e-15)
    # a perfect line has an error of sqrt(1 - r^2), so the square root of the precision
    return (1e-7 if attr == "stderr" else 1e-12) * window.std(0)


def test_constant_has_a_slope_of_zero_and_no_correlation(features: Features) -> None:
    window = np.full((13, 3), [0.0, 0.1, 7e11])
    slope, error, intercept, r, p = features(window)[TREND : TREND + 5]
    assert (slope == 0).all()
    np.testing.assert_allclose(intercept, window[0], rtol=1e-15)
    assert np.isnan([error, r, p]).all()


def test_names_come_back_from_tsfresh_unchanged() -> None:
    window = random_series(30)[:, :1]
    assert reference(np.ascontiguousarray(window)).shape == (30, 1)


@pytest.mark.parametrize("make", [random_series, degenerate, recorded])
def test_three_seconds(features: Features, make: object) -> None:
    assert callable(make)
    assert_equal_to_tsfresh(features, make(30))


@pytest.mark.parametrize("ticks", [4, 5, 8, 13, 31, 50])
def test_any_length(features: Features, ticks: int) -> None:
    assert_equal_to_tsfresh(
        features, np.concatenate([random_series(ticks)[:, ::6], degenerate(ticks)], 1)
    )


@pytest.mark.parametrize("ticks", [127, 128, 200])
def test_longer_than_bytes_can_count(features: Features, ticks: int) -> None:
    rng = np.random.default_rng(3)
    ramp = np.arange(ticks)[:, None] * -1.0
    jump = np.where(np.arange(ticks) > 5, 1.0, -400.0)[:, None]
    assert_equal_to_tsfresh(
        features, np.concatenate([rng.normal(size=(ticks, 4)), ramp, jump], axis=1)
    )


def test_huge_offset_loses_no_more_than_tsfresh_itself(features: Features) -> None:
    rng = np.random.default_rng(5)
    assert_equal_to_tsfresh(features, 1e9 + rng.normal(size=(30, 20)), relative=1e-5)


@pytest.mark.parametrize("lag", [1, 2])
@pytest.mark.parametrize("ticks", [8, 30])
def test_dickey_fuller_is_statsmodels_with_the_lag_fixed(
    features: Features, lag: int, ticks: int
) -> None:
    window = np.concatenate([random_series(ticks)[:, ::4], recorded(ticks)[:, ::5]], 1)
    ours = features(np.ascontiguousarray(window), adf_lag=lag)[STATISTIC:]
    compared = 0
    for column in range(window.shape[1]):
        if np.isnan(ours[0, column]):
            assert not has_statistic(window[:, column], lag)
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = adfuller(window[:, column], maxlag=lag, autolag=None)
        # a nearly perfect fit (|t| in the thousands) has lost as many digits on both sides
        relative = 1e-9 * max(1.0, abs(result[0]) / 100)
        np.testing.assert_allclose(ours[:2, column], result[:2], rtol=relative, atol=1e-12)
        assert ours[2, column] == lag
        compared += 1
    assert compared > 30
    assert definitions(lag)[STATISTIC].suffix.endswith(f"__maxlag_{lag}")


def has_statistic(series: Floats, lag: int) -> bool:
    """Return whether the regression has full rank and a residual, by singular values."""
    steps = np.diff(series)
    target = steps[lag:]
    earlier = [steps[lag - back : len(steps) - back] for back in range(1, lag + 1)]
    design = np.stack([series[lag:-1], *earlier, np.ones(len(target))], axis=1)
    scale = np.abs(design).max(0)
    if (scale == 0).any() or np.linalg.matrix_rank(design / scale, tol=1e-9) < lag + 2:
        return False
    fit = design @ np.linalg.lstsq(design, target, rcond=None)[0]
    return bool(np.sum((target - fit) ** 2) > 1e-11 * np.sum((target - target.mean()) ** 2))
