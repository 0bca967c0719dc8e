"""Claims: columns that an open case accounts for, until their level has been learned."""

from __future__ import annotations

import numpy as np

from reveal_analyzer.derive.columns import ColumnPlan, column_plan
from reveal_analyzer.episodes.claims import Claims, ColumnSet
from reveal_analyzer.episodes.trace import ObservedSecond
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Kind

STEAL, PRESSURE = "cpu.steal", "memory.pressure.some"


def plan_of(*metrics: str) -> ColumnPlan:
    return column_plan(ChannelTable(tuple(Channel(name, "", Kind.COUNTER) for name in metrics), ()))


def label(metric: str) -> str:
    return f"{metric}__mean"


def second(plan: ColumnPlan, *, unobserved: bool = False, **of: float) -> ObservedSecond:
    weighted = np.array([of.get(c.metric.name.replace(".", "_"), 0.0) for c in plan.columns])
    width = len(plan.columns)
    values = np.zeros(width)
    unread = np.full(width, unobserved)
    return ObservedSecond(0, plan, values, np.zeros((2, width)), weighted, values, unread)


def claimed(claims: Claims, plan: ColumnPlan) -> set[str]:
    return {c.metric.name for c, own in zip(plan.columns, claims.mask(plan), strict=True) if own}


def test_columns_are_known_by_label_in_any_table() -> None:
    columns = ColumnSet([label(STEAL), "gone__mean"])
    plan = plan_of(PRESSURE, STEAL)
    (steal, gone) = columns.indices(plan)
    assert plan.columns[steal].metric.name == STEAL
    assert gone == -1
    assert columns.mask(plan).sum() == 1


def test_a_claim_lapses_once_the_level_of_its_column_is_learned() -> None:
    claims, plan = Claims(), plan_of(STEAL, PRESSURE)
    claims.add([label(STEAL), label(PRESSURE)])
    for _ in range(60):
        claims.update(second(plan, cpu_steal=20.0, memory_pressure_some=20.0))
    for _ in range(29):
        claims.update(second(plan, memory_pressure_some=20.0))
    assert claimed(claims, plan) == {STEAL, PRESSURE}
    claims.update(second(plan, memory_pressure_some=20.0))
    assert claimed(claims, plan) == {PRESSURE}


def test_a_young_claim_does_not_lapse_in_calm_seconds() -> None:
    claims, plan = Claims(), plan_of(STEAL)
    claims.add([label(STEAL)])
    for _ in range(60):
        claims.update(second(plan))
    assert claimed(claims, plan) == {STEAL}


def test_a_level_that_comes_and_goes_keeps_its_claim() -> None:
    claims, plan = Claims(), plan_of(STEAL)
    claims.add([label(STEAL)])
    for number in range(300):
        claims.update(second(plan, cpu_steal=20.0 * (number % 20 == 0)))
    assert claimed(claims, plan) == {STEAL}


def test_claims_are_added_once_and_given_up() -> None:
    claims, plan = Claims(), plan_of(STEAL, PRESSURE)
    claims.add([label(STEAL)])
    claims.add([label(STEAL), label(PRESSURE)])
    claims.release([label(STEAL)])
    assert claims.labels == (label(PRESSURE),)
    claims.update(second(plan))
    assert claimed(claims, plan) == {PRESSURE}


def test_seconds_in_which_a_column_was_not_read_do_not_count() -> None:
    claims, plan = Claims(), plan_of(STEAL)
    claims.add([label(STEAL)])
    for _ in range(60):
        claims.update(second(plan, cpu_steal=20.0))
    for _ in range(300):
        claims.update(second(plan, unobserved=True))
    assert claimed(claims, plan) == {STEAL}
    for _ in range(30):
        claims.update(second(plan))
    assert claimed(claims, plan) == set()
