"""The node condition with one analyzer, with several, and after it is switched off."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from reveal_analyzer.sinks.kube import backoff, sink
from reveal_analyzer.sinks.kube.node_conditions import NodeConditions
from reveal_contract.finding import FindingScope, Severity
from reveal_contract.kube.anomaly_report import Report, report
from reveal_contract.kube.errors import ForbiddenError, UnavailableError
from reveal_contract.kube.names import LABEL_STATE
from reveal_contract.names import shard
from support.fake_kube import FakeKube
from support.finding_factory import changed, finding, opened, resolved
from support.kube_sink_harness import SinkHarness
from support.report_store_harness import ALL

MINE = frozenset({shard("n1")})
HIGH = {"severity": Severity.HIGH}


@pytest.fixture(autouse=True)
def _hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backoff, "FIRST_S", 0.01)
    monkeypatch.setattr(sink, "ROUND_SECONDS", 0.01)
    monkeypatch.setattr(sink, "LIST_SECONDS", 0.02)


@pytest.fixture
def two() -> Iterator[tuple[SinkHarness, SinkHarness]]:
    """Two analyzers of one profile; the first reads the node "n1", the second leads."""
    api = FakeKube()
    both = tuple(SinkHarness(None, api, node_conditions=True) for _ in range(2))
    first, second = both
    first.observe(shards=MINE)
    second.observe(shards=ALL - MINE, leads=True, nodes={})
    yield first, second
    for harness in both:
        harness.sink.close()


def lists(harness: SinkHarness, number: int) -> None:
    """Wait for so many more lists of the API, by any analyzer."""
    before = harness.api.calls.count(("open_reports", "p"))
    harness.until(lambda: harness.api.calls.count(("open_reports", "p")) >= before + number)


def reasons(api: FakeKube) -> list[str]:
    """What was written to the node, in order; "" is a removal."""
    return [str(patch.get("reason", "")) for _, patch in api.conditions]


def test_an_analyzer_leaves_conditions_on_nodes_of_another_analyzer(
    two: tuple[SinkHarness, SinkHarness],
) -> None:
    first, second = two
    first.update(opened(**HIGH))
    first.until(lambda: reasons(first.api) == ["CPUHigh"])
    lists(second, 8)  # the other lists the open report again and again
    assert reasons(first.api) == ["CPUHigh"]


def test_a_takeover_changes_nothing_and_the_new_owner_removes_the_condition(
    two: tuple[SinkHarness, SinkHarness],
) -> None:
    first, second = two
    first.update(opened(**HIGH))
    first.until(lambda: reasons(first.api) == ["CPUHigh"])
    second.observe(leads=True)
    second.update(changed(**HIGH))
    lists(second, 2)
    first.observe(shards=frozenset(), nodes={})
    lists(second, 4)
    assert reasons(first.api) == ["CPUHigh"]
    second.update(resolved(**HIGH))
    second.until(lambda: reasons(first.api) == ["CPUHigh", ""])


def test_a_node_keeps_it_while_the_leader_has_a_report_of_it(
    two: tuple[SinkHarness, SinkHarness],
) -> None:
    first, leader = two
    across = {"scope": FindingScope.CROSS_NODE, **HIGH}
    first.update(opened(**HIGH))
    leader.update(opened("cpu-x", **across))
    first.until(lambda: len(first.api.reports) == 2 and first.api.condition("n1"))
    first.update(resolved(**HIGH))
    first.until(lambda: first.state == "Resolved" and first.idle())
    lists(first, 4)
    assert "" not in reasons(first.api), "the other report is still open"
    leader.update(resolved("cpu-x", **across))
    leader.until(lambda: first.api.condition("n1") is None)


def test_node_conditions_that_are_switched_off_are_removed_and_reports_stay_open() -> None:
    api = FakeKube()
    for enabled in (True, False):
        harness = SinkHarness(None, api, node_conditions=enabled)
        harness.update(opened(**HIGH))
        harness.until(lambda desired=enabled: (api.condition("n1") is not None) == desired)
        assert harness.state == "Open"
        harness.sink.close()
    assert reasons(api) == ["CPUHigh", ""]


class Nodes:
    """Node conditions without a thread, and reports as the API has them."""

    def __init__(self, *, enabled: bool = True) -> None:
        self.api = FakeKube()
        self.conditions = NodeConditions(self.api, "p", enabled=enabled)

    def store(self, kept: Report) -> None:
        self.api.reports[kept.name] = {**kept.to_create(), "status": kept.status}

    def resolve(self, kept: Report) -> None:
        self.api.reports[kept.name]["metadata"]["labels"][LABEL_STATE] = "Resolved"

    def update(self, *names: str) -> None:
        self.conditions.update({"n1": frozenset(names)} if names else {}, 0)


def urgent(profile: str = "p", identity: str = "cpu-1", **other: Any) -> Report:
    return report(finding(identity, **{**HIGH, **other}), profile, 1)


def test_nothing_is_asked_while_nothing_changes() -> None:
    nodes = Nodes()
    nodes.store(urgent())
    nodes.update("p-n1-cpu-1")
    asked = len(nodes.api.calls)
    nodes.update("p-n1-cpu-1")
    assert len(nodes.api.calls) == asked
    assert reasons(nodes.api) == ["CPUHigh"]


def test_a_condition_that_is_there_is_not_written_again() -> None:
    nodes = Nodes()
    nodes.store(urgent())
    nodes.update("p-n1-cpu-1")
    heir = NodeConditions(nodes.api, "p", enabled=True)
    heir.recheck(["n1"])
    heir.update({"n1": frozenset({"p-n1-cpu-1"})}, 0)
    assert reasons(nodes.api) == ["CPUHigh"]


@pytest.mark.parametrize(
    ("spec", "kept"),
    [
        ({"reporting": {"nodeConditions": True}}, True),
        ({"reporting": {"nodeConditions": True}, "mode": "Observe"}, False),
        ({"reporting": {}}, False),
        (None, False),  # the profile is gone
    ],
)
def test_reports_of_another_profile_count_if_it_wants_conditions(
    spec: dict[str, Any] | None, kept: bool
) -> None:
    nodes = Nodes()
    if spec is not None:
        nodes.api.profiles["other"] = {"metadata": {}, "spec": spec}
    nodes.store(urgent())
    nodes.update("p-n1-cpu-1")
    nodes.store(urgent("other", "gpu-1"))
    nodes.resolve(urgent())
    nodes.update()
    assert (nodes.api.condition("n1") is not None) == kept


def test_switched_off_it_is_removed_and_nodes_without_it_cost_a_single_request() -> None:
    before = Nodes()
    before.store(urgent())
    before.update("p-n1-cpu-1")
    after = NodeConditions(before.api, "p", enabled=False)
    after.recheck(["n1"])
    after.update({"n1": frozenset({"p-n1-cpu-1"})}, 0)
    assert before.api.condition("n1") is None
    before.api.calls.clear()
    after.recheck(["n1"])
    after.update({"n1": frozenset({"p-n1-cpu-1"})}, 0)
    assert before.api.calls == [("node", "n1")]


def test_an_analyzer_with_older_settings_leaves_the_condition_that_a_newer_analyzer_sets() -> None:
    """During the roll-out that switches conditions on, both have the report of the node."""
    newer = Nodes()
    newer.api.profiles["p"]["spec"] = {"reporting": {"nodeConditions": True}}
    newer.store(urgent())
    newer.update("p-n1-cpu-1")
    older = NodeConditions(newer.api, "p", enabled=False)
    older.recheck(["n1"])
    older.update({"n1": frozenset({"p-n1-cpu-1"})}, 0)
    assert reasons(newer.api) == ["CPUHigh"]


def test_after_an_outage_conditions_are_written_and_a_refusal_waits_for_the_next_list(
    caplog: pytest.LogCaptureFixture,
) -> None:
    nodes = Nodes()
    nodes.store(urgent())
    nodes.api.fail = lambda name, about: UnavailableError("503") if name == "node" else None
    with pytest.raises(UnavailableError):
        nodes.update("p-n1-cpu-1")
    refused = ForbiddenError("403 Forbidden")
    nodes.api.fail = lambda name, about: refused if name == "patch_node_conditions" else None
    for _ in range(3):
        nodes.update("p-n1-cpu-1")
    assert [name for name, _ in nodes.api.calls].count("patch_node_conditions") == 1
    assert caplog.text.count("the condition of node n1 cannot be written") == 1
    nodes.api.fail = lambda name, about: None
    nodes.conditions.recheck(["n1"])
    nodes.update("p-n1-cpu-1")
    assert reasons(nodes.api) == ["CPUHigh"]
