"""Conditions that no report supports are removed from nodes, and no others."""

from __future__ import annotations

from typing import Any

import pytest

from reveal_contract.finding import FindingKind, Severity
from reveal_contract.kube.anomaly_report import report
from reveal_contract.kube.errors import ApiError
from reveal_contract.kube.names import PROFILE_KIND, REPORT_KIND
from reveal_operator.node_conditions import SWEEP_S, NodeConditionSweep
from support.fake_clock import FakeClock
from support.fake_operator_api import FakeOperatorApi
from support.finding_factory import finding, resolved

DESIRED = {"reporting": {"nodeConditions": True}}
OURS = {"type": "RevealAnomaly", "status": "True", "reason": "CPUHigh"}
READY = {"type": "Ready", "status": "True"}


class Sweeping:
    """A sweep with a clock, and nodes that have the condition."""

    def __init__(self, *nodes: str) -> None:
        self.api, self.clock = FakeOperatorApi(), FakeClock()
        self.sweep = NodeConditionSweep(self.api, self.clock)
        for node in nodes:
            self.api.create({"kind": "Node", "metadata": {"name": node}})
            self.api.set_status("Node", node, conditions=[READY, OURS])

    def report(self, node: str, profile: str = "p", **other: Any) -> None:
        given = {"severity": Severity.HIGH, **other}
        found = report(finding(node_name=node, **given), profile, 1)
        self.api.create({**found.to_create(), "status": found.status})

    def check(self, times: int = 1) -> list[str]:
        """Check so many times, a minute apart; return the nodes without the condition."""
        for _ in range(times):
            self.sweep.check()
            self.clock.now += 60
        return [
            name
            for (kind, name), node in self.api.objects.items()
            if kind == "Node" and node["status"]["conditions"] == [READY]
        ]


def test_a_deleted_profile_leaves_no_condition() -> None:
    stage = Sweeping("n1", "n2")
    stage.api.create_profile("p", DESIRED)
    stage.report("n1")
    stage.report("n2")
    assert stage.check(3) == []
    stage.api.objects = {key: each for key, each in stage.api.objects.items() if key[0] == "Node"}
    assert stage.check(1) == [], "an analyzer may be about to write a report"
    assert stage.check(1) == ["n1", "n2"]


@pytest.mark.parametrize(
    ("spec", "other", "stays"),
    [
        (DESIRED, {}, True),
        (DESIRED, {"severity": Severity.MEDIUM}, False),
        (DESIRED, {"kind": FindingKind.CONFIGURATION}, False),
        (DESIRED | {"mode": "Observe"}, {}, False),
        ({"reporting": {"nodeConditions": False}}, {}, False),
    ],
)
def test_only_an_urgent_open_report_of_a_profile_that_wants_it_keeps_it(
    spec: dict[str, Any], other: dict[str, Any], stays: bool
) -> None:
    stage = Sweeping("n1")
    stage.api.create_profile("p", spec)
    stage.report("n1", **other)
    assert (stage.check(2) == []) == stays


def test_what_an_analyzer_left_when_it_died_is_found_within_an_hour() -> None:
    stage = Sweeping("n1")
    stage.api.create_profile("p", DESIRED)
    stage.report("n1")
    stage.check(2)
    stage.api.objects.pop((REPORT_KIND, "p-n1-cpu-1"))
    over = report(resolved(severity=Severity.HIGH).finding, "p", 1)
    stage.api.create({**over.to_create(), "status": over.status})
    assert stage.check(2) == []
    stage.clock.now += SWEEP_S
    assert stage.check(2) == ["n1"]


def test_nodes_are_not_listed_while_nothing_asks_for_it() -> None:
    stage = Sweeping()
    stage.api.create_profile("p")
    stage.check()
    stage.api.requests.clear()
    stage.clock.now += 2 * SWEEP_S
    stage.check(5)
    assert {kind for _, kind, _ in stage.api.requests} == {PROFILE_KIND}


def test_a_refusal_is_logged_once_and_stops_no_other(caplog: pytest.LogCaptureFixture) -> None:
    stage = Sweeping("n1", "n2")

    def fail(verb: str, kind: str) -> ApiError | None:
        return ApiError("403 Forbidden", 403) if verb == "remove" else None

    stage.api.fail = fail
    stage.check(2)
    assert [name for verb, _, name in stage.api.requests if verb == "remove"] == ["n1", "n2"]
    assert caplog.text.count("stays on node") == 1
