"""Periods that must be rejected: aliases of faster rhythms, timers, scattered steps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from reveal_analyzer.heartbeat import comb, guards
from reveal_analyzer.heartbeat.acquisition import needed_strength
from reveal_analyzer.heartbeat.guards import LEAST_REFERENCE_S
from reveal_analyzer.heartbeat.reference import REFERENCE_S, WINDOWS, StepReference
from reveal_analyzer.heartbeat.ring import RingBuffer
from reveal_analyzer.heartbeat.scatter import LEAST_SLOWDOWN
from support.heartbeat_nodes import FINE_HZ, TICK_HZ, Job
from support.property_tests import examples

MINUTE = 60


def accepted(values: np.ndarray, rate: int) -> list[float]:
    """Return the periods accepted from a single minute."""
    spectrum = comb.spectrum(values, rate)
    periods = []
    for top in (None, 4.6) if rate > 25 else (None,):
        fit = comb.best_fit(spectrum, top)
        if fit is None or fit.strength < needed_strength(rate, fit.period, top):
            continue
        if not guards.is_alias(spectrum, fit.period):
            periods.append(fit.period)
    return periods


@given(
    st.floats(0.004, 0.0395), st.floats(0.02, 0.95), st.floats(0, 0.02), st.integers(0, 999),
    st.sampled_from([0.0, 25.0]),
)  # fmt: skip
@examples(60)
def test_steps_faster_than_the_fine_lane_are_rejected(
    period: float, duty: float, jitter: float, seed: int, evaluates: float
) -> None:
    """Steps of 4 to 39.5 ms: every rhythm below 25 Hz is an alias."""
    job = Job(period, duty, jitter, evaluates=evaluates, seed=seed)
    for found in accepted(job.clock(MINUTE), FINE_HZ):
        pytest.fail(f"steps of {1000 * period:.2f} ms were believed to be {1000 * found:.1f} ms")


@given(st.floats(0.02, 0.195), st.floats(0.02, 0.95), st.floats(0, 0.02), st.integers(0, 999))
@examples(60)
def test_steps_faster_than_the_ticks_are_rejected_with_10_hz(
    period: float, duty: float, jitter: float, seed: int
) -> None:
    job = Job(period, duty, jitter, evaluates=0, seed=seed)
    assert accepted(job.clock(MINUTE, TICK_HZ), TICK_HZ) == []


@given(st.floats(0.2, 5.0), st.floats(0.05, 0.6), st.floats(0, 0.03), st.integers(0, 999))
@examples(40)
def test_steps_that_are_there_pass_the_guard(
    period: float, duty: float, jitter: float, seed: int
) -> None:
    job = Job(period, duty, jitter, evaluates=0, seed=seed)
    spectrum = comb.spectrum(job.clock(MINUTE), FINE_HZ)
    assert not guards.is_alias(spectrum, period)


@given(st.floats(0.01, 24.9))
def test_no_alias_swings_more_than_its_rhythm(frequency: float) -> None:
    """A counter that jumps once a period is the strongest possible rhythm."""
    fast = FINE_HZ - frequency
    counted = np.diff(np.floor(np.arange(MINUTE * FINE_HZ + 1) / FINE_HZ * fast + 1e-9))
    assume(counted.any())
    turned = np.exp(-2j * np.pi * frequency / FINE_HZ * np.arange(counted.size))
    swing = 2 * abs(np.mean((counted - counted.mean()) * turned)) / counted.mean()
    assert swing <= 1.25 * guards.largest_alias(frequency, FINE_HZ) + 0.02


@pytest.mark.parametrize(
    "period", [1.0, 0.9995, 0.5, 0.3, 0.25, 0.125, 0.2, 1.5, 2.5, 2.0, 10.0, 0.1]
)
def test_round_times_are_timers(period: float) -> None:
    assert guards.is_timer(period)


@pytest.mark.parametrize("period", [0.97, 1.004, 0.47, 1.57, 0.128, 1.03, 9.98])
def test_other_times_are_not(period: float) -> None:
    assert not guards.is_timer(period)


def test_eight_steps_must_fit_into_a_window() -> None:
    assert guards.steps_fit(10, 1.25)
    assert not guards.steps_fit(10, 1.26)


def reference_of(scatter: float, period: float = 0.47, seconds: int = REFERENCE_S) -> StepReference:
    """Return the reference of a job whose readings over ten seconds have this scatter.

    A reading is the mean of the seconds in its window, as far as there are some.
    """
    draw, reference = np.random.default_rng(0), StepReference()
    second = period * (1 + scatter * np.sqrt(10) * draw.standard_normal(seconds + max(WINDOWS)))
    for end in range(max(WINDOWS), len(second)):
        reference.learn({window: second[end - window : end].mean() for window in WINDOWS})
    return reference


def test_nothing_is_read_before_twenty_seconds_of_reference() -> None:
    young = reference_of(0.005, seconds=LEAST_REFERENCE_S - 1)
    assert young.readings({30: 0.5}) == ()
    assert "being learned" in young.unreadable_reason()
    assert reference_of(0.005, seconds=LEAST_REFERENCE_S).readings({30: 0.5})


def test_steps_that_scatter_are_not_read() -> None:
    assert reference_of(0.05).readings({30: 0.5}) == ()
    assert "scatter" in reference_of(0.05).unreadable_reason()
    assert reference_of(0.02).readings({30: 0.5})


def test_the_level_follows_the_scatter_up_to_1_5_percent() -> None:
    (calm,) = reference_of(0.0005).readings({30: 0.45})
    (loud,) = reference_of(0.02).readings({30: 0.45})
    assert calm.level == LEAST_SLOWDOWN
    assert 4 < loud.level < 14
    assert loud.margin == pytest.approx(2 * loud.scatter)
    assert calm.margin == 1.0


def test_a_job_driven_by_the_clock_is_a_timer_and_a_coincidence_is_not() -> None:
    assert reference_of(0.0002, period=0.2).is_timer()
    assert not reference_of(0.02, period=0.2).is_timer()
    assert not reference_of(0.002, period=0.2).is_timer()
    assert not reference_of(0.0002, period=0.21).is_timer()


def test_a_ring_fills_few_gaps_and_refuses_many() -> None:
    ring = RingBuffer(10)
    for second in range(30):
        values = np.arange(10.0) + second
        values[0] = np.nan
        ring.push(values)
    filled = ring.last(10)
    assert filled is not None
    assert len(filled) == 100
    assert not np.isnan(filled).any()
    ring.push(np.full(10, np.nan))
    ring.push(np.full(10, np.nan))
    assert ring.last(10) is None
    assert RingBuffer(10).last() is None


def test_a_constant_ring_has_no_rhythm() -> None:
    ring = RingBuffer(10)
    for _ in range(40):
        ring.push(np.zeros(10))
    assert ring.last() is None
