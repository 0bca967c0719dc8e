"""Windows have the ten features of their names, whatever number is calculated together."""

from __future__ import annotations

import numpy as np
import pytest

from reveal_analyzer.features.numpy_impl import features
from reveal_analyzer.features.table import FEATURES
from reveal_analyzer.tables.scoring import frames
from reveal_analyzer.tables.scoring.frames import Frames, shape_features, window_features

SHAPE = (
    "mean", "variance", "standard_deviation", "skewness", "kurtosis", "minimum", "maximum",
    "median", 'linear_trend__attr_"slope"', "autocorrelation__lag_1",
)  # fmt: skip


@pytest.mark.parametrize("size", [4, 10, 30, 60])
def test_the_features_are_ten_of_all(size: int) -> None:
    lanes = np.random.default_rng(size).normal(size=(size, 6))
    lanes[:, 2] = 7.0
    suffixes = [feature.suffix for feature in FEATURES]
    with np.errstate(all="ignore"):
        whole, found = features(lanes), shape_features(lanes)
    assert len(found) == len(SHAPE) == frames.FEATURES_A_METRIC
    expected = np.stack([whole[suffixes.index(name)] for name in SHAPE])
    assert np.array_equal(found, expected, equal_nan=True)


def test_what_is_calculated_together_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(5).normal(size=(90, 3))
    values[40, 1] = np.nan
    windows = Frames(10, 4, np.concatenate([np.arange(50), np.arange(40)]))
    whole = window_features(values, windows, shape_features)
    assert whole.shape == (len(windows.starts), 30)
    assert np.isnan(whole[~windows.whole]).all()
    monkeypatch.setattr(frames, "_LANES", 7)
    assert np.array_equal(window_features(values, windows, shape_features), whole, equal_nan=True)
