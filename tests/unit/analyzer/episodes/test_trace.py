"""Traces of episodes: means of values, peaks of excess, columns that come and go."""

from __future__ import annotations

import numpy as np
import pytest

from reveal_analyzer.derive.columns import Column, ColumnPlan, column_plan
from reveal_analyzer.episodes.trace import ObservedSecond, Trace
from reveal_contract import catalogue
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Kind

STEAL, PRESSURE = "cpu.steal", "memory.pressure.some"


def plan_of(*metrics: str) -> ColumnPlan:
    return column_plan(ChannelTable(tuple(Channel(name, "", Kind.COUNTER) for name in metrics), ()))


def observed(plan: ColumnPlan, values: dict[str, float], excess: float = 0.0) -> ObservedSecond:
    """A second in which all columns but those of ``values`` were not read."""
    width = len(plan.columns)
    read = np.array([values.get(column.metric.name, np.nan) for column in plan.columns])
    above = np.full((2, width), excess)
    return ObservedSecond(0, plan, read, above, above[0], np.ones(width))


def values_of(trace: Trace) -> dict[str, float]:
    stats = trace.stats
    known = zip(stats.columns, stats.values.tolist(), strict=True)
    return {column.metric.name: value for column, value in known if not np.isnan(value)}


def test_a_value_that_was_not_read_is_unknown_instead_of_zero() -> None:
    trace, plan = Trace(), plan_of(STEAL, PRESSURE)
    for values in ({}, {STEAL: 8.0}, {}, {STEAL: 4.0}):
        trace.add(observed(plan, values))
    assert values_of(trace) == {STEAL: 6.0}  # mean of the seconds in which it was read


def test_excess_is_the_peak_and_weight_the_mean() -> None:
    trace, plan = Trace(), plan_of(STEAL)
    for excess in (2.0, 6.0, 1.0):
        trace.add(observed(plan, {STEAL: 0.0}, excess))
    assert set(trace.stats.excess.ravel().tolist()) == {6.0}
    assert set(trace.weights.tolist()) == {3.0}


def test_columns_are_carried_over_by_label_when_the_table_changes() -> None:
    trace = Trace()
    trace.add(observed(plan_of(STEAL, PRESSURE), {STEAL: 2.0, PRESSURE: 5.0}))
    trace.add(observed(plan_of(PRESSURE, "cpu.run_delay"), {PRESSURE: 7.0, "cpu.run_delay": 9.0}))
    assert values_of(trace) == {PRESSURE: 6.0, "cpu.run_delay": 9.0}


def test_it_describes_the_last_minute_and_the_worst_ten_seconds() -> None:
    trace, plan = Trace(), plan_of(STEAL)
    for second in range(200):
        bad = 40 <= second < 50
        trace.add(observed(plan, {STEAL: 90.0 if bad else 10.0}), strength=9.0 if bad else 1.0)
    assert values_of(trace) == {STEAL: 10.0}
    worst = trace.worst()
    assert worst is not None
    assert worst.strength == 9.0 > trace.strength == 1.0
    assert values_of(worst.trace) == {STEAL: 90.0}


def test_a_column_that_is_gone_leaves_its_evidence() -> None:
    trace = Trace()
    for _ in range(20):
        trace.add(observed(plan_of(STEAL, PRESSURE), {STEAL: 8.0, PRESSURE: 1.0}, excess=3.0))
    for _ in range(200):
        trace.add(observed(plan_of(PRESSURE), {PRESSURE: 2.0}, excess=3.0))
    assert values_of(trace) == {STEAL: 8.0, PRESSURE: 2.0}


def test_a_column_that_never_moved_is_gone_with_its_device() -> None:
    trace = Trace()
    trace.add(observed(plan_of(STEAL, PRESSURE), {STEAL: 8.0, PRESSURE: 1.0}))
    trace.add(observed(plan_of(PRESSURE), {PRESSURE: 2.0}))
    assert set(values_of(trace)) == {PRESSURE}


def test_the_value_of_a_single_subject_is_kept_beside_the_sum_of_all() -> None:
    trace, plan = Trace(), plan_of(STEAL)
    subject = Column(catalogue.find("cpu.subject.throttled_time"), "/a", "mean")
    for value in (2e8, 4e8):
        trace.add(observed(plan, {STEAL: 1.0}), subjects={subject: value})
    trace.add(observed(plan, {STEAL: 1.0}))
    index = trace.stats.index_of(subject)
    assert index is not None
    assert trace.stats.values[index] == 3e8


def test_growth_is_that_of_the_last_half_minute() -> None:
    steady, grown = Trace(), Trace()
    plan = plan_of(STEAL)
    for second in range(60):
        steady.add(observed(plan, {STEAL: 1.0}), strength=2.0)
        grown.add(observed(plan, {STEAL: 1.0}), strength=2.0 if second < 45 else 8.0)
    assert not steady.has_grown
    assert grown.has_grown


def test_evidence_is_the_same_after_it_was_saved() -> None:
    trace = Trace()
    plan = plan_of(STEAL, PRESSURE)
    for second in range(90):
        trace.add(observed(plan, {STEAL: 4.0 + second % 3}, excess=3.0), 2.0, float(second < 10))
    again = Trace.restore(trace.save([f"{STEAL}__mean"]))
    assert values_of(again) == pytest.approx(values_of(trace))
    assert (again.peak, again.strength, again.seconds) == (
        trace.peak,
        trace.strength,
        trace.seconds,
    )
    for each in (trace, again):
        each.add(observed(plan, {STEAL: 100.0, PRESSURE: 1.0}, excess=5.0))
    assert values_of(again) == pytest.approx(values_of(trace), rel=0.1)


def test_a_trace_that_is_saved_often_forgets_after_a_minute_as_before() -> None:
    trace, plan = Trace(), plan_of(STEAL, PRESSURE)
    for second in range(200):
        trace.add(observed(plan, {STEAL: 4.0 if second < 130 else 9.0}, excess=3.0), 2.0)
        if second % 7 == 0 and second < 139:
            trace = Trace.restore(trace.save([f"{STEAL}__mean"]))
        assert trace.seconds <= 60
    assert max(values_of(trace).values()) == pytest.approx(9.0)


def test_without_a_second_there_is_no_evidence() -> None:
    assert Trace().stats.columns == ()
    assert Trace().weights.size == 0
