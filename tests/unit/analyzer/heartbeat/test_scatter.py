"""Scatter of overlapping readings, and the level that follows from few independent ones."""

from __future__ import annotations

import numpy as np
import pytest

from reveal_analyzer.heartbeat.scatter import LEAST_SLOWDOWN, ReadingScatter, scatter

PERIOD = 0.5


def readings(window: int, count: int, seed: int, spread: float = 0.01) -> list[float]:
    """Return means over a window of seconds; each of the means has this spread."""
    second = np.random.default_rng(seed).standard_normal(window + count)
    means = np.convolve(second, np.ones(window) / window, "valid")[:count]
    return list(PERIOD * (1 + spread * np.sqrt(window) * means))


@pytest.mark.parametrize("window", [10, 30])
def test_the_scatter_is_that_of_independent_readings(window: int) -> None:
    found = [scatter(readings(window, 120, seed), window, PERIOD).percent for seed in range(40)]
    assert np.median(found) == pytest.approx(1.0, rel=0.2)
    assert min(found) > 0.6


def test_overlapping_readings_count_as_few_independent_readings() -> None:
    few, many = (scatter(readings(10, count, 0), 10, PERIOD).independent for count in (30, 120))
    assert few == pytest.approx(10)
    assert many == pytest.approx(40)


def test_few_independent_values_need_a_larger_slowdown() -> None:
    levels = [ReadingScatter(1.0, count).level(10, 120) for count in (2, 5, 12, 40, 1000)]
    assert levels == sorted(levels, reverse=True)
    assert levels[-1] == pytest.approx(4.3, abs=0.2)
    assert levels[0] > 20


def test_the_reference_scatters_too() -> None:
    known = ReadingScatter(1.0, 1000)
    assert known.level(60, 90) > 1.3 * known.level(60, 3600)


def test_a_steady_job_is_slower_from_1_5_percent() -> None:
    assert ReadingScatter(0.01, 40).level(10, 130) == LEAST_SLOWDOWN


def test_a_longer_window_scatters_less() -> None:
    longer = ReadingScatter(1.0, 20).over(10, 40)
    assert (longer.percent, longer.independent) == (0.5, 20)


def test_few_readings_count_as_a_single_value() -> None:
    assert scatter([0.5, 0.51], 10, PERIOD).independent == 1.0
