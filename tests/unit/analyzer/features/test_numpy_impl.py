import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from reveal_analyzer.arrays import Floats
from reveal_analyzer.features.numpy_impl import features
from reveal_analyzer.features.prepared import pairwise_sum
from reveal_analyzer.features.table import FEATURES, FeatureFamily
from reveal_analyzer.features.trend import slope_p_value

WINDOWS = hnp.arrays(
    np.float64,
    st.tuples(st.integers(4, 40), st.integers(0, 4)),
    elements=st.floats(width=64, allow_nan=True, allow_infinity=True),
)


@given(WINDOWS)
def test_any_numbers_give_features_and_a_missing_sample_gives_none(window: Floats) -> None:
    out = features(np.ascontiguousarray(window))
    assert out.shape == (33, window.shape[1])
    missing = ~np.isfinite(window).all(0)
    assert np.isnan(out[:, missing]).all()


def test_a_channel_has_the_same_features_alone_and_among_others() -> None:
    rng = np.random.default_rng(1)
    window = np.concatenate([rng.normal(size=(30, 7)), rng.integers(0, 2, (30, 6))], axis=1)
    window[3, 2] = np.nan
    together = features(window)
    for column in range(window.shape[1]):
        alone = features(np.ascontiguousarray(window[:, column : column + 1]))
        # sums along time of one lane may be vectorised otherwise: the last bits are free
        np.testing.assert_allclose(alone[:, 0], together[:, column], rtol=1e-11, atol=1e-13)


def test_features_the_window_is_too_short_for_are_nan() -> None:
    out = features(np.random.default_rng(0).normal(size=(4, 3)))
    rows = [row for row, f in enumerate(FEATURES) if f.family is FeatureFamily.STATIONARITY]
    assert np.isnan(out[rows]).all()
    assert not np.isnan(np.delete(out, rows, axis=0)).any()


@pytest.mark.parametrize(
    ("window", "message"),
    [
        (np.zeros((3, 5)), "4 or more ticks"),
        (np.zeros(30), "4 or more ticks"),
        (np.zeros((30, 5), np.float32), "float64"),
        (np.zeros((5, 30)).T, "C-contiguous"),
    ],
)
def test_another_layout_is_refused(window: Floats, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        features(window)


@pytest.mark.parametrize("ticks", [1, 5, 7, 8, 9, 16, 30, 31, 127, 128])
def test_sums_equal_those_of_a_single_series_to_the_last_bit(ticks: int) -> None:
    rng = np.random.default_rng(ticks)
    window = rng.normal(size=(ticks, 200)) * 10.0 ** rng.uniform(-6, 9, 200)
    each = [np.ascontiguousarray(window[:, column]).sum() for column in range(200)]
    np.testing.assert_array_equal(pairwise_sum(window), each)


@pytest.mark.parametrize("ticks", [4, 5, 6, 7, 30, 31, 101])
def test_p_value_is_that_of_students_t(ticks: int) -> None:
    from scipy import stats

    r = np.linspace(-0.999, 0.999, 101)
    t = r * np.sqrt((ticks - 2) / (1 - r * r))
    expected = 2 * stats.t.sf(np.abs(t), ticks - 2)
    np.testing.assert_allclose(slope_p_value(r, ticks), expected, rtol=1e-9, atol=1e-14)
    assert slope_p_value(np.array([1.0, -1.0]), ticks).max() < 1e-14
