"""Traces of episodes: means of values, peaks of excess, columns that come and go."""

from __future__ import annotations

import numpy as np

from reveal_analyzer.derive.columns import ColumnPlan, column_plan
from reveal_analyzer.episodes.trace import ObservedSecond, Trace
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


def test_without_a_second_there_is_no_evidence() -> None:
    assert Trace().stats.columns == ()
    assert Trace().weights.size == 0
