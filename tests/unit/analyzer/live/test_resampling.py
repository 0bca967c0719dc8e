"""A history that is rebuilt from quantiles has these quantiles."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from reveal_analyzer.live.ranges import selected_ranks
from reveal_analyzer.live.resampling import QUANTILES, resample

VALUES = st.lists(st.integers(-3, 3).map(float), min_size=QUANTILES, max_size=QUANTILES).map(sorted)


@given(st.lists(VALUES, min_size=1, max_size=4), st.integers(160, 320))
def test_the_values_of_the_ranks_are_the_quantiles(rows: list[list[float]], count: int) -> None:
    quantiles = np.array(rows, np.float32)
    values = np.sort(resample(quantiles, count), axis=-1)
    np.testing.assert_array_equal(values[:, selected_ranks(count)], quantiles)


def test_both_ends_of_the_range_are_forgotten_together() -> None:
    values = resample(np.linspace(0, 6, QUANTILES, dtype=np.float32), 300)
    for part in np.split(values, 3):
        assert part.min() < 1.5
        assert part.max() > 4.5


def test_the_same_quantiles_give_the_same_history() -> None:
    quantiles = np.sort(np.random.default_rng(0).random((5, QUANTILES), np.float32))
    np.testing.assert_array_equal(resample(quantiles, 200), resample(quantiles, 200))
