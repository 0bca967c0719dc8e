"""The comb on simulated jobs: their period, and the confidence in it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_analyzer.heartbeat import autocorrelation, comb, phase
from reveal_analyzer.heartbeat.guards import is_alias
from support.heartbeat_nodes import FINE_HZ, Job
from support.property_tests import examples

MINUTE = 60


def last_minute(job: Job, seconds: int = 90) -> np.ndarray:
    return job.clock(seconds)[-MINUTE * FINE_HZ :]


@pytest.mark.parametrize(
    "job",
    [
        Job(0.128, 0.4, 0.09),
        Job(0.45, 0.15, 0.07),
        Job(0.44, 0.9, 0.03),
        Job(1.57, 0.15, 0.03),
        Job(5.5, 0.1, 0.02),
    ],
)
def test_the_comb_finds_the_step_of_a_training_job(job: Job) -> None:
    fit = comb.best_fit(comb.spectrum(last_minute(job), FINE_HZ))
    assert fit is not None
    assert fit.period == pytest.approx(job.mean_step(30, 90), rel=0.03)
    assert fit.strength > 0.1


def test_neither_half_nor_twice_the_step_holds_as_much() -> None:
    spectrum = comb.spectrum(last_minute(Job(0.45, 0.3, 0.02, evaluates=0)), FINE_HZ)
    there = comb.strength(spectrum, 0.45)
    assert there > 0.5
    assert comb.strength(spectrum, 0.45 / 1.5) < 0.2 * there
    assert comb.strength(spectrum, 0.45 * 1.3) < 0.2 * there


@given(st.integers(0, 10_000), st.floats(0.2, 20.0))
@examples(40)
def test_requests_that_come_by_chance_have_no_comb(seed: int, rate: float) -> None:
    counted = np.random.default_rng(seed).poisson(rate, MINUTE * FINE_HZ) * 1e-3
    fit = comb.best_fit(comb.spectrum(counted, FINE_HZ))
    assert fit is None or fit.strength < 0.1


def test_a_band_leaves_out_what_lies_above_it() -> None:
    """The rest of a faster rhythm there is an alias of its overtones."""
    spectrum = comb.spectrum(last_minute(Job(0.128, 0.4, 0.0, evaluates=0)), FINE_HZ)
    everything, low = comb.best_fit(spectrum), comb.best_fit(spectrum, 4.6)
    assert everything is not None and low is not None
    assert everything.period == pytest.approx(0.128, rel=0.001)
    assert low.period > 0.2
    assert is_alias(spectrum, low.period)


def test_a_counter_that_stands_still_has_no_comb() -> None:
    assert comb.best_fit(comb.spectrum(np.full(3000, 0.02), FINE_HZ)) is None
    assert comb.best_fit(comb.spectrum(np.zeros(600), 10)) is None


def test_a_burst_far_outside_is_clipped_and_sparse_bursts_are_not() -> None:
    steady = np.tile([0.0, 1.0], 500)
    burst = steady.copy()
    burst[500] = 1000.0
    assert comb.clipped(burst).max() < 5
    sparse = np.zeros(3000)
    sparse[::100] = 20.0
    assert comb.clipped(sparse).max() > 2


@given(
    st.floats(0.1, 2.4),
    st.floats(0.1, 0.8),
    st.floats(0, 0.05),
    st.floats(-20, 25),  # further off, the overtones of short bursts pull
    st.integers(0, 99),
)
@examples(30)
def test_the_phase_corrects_a_wrong_guess_of_the_step(
    period: float, duty: float, jitter: float, off: float, seed: int
) -> None:
    job = Job(period, duty, jitter, evaluates=0, seed=seed)
    guess = period / (1 + off / 100)
    found = phase.periods(last_minute(job), FINE_HZ, guess, (30, 60))
    assert found[60] == pytest.approx(job.mean_step(30, 90), rel=0.03)


def test_windows_that_the_values_do_not_fill_are_left_out() -> None:
    values = Job(0.45).clock(20)
    assert set(phase.periods(values, FINE_HZ, 0.45, (10, 30, 60))) == {10}
    assert phase.periods(values[:20], FINE_HZ, 0.45, (10,)) == {}
    assert autocorrelation.periods([values], FINE_HZ, 5.0, (60,), 1.4) == {}
    assert autocorrelation.periods([], FINE_HZ, 5.0, (60,), 1.4) == {}


@given(st.floats(2.5, 7.0), st.floats(0.05, 0.6), st.floats(0, 0.03), st.integers(0, 99))
@examples(30)
def test_autocorrelation_finds_long_steps(
    period: float, duty: float, jitter: float, seed: int
) -> None:
    job = Job(period, duty, jitter, evaluates=0, seed=seed)
    found = autocorrelation.periods([last_minute(job)], FINE_HZ, period * 1.05, (60,), 1.4)
    assert found[60] == pytest.approx(job.mean_step(30, 90), rel=0.03)


def test_channels_that_share_a_rhythm_are_summed() -> None:
    job = Job(5.0, 0.1, 0.01, evaluates=0)
    clear, seed = last_minute(job), np.random.default_rng(1)
    noisy = clear + seed.normal(0, 0.05, clear.size)
    alone = autocorrelation.periods([noisy], FINE_HZ, 5.0, (60,), 1.4)[60]
    both = autocorrelation.periods([noisy, clear], FINE_HZ, 5.0, (60,), 1.4)[60]
    assert abs(both / job.mean_step(30, 90) - 1) <= abs(alone / job.mean_step(30, 90) - 1) + 0.005


@pytest.mark.parametrize("factor", [1.5, 2.0, 3.0])
@pytest.mark.parametrize("ago", [15, 25, 40])
def test_the_line_of_a_longer_step_is_as_old_as_the_step(factor: float, ago: int) -> None:
    job = Job(1.0, 0.3, 0.02, evaluates=0, slower=lambda s: factor if s >= 90 - ago else 1.0)
    age = phase.line_age(last_minute(job), FINE_HZ, factor)
    assert age == pytest.approx(ago, abs=5)


@given(st.lists(st.floats(-1e3, 1e3), min_size=3, max_size=3))
def test_a_peak_is_within_half_a_step(values: list[float]) -> None:
    assert abs(comb.parabola_peak(np.array(values), 7.0) - 7.0) <= 0.5


def test_three_values_on_nearly_a_line_have_no_far_peak() -> None:
    assert comb.parabola_peak(np.array([1.0, 2.0, 3.0 - 1e-12]), 5.0) == 5.5


@pytest.mark.parametrize("period", [2.3, 5.3])
def test_an_evaluation_and_a_checkpoint_in_the_window_move_no_step(period: float) -> None:
    for seed in range(20):
        job = Job(period, 0.3, 0.01, evaluates=40, seed=seed, saves=(60, 4))
        found = autocorrelation.periods([last_minute(job)], FINE_HZ, period, (60,), 1.4)
        assert found[60] == pytest.approx(job.period, rel=0.012)


def test_a_counter_repeats_better_after_a_step_than_after_another_time() -> None:
    clock = last_minute(Job(3.0, 0.2, 0.02, evaluates=0))
    assert autocorrelation.repeats_better(clock, FINE_HZ, 3.0, 4.2)
    assert not autocorrelation.repeats_better(clock, FINE_HZ, 4.2, 3.0)
    assert not autocorrelation.repeats_better(clock, FINE_HZ, 9.0, 3.0)
    # too few samples in a step
    assert autocorrelation.repeats_better(clock, 1, 4.2, 3.0)
