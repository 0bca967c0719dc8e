import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_analyzer.detectors.threshold import Threshold, time_folds, validation_threshold


def test_the_threshold_is_an_observed_score_and_the_largest_of_few() -> None:
    scores = np.arange(1000.0)
    assert validation_threshold(scores, 0.99).value == 990
    assert validation_threshold(scores, 0.99).center == 499.5
    assert validation_threshold(scores[:60], 0.99).value == 59


def test_no_validation_scores_give_no_threshold() -> None:
    with pytest.raises(ValueError, match="none"):
        validation_threshold(np.zeros(0))


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=20), st.floats(0, 10), st.floats(0, 10))
def test_percent_rises_with_the_score(scores: list[float], center: float, above: float) -> None:
    limit = Threshold(center + above, center)
    percents = [limit.percent(score) for score in sorted(scores)]
    assert percents == sorted(percents)
    assert percents[0] >= 0
    assert percents[-1] <= 99


def test_percent_is_0_for_the_median_and_50_for_the_threshold() -> None:
    limit = Threshold(3.0, 1.0)
    assert [limit.percent(score) for score in (0.0, 1.0, 3.0, 5.0)] == [0, 0, 50, 67]
    assert limit.percent(float("nan")) == 0
    assert Threshold(0.5, 0.5).percent(0.5) == 0


@given(st.integers(30, 200), st.integers(2, 5), st.integers(0, 4))
def test_validation_windows_share_no_sample_with_fitted_windows(
    n: int, count: int, gap: int
) -> None:
    times = np.arange(n) * 2
    np.random.default_rng(n).shuffle(times)
    validated = []
    for fit_on, validation in time_folds(times, count, gap):
        distances = np.abs(times[fit_on][:, None] - times[validation])
        assert distances.min() > gap
        validated.extend(validation.tolist())
    assert sorted(validated) == list(range(n))
