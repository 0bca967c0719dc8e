"""Units of features: what a value is in does not depend on the sample period."""

from __future__ import annotations

import numpy as np
import pytest

from reveal_analyzer.features import units
from reveal_analyzer.features.numpy_impl import features
from reveal_analyzer.features.table import FEATURES, Feature
from reveal_contract.metric import Kind


def named(suffix: str) -> Feature:
    return next(feature for feature in FEATURES if feature.suffix == suffix)


@pytest.mark.parametrize(
    ("suffix", "counter", "gauge"),
    [
        ("mean", "ns/s", "ns"),
        ("sum_values", "ns", "ns s"),
        ("variance", "ns^2/s^2", "ns^2"),
        ("abs_energy", "ns^2/s", "ns^2 s"),
        ("mean_change", "ns/s^2", "ns/s"),
        ('linear_trend__attr_"slope"', "ns/s^2", "ns/s"),
        ("kurtosis", "", ""),
        ("number_peaks__n_1", "", ""),
        ('augmented_dickey_fuller__attr_"pvalue"__autolag_None__maxlag_1', "", ""),
    ],
)
def test_units(suffix: str, counter: str, gauge: str) -> None:
    feature = named(suffix)
    assert units.unit(feature, "ns", Kind.COUNTER) == counter
    assert units.unit(feature, "ns", Kind.GAUGE) == gauge


@pytest.mark.parametrize("kind", [Kind.COUNTER, Kind.GAUGE])
def test_values_of_steady_metrics_are_the_same_with_each_sample_period(kind: Kind) -> None:
    """A ramp of a level, or increments that grow, read at 10 and at 50 Hz."""
    steady = ("sum_values", "mean", "median", "abs_energy", "mean_change")
    slope = 'linear_trend__attr_"slope"'

    def values(tick_s: float) -> dict[str, float]:
        times = np.arange(0.0, 3.0, tick_s) + tick_s / 2
        levels = 100.0 + 20.0 * times
        samples = levels * tick_s if kind is Kind.COUNTER else levels
        computed = features(np.ascontiguousarray(samples[:, None]))[:, 0]
        return {
            feature.suffix: units.factor(feature, kind, tick_s) * value
            for feature, value in zip(FEATURES, computed, strict=True)
            if feature.suffix in (*steady, slope)
        }

    coarse, fine = values(0.1), values(0.02)
    for suffix, value in coarse.items():
        assert fine[suffix] == pytest.approx(value, rel=1e-3), suffix
    assert coarse[slope] == pytest.approx(20.0)


def test_an_amount_changes_the_features_that_have_a_dimension() -> None:
    changes = units.least_changes(np.array([2.0, 0.0]), samples=30)
    row = {feature.suffix: index for index, feature in enumerate(FEATURES)}
    assert changes[row["mean"]].tolist() == [2.0, 0.0]
    assert changes[row["sum_values"]].tolist() == [60.0, 0.0]
    assert changes[row["variance"]].tolist() == [4.0, 0.0]
    assert np.isinf(changes[row["kurtosis"]]).all()
