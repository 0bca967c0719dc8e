"""The counter of lost GPU-hours: by what costs grew, each finding once."""

from __future__ import annotations

from typing import Any

import pytest

from reveal_analyzer.sinks.metrics import Metrics
from reveal_contract.costs import Cost
from reveal_contract.finding import FindingScope, FindingUpdate, Hypothesis
from support.finding_factory import changed, opened, resolved

CAUSE = Hypothesis("CPUContention", 90, "")
Labels = tuple[str, str, str]


def counted(*updates: FindingUpdate, metrics: Metrics | None = None) -> dict[Labels, float]:
    """Return the GPU-hours by node, cause and scope after some updates."""
    metrics = metrics or Metrics()
    for update in updates:
        metrics.write(update)
    return {
        (sample.labels["node"], sample.labels["cause"], sample.labels["scope"]): sample.value
        for family in metrics.registry.collect()
        for sample in family.samples
        if sample.name == "reveal_lost_gpu_hours_total"
    }


def costing(hours: float, **given: Any) -> dict[str, Any]:
    cost = Cost(8, 0.9, hours, hours / 2, hours * 2)
    return {"cost": cost, "hypothesis": CAUSE, **given}


def test_what_a_finding_costs_is_counted_once() -> None:
    hours = counted(
        opened(), changed(**costing(1.0)), changed(**costing(1.5)), resolved(**costing(2.0))
    )
    assert hours == {("n1", "CPUContention", "Node"): pytest.approx(2.0)}


def test_findings_are_added_by_node_cause_and_scope() -> None:
    hours = counted(
        opened("a", **costing(1.0)),
        opened("b", **costing(2.0)),
        opened("c", **costing(4.0, node_name="n2", hypothesis=None)),
        opened("d", **costing(8.0, scope=FindingScope.JOB)),
    )
    assert hours == {
        ("n1", "CPUContention", "Node"): 3.0,
        ("n2", "Unknown", "Node"): 4.0,
        ("n1", "CPUContention", "Job"): 8.0,
    }


def test_what_another_process_has_counted_is_not_counted_again() -> None:
    hours = counted(changed(**costing(5.0)), changed(**costing(5.5)), resolved(**costing(6.0)))
    assert hours == {("n1", "CPUContention", "Node"): pytest.approx(1.0)}


def test_a_cost_that_fell_counts_again_when_it_is_higher_than_ever() -> None:
    costs = (opened(**costing(2.0)), changed(**costing(1.0)), changed(**costing(3.0)))
    assert counted(*costs) == {("n1", "CPUContention", "Node"): pytest.approx(3.0)}


def test_findings_without_a_cost_have_no_series() -> None:
    assert counted(opened(), changed(), resolved()) == {}


def test_the_series_of_a_node_end_when_another_analyzer_takes_it_over() -> None:
    metrics = Metrics()
    metrics.write(opened("a", **costing(1.0)))
    metrics.write(opened("b", **costing(2.0, node_name="n2")))
    metrics.forget("n1")
    assert counted(metrics=metrics) == {("n2", "CPUContention", "Node"): 2.0}


def test_a_lost_finding_leaves_its_series() -> None:
    metrics = Metrics()
    metrics.write(opened(**costing(1.0)))
    metrics.forget("n1", "its analysis failed")
    after = counted(changed(**costing(9.0)), metrics=metrics)
    assert after == {("n1", "CPUContention", "Node"): 1.0}
