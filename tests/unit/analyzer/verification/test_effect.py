"""The effect of a change on a step time, its interval, and the verdict."""

from __future__ import annotations

import numpy as np
import pytest

from reveal_analyzer.heartbeat.reference import WindowReading
from reveal_analyzer.heartbeat.tracker import StepTime
from reveal_analyzer.verification.effect import Pace, effect, pace_of, paces, verdict
from reveal_contract.finding import Impact
from reveal_contract.time_units import NS_PER_SECOND
from reveal_contract.verification import Effect, Verdict

END_NS = 1_700_000_000 * NS_PER_SECOND


def pace(period_ms: float, margin_ms: float) -> Pace:
    return Pace(END_NS, 60, period_ms, margin_ms)


def test_a_shorter_step_is_an_effect_in_percent_of_the_step_before() -> None:
    found = effect(pace(125.0, 0.0), pace(100.0, 0.0))
    assert (found.percent, found.low, found.high) == pytest.approx((20.0, 20.0, 20.0))


def test_the_interval_has_the_scatter_of_both_sides() -> None:
    """By random numbers: of 10,000 pairs of readings, 95 % lie within two spreads."""
    random = np.random.default_rng(1)
    before, after = random.normal(125, 1.0, 10_000), random.normal(100, 0.8, 10_000)
    found = effect(pace(125, 2.0), pace(100, 1.6))
    effects = 100 * (1 - after / before)
    within = np.mean((effects >= found.low) & (effects <= found.high))
    assert within == pytest.approx(0.954, abs=0.01)


@pytest.mark.parametrize(
    ("low", "high", "slowdown", "expected"),
    [
        (1.0, 30.0, 25.0, Verdict.IMPROVED),
        (-9.0, -1.0, 25.0, Verdict.WORSE),
        (-2.0, 2.0, 5.0, Verdict.NO_EFFECT),
        (-2.1, 2.0, 5.0, Verdict.UNKNOWN),
        (-4.9, 0.9, 25.0, Verdict.NO_EFFECT),  # a quarter of 20 % of the step
        (-5.1, 0.9, 25.0, Verdict.UNKNOWN),
        (-0.5, 9.0, 25.0, Verdict.UNKNOWN),
        (-1.0, 1.0, -50.0, Verdict.NO_EFFECT),
    ],
)
def test_the_verdict_is_what_is_certain(
    low: float, high: float, slowdown: float, expected: Verdict
) -> None:
    assert verdict(Effect((low + high) / 2, low, high), slowdown) is expected


def test_step_times_of_all_windows_are_in_milliseconds() -> None:
    readings = (WindowReading(10, 25.0, 0.5, 2.0), WindowReading(60, 20.0, 0.5, 2.0))
    short, long = paces(StepTime(0.25, 0.2, "c", 1.0, readings), END_NS)
    assert (short.window_s, short.period_ms) == (10, pytest.approx(250.0))
    assert (long.window_s, long.period_ms) == (60, pytest.approx(240.0))
    assert long.margin_ms == pytest.approx(2.0 * readings[1].margin)
    assert long.start_ns == END_NS - 60 * NS_PER_SECOND


def test_the_impact_of_a_finding_is_a_step_time() -> None:
    impact = Impact("ml/train-0", 25.0, 20.0, 30.0, 250.0, 200.0, END_NS, 30, "c", 90)
    assert pace_of(impact, END_NS) == Pace(END_NS, 30, 250.0, 10.0)
