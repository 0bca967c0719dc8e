"""Sums of costs: by job, namespace, node and cause, and no GPU twice."""

from __future__ import annotations

from typing import Any

import pytest

from reveal_cli.kubectl.cost_sums import KEYS, cost_sums
from reveal_cli.kubectl.reports import ClusterReport
from reveal_contract.costs import Cost, PodCost
from reveal_contract.finding import DelayedJob, FindingScope, Hypothesis, JobLoss, State
from support.finding_factory import START_NS, finding
from support.reports_api import stored


def report(
    identity: str, *pods: tuple[str, float], hours: float = 0.0, **given: Any
) -> ClusterReport:
    """Return the report of a finding that cost pods so many hours."""
    lost = tuple(PodCost(*each) for each in pods)
    hours = hours or sum(each.lost_gpu_hours for each in lost)
    cost = Cost(8, 1.0, hours, hours, hours)
    parsed = ClusterReport.parse(stored(finding(identity, cost=cost, pod_costs=lost, **given)))
    assert parsed is not None
    return parsed


def caused(cause: str) -> dict[str, Any]:
    return {"hypothesis": Hypothesis(cause, 90, "")}


def delayed(identity: str, hours: float) -> ClusterReport:
    return report(
        identity, hours=hours, scope=FindingScope.JOB, lost_time=(JobLoss("ml/llm-1", 9.0, 60),),
        delayed_job=DelayedJob("ml/Job/llm", 8, 10.0, 9.0, 11.0), **caused("StragglingRank"),
    )  # fmt: skip


REPORTS = [
    report("a", ("ml/llm-0", 2.0), ("ml/web-5d8f7c9b6d-x2x2x", 1.0), **caused("CPUContention")),
    report("b", ("ml/llm-1", 4.0), node_name="n2", **caused("PacketLoss")),
    report(
        "c", ("dev/try-0", 0.5), state=State.RESOLVED, resolved_ns=START_NS + 10**9,
        **caused("PacketLoss"),
    ),
]  # fmt: skip


def sums(key: str, *more: ClusterReport) -> dict[str, float]:
    return {each.name: each.hours for each in cost_sums([*REPORTS, *more], key)}


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("job", {"ml/llm": 6.0, "ml/web": 1.0, "dev/try": 0.5}),
        ("namespace", {"ml": 7.0, "dev": 0.5}),
        ("node", {"n2": 4.0, "n1": 3.5}),
        ("cause", {"PacketLoss": 4.5, "CPUContention": 3.0}),
    ],
)
def test_costs_are_added_and_the_highest_is_first(key: str, expected: dict[str, float]) -> None:
    assert list(sums(key).items()) == list(expected.items())


def test_a_sum_has_its_findings_and_the_costliest_cause_first() -> None:
    first = cost_sums(REPORTS, "job")[0]
    assert (first.findings, first.open, first.causes) == (2, 2, ("PacketLoss", "CPUContention"))
    last = cost_sums(REPORTS, "job")[-1]
    assert (last.findings, last.open) == (1, 0)


def test_a_delayed_job_and_findings_of_its_nodes_are_not_added() -> None:
    assert sums("job", delayed("d", 48.0))["ml/llm"] == 48.0
    assert sums("job", delayed("d", 5.0))["ml/llm"] == 6.0
    assert sums("cause", delayed("d", 48.0)) == {
        "StragglingRank": 48.0, "CPUContention": 1.0, "PacketLoss": 0.5
    }  # fmt: skip


def test_a_finding_without_pods_is_of_the_job_that_it_affects() -> None:
    older = report("e", hours=2.0, victims=("ml/eval-0",))
    assert sums("job", older)["ml/eval"] == 2.0


def test_what_pods_lost_that_a_report_has_no_room_for_is_of_the_job_that_it_affects() -> None:
    large = report("f", ("ml/eval-0", 2.0), hours=5.0, victims=("ml/tune-0",))
    assert sums("job", large).items() >= {"ml/eval": 2.0, "ml/tune": 3.0}.items()


@pytest.mark.parametrize("key", KEYS)
def test_findings_without_a_cost_do_not_count(key: str) -> None:
    parsed = ClusterReport.parse(stored(finding("none")))
    assert parsed is not None
    assert cost_sums([parsed], key) == []


def test_the_prices_of_profiles_make_amounts_by_currency() -> None:
    def priced(identity: str, hours: float, price: str) -> ClusterReport:
        cost = Cost(8, 1.0, hours, hours, hours, price)
        lost = (PodCost("ml/llm-0", hours),)
        parsed = ClusterReport.parse(stored(finding(identity, cost=cost, pod_costs=lost)))
        assert parsed is not None
        return parsed

    items = [priced("a", 2.0, "2.50 USD"), priced("b", 1.0, "3 EUR"), priced("c", 1.0, "")]
    [found] = cost_sums(items, "job")
    assert (found.hours, found.amounts) == (4.0, {"USD": 5.0, "EUR": 3.0})
    [other] = cost_sums(items, "job", "10")
    assert other.amounts == {"": 40.0}
