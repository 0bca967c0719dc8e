"""A breaker for node conditions: automation must not drain a whole pool."""

from __future__ import annotations

from typing import Any

import pytest

from reveal_analyzer.sinks.kube.condition_limit import LEAST_NODES, LOOK_AGAIN_NS, first_nodes
from reveal_analyzer.sinks.kube.node_conditions import REASON, NodeConditions
from reveal_contract.finding import Severity
from reveal_contract.kube.anomaly_report import Report, report
from reveal_contract.kube.names import LABEL_NODE, LABEL_STATE
from support.fake_kube import FakeKube
from support.finding_factory import finding

NODES = [f"n{number:03d}" for number in range(100)]


class Pool:
    """A profile of 100 nodes, and an analyzer that watches all of them."""

    def __init__(self, percent: int = 20, desired: int | None = 100) -> None:
        self.api = FakeKube()
        self.api.nodes = {name: f"{name}-uid" for name in NODES}
        if desired is not None:
            self.api.profiles["p"]["status"] = {"desiredNodes": desired}
        self.conditions = NodeConditions(self.api, "p", enabled=True, most_percent=percent)
        self.urgent: dict[str, frozenset[str]] = {}
        self.now_ns = 10**18

    def fails(self, *nodes: str) -> None:
        for node in nodes:
            kept = self._report(node)
            self.api.reports[kept.name] = {**kept.to_create(), "status": kept.status}
            self.urgent[node] = frozenset({kept.name})
        self.update()

    def recovers(self, node: str) -> None:
        [name] = self.urgent.pop(node)
        self.api.reports[name]["metadata"]["labels"][LABEL_STATE] = "Resolved"
        self.update()

    def update(self, seconds: float = 1.0) -> None:
        self.now_ns += int(seconds * 1e9)
        self.conditions.update(self.urgent, self.now_ns)

    @property
    def marked(self) -> list[str]:
        return [node for node in NODES if self.api.condition(node) is not None]

    def _report(self, node: str) -> Report:
        return report(finding("cpu-1", node_name=node, severity=Severity.HIGH), "p", 0)


def test_a_storm_of_findings_puts_the_condition_on_no_more_nodes_than_permitted() -> None:
    pool = Pool()
    pool.fails(*NODES[:50])
    assert len(pool.marked) == 20
    [degraded] = pool.conditions.degradations()
    assert (degraded.reason, degraded.nodes) == (REASON, 30)
    reads = [name for name, _ in pool.api.calls if name in ("urgent_metadata", "profile")]
    assert len(reads) == 2, "once for all nodes that fail at a moment"


def test_a_node_that_recovers_makes_room_for_the_next_node() -> None:
    pool = Pool()
    pool.fails(*NODES[:25])
    first = set(pool.marked)
    pool.recovers(NODES[0])
    pool.update()
    assert set(pool.marked) == first - {NODES[0]}
    pool.update(LOOK_AGAIN_NS / 1e9 + 1)
    assert len(pool.marked) == 20 and first - {NODES[0]} < set(pool.marked)
    for node in list(pool.urgent):
        pool.recovers(node)
    assert pool.marked == []
    assert pool.conditions.degradations() == []


@pytest.mark.parametrize(("percent", "desired"), [(1, 100), (20, 4), (20, 0), (20, None)])
def test_three_nodes_may_have_it_in_any_pool(percent: int, desired: int | None) -> None:
    pool = Pool(percent, desired)
    pool.fails(*NODES[:10])
    assert len(pool.marked) == LEAST_NODES


def test_a_node_over_the_limit_costs_a_look_every_minute() -> None:
    pool = Pool()
    pool.fails(*NODES[:50])
    before = len(pool.api.calls)
    for _ in range(30):
        pool.update(0.1)
    assert len(pool.api.calls) == before


def test_the_oldest_reports_come_first() -> None:
    def listed(name: str, created: str) -> dict[str, Any]:
        labels = {LABEL_NODE: name.partition("-")[0]}
        return {"metadata": {"name": name, "creationTimestamp": created, "labels": labels}}

    reports = [
        listed("b-1", "2026-01-02"),
        listed("a-1", "2026-01-03"),
        listed("a-2", "2026-01-01"),
    ]
    assert first_nodes(reports, 1, 0) == {"a"}
    assert first_nodes(reports, 2, 0) == {"a", "b"}
