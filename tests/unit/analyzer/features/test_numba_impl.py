"""The compiled features equal those of numpy to 1e-12."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from reveal_analyzer.features import numpy_impl
from reveal_analyzer.features.middle_network import middle_network
from reveal_analyzer.features.table import FEATURES, FeatureFamily
from support.property_tests import examples

pytest.importorskip("numba")

from reveal_analyzer.arrays import Floats
from reveal_analyzer.features import numba_impl

RECORDED = Path(__file__).parents[3] / "fixtures" / "proc_windows.npz"
LANES = numba_impl.LANES
# a p-value near zero and a line's error near a perfect fit are differences of equal numbers
ROUNDED = {"pvalue": 1e-14, "rvalue": 1e-14, "stderr": 1e-7, "slope": 1e-12, "intercept": 1e-12}


def allowed(window: Floats) -> Floats:
    """Return the allowed rounding by feature and channel; only lines need it."""
    nothing = np.zeros((len(FEATURES), window.shape[1]))
    for row, feature in enumerate(FEATURES):
        if feature.family is FeatureFamily.TREND:
            attr = str(feature.params[0][1])
            scale = 1.0 if attr in {"pvalue", "rvalue"} else window.std(0)
            nothing[row] = ROUNDED[attr] * scale
    return nothing


def assert_equal_to_numpy(window: Floats) -> None:
    window = np.ascontiguousarray(window)
    mine, its = numba_impl.features(window), numpy_impl.features(window)
    np.testing.assert_array_equal(np.isnan(mine), np.isnan(its))
    with np.errstate(invalid="ignore"):
        off = np.abs(mine - its) > 1e-12 * np.abs(its) + allowed(window)
    rows, row_indices = np.nonzero(off)
    different = [(FEATURES[row].suffix, mine[row, column], its[row, column])
            for row, column in zip(rows, row_indices, strict=True)]  # fmt: skip
    assert not different, different[:3]


def random_series(ticks: int, channels: int) -> Floats:
    rng = np.random.default_rng(ticks)
    kinds = rng.integers(0, 4, channels)
    noise = rng.normal(size=(ticks, channels))
    few = rng.integers(0, 3, (ticks, channels)).astype(float)
    flat = np.broadcast_to(rng.normal(size=channels), noise.shape)
    series = np.choose(kinds, [noise, noise.cumsum(0), few, flat])
    return np.ascontiguousarray(series * 10.0 ** rng.integers(-3, 9, channels))


@pytest.mark.parametrize("channels", [2, LANES - 1, LANES, LANES + 1, 3 * LANES + 5])
def test_any_number_of_channels(channels: int) -> None:
    assert_equal_to_numpy(random_series(30, channels))


@pytest.mark.parametrize("ticks", [4, 5, 6, 7, 8, 9, 10, 16, 29, 31, 64, 100, 127, 128, 129, 300])
def test_any_length(ticks: int) -> None:
    assert_equal_to_numpy(random_series(ticks, 80))


def test_recorded_windows() -> None:
    with np.load(RECORDED) as archive:
        values = archive["values"]
    for first in range(0, len(values) - 30, 7):
        assert_equal_to_numpy(values[first : first + 30])


@examples(100)
@given(
    hnp.arrays(
        np.float64,
        st.tuples(st.integers(4, 40), st.integers(2, 5)),
        elements=st.one_of(st.integers(-3, 3).map(float), st.floats(-1e6, 1e6, width=32)),
    )
)
def test_synthetic_windows(window: Floats) -> None:
    assert_equal_to_numpy(window)


@given(
    hnp.arrays(
        np.float64,
        st.tuples(st.integers(4, 20), st.integers(1, 4)),
        elements=st.floats(width=64, allow_nan=True, allow_infinity=True),
    )
)
def test_a_missing_sample_leaves_no_feature_and_no_error(window: Floats) -> None:
    out = numba_impl.features(np.ascontiguousarray(window))
    missing = ~np.isfinite(window).all(0)
    assert np.isnan(out[:, missing]).all()


def test_a_channel_has_the_same_bits_alone_and_among_others() -> None:
    window = random_series(30, 2 * LANES + 3)
    together = numba_impl.features(window)
    for column in range(window.shape[1]):
        alone = numba_impl.features(np.ascontiguousarray(window[:, column : column + 1]))
        np.testing.assert_array_equal(alone[:, 0], together[:, column])


def test_no_channels_have_no_features() -> None:
    assert numba_impl.features(np.zeros((30, 0))).shape == (33, 0)


def test_another_lag_is_numpys() -> None:
    window = random_series(30, 9)
    np.testing.assert_array_equal(
        numba_impl.features(window, adf_lag=2), numpy_impl.features(window, adf_lag=2)
    )


@pytest.mark.parametrize("window", [np.zeros((3, 5)), np.zeros((5, 30)).T])
def test_another_layout_is_refused(window: Floats) -> None:
    with pytest.raises(ValueError, match="a window is"):
        numba_impl.features(window)


@given(st.integers(1, 70), st.data())
def test_the_sorting_network_sorts_the_two_middle_values(count: int, data: st.DataObject) -> None:
    """Zeros and ones suffice: what sorts those sorts everything (Knuth, 5.3.4)."""
    values = data.draw(st.lists(st.booleans(), min_size=count, max_size=count))
    ordered = sorted(values)
    for low, high in middle_network(count).tolist():
        values[low], values[high] = sorted((values[low], values[high]))
    for index in {(count - 1) // 2, count // 2}:
        assert values[index] == ordered[index]
