"""Scatter of overlapping readings, and the level that follows from few independent ones."""

from __future__ import annotations

import numpy as np
import pytest

from reveal_analyzer.heartbeat.scatter import (
    LEAST_SLOWDOWN,
    ReadingScatter,
    scatter,
    step_scatter,
)

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


LONG = 5.0


def lengths(count: int, seed: int, spread: float = 0.01) -> list[float]:
    """Return how long the last step took at each second; single steps have this spread."""
    steps = LONG * (1 + spread * np.random.default_rng(seed).standard_normal(count))
    return [float(steps[int(second / LONG)]) for second in range(count)]


def of_steps(values: list[float], window: int = 60) -> ReadingScatter:
    found = step_scatter(values, LONG)
    assert found is not None
    return found.of_steps(window, LONG)


def test_the_scatter_of_readings_follows_from_that_of_single_steps() -> None:
    found = [of_steps(lengths(180, seed)).percent for seed in range(40)]
    assert np.median(found) == pytest.approx(100 * 0.01 * np.sqrt(LONG / 60), rel=0.25)
    assert of_steps(lengths(180, 0)).independent == pytest.approx(180 / (2.5 * LONG))


@pytest.mark.parametrize("percent", [3, 10, 100])
def test_a_slowdown_that_begins_while_steps_are_learned_is_no_scatter(percent: int) -> None:
    steady = lengths(180, 1)
    slowed = [*steady[:150], *(length * (1 + percent / 100) for length in steady[150:])]
    assert of_steps(slowed).percent < 1.25 * of_steps(steady).percent


def test_few_steps_show_no_scatter() -> None:
    assert step_scatter(lengths(15, 0), LONG) is None
    assert step_scatter(lengths(16, 0), LONG) is not None


def test_readings_that_scatter_by_more_than_their_steps_raise_the_scatter() -> None:
    steps = ReadingScatter(1.0, 12)
    assert steps.raised_by(ReadingScatter(0.5, 2)) == steps
    assert steps.raised_by(ReadingScatter(3.0, 2)).percent == pytest.approx(np.sqrt(30 / 14))
    assert steps.raised_by(ReadingScatter(3.0, 2)).independent == 12
