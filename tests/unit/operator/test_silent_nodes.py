"""The names of silent nodes, from the telemetry and from the pods of the collectors."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from reveal_contract.kube.errors import ApiError
from reveal_contract.kube.names import COLLECTOR, LABEL_COMPONENT, LABEL_PROFILE
from reveal_operator.conditions import SilentNodes
from reveal_operator.silent_nodes import INTERVAL_S, LONG_INTERVAL_S, SilentNodeFinder
from support.fake_clock import FakeClock
from support.fake_operator_api import FakeOperatorApi


def pod(node: str, *, ready: bool = True, bound: bool = True) -> dict[str, Any]:
    """Return a collector's pod; before it is bound, its node is in the affinity."""
    fields = [{"key": "metadata.name", "operator": "In", "values": [node]}]
    terms = {"nodeSelectorTerms": [{"matchFields": fields}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    return {
        "kind": "Pod",
        "metadata": {"labels": {LABEL_PROFILE: "p", LABEL_COMPONENT: COLLECTOR}},
        "spec": {"affinity": {"nodeAffinity": required}, **({"nodeName": node} if bound else {})},
        "status": {"conditions": [{"type": "Ready", "status": "True" if ready else "False"}]},
    }


class Cluster:
    """A finder with a clock, and the pods of one profile."""

    def __init__(self) -> None:
        self.api, self.clock = FakeOperatorApi(), FakeClock()
        self.finder = SilentNodeFinder(self.api, "reveal-system", self.clock)

    def put(self, name: str, found: dict[str, Any]) -> None:
        self.api.create({**found, "metadata": {**found["metadata"], "name": name}})

    def find(self, silent: int, *stopped: str) -> SilentNodes:
        return asyncio.run(self.finder.find("p", silent, stopped))

    @property
    def lists(self) -> int:
        return sum(verb == "pages" for verb, _, _ in self.api.requests)


@pytest.fixture
def cluster() -> Cluster:
    result = Cluster()
    for number in (3, 1, 2):
        result.put(f"c{number}", pod(f"n{number}"))
    return result


def test_nodes_that_stopped_are_named_if_they_still_belong_to_the_profile(
    cluster: Cluster,
) -> None:
    assert cluster.find(2, "n3", "left", "n1") == SilentNodes(("n1", "n3"), ("n1", "n3"))


def test_nodes_that_were_never_heard_have_a_collector_that_is_not_ready(cluster: Cluster) -> None:
    cluster.put("c4", pod("n4", ready=False))
    cluster.put("c5", pod("n5", ready=False, bound=False))
    assert cluster.find(3, "n2") == SilentNodes(("n2", "n4", "n5"), ("n2",))
    cluster.clock.now += LONG_INTERVAL_S
    # one of the two just restarts: its samples were counted
    assert cluster.find(2, "n2").names == ("n2", "n4")


def test_a_node_with_two_pods_is_ready_if_either_is(cluster: Cluster) -> None:
    cluster.put("old", pod("n1", ready=False))
    assert cluster.find(1) == SilentNodes()


def test_pods_are_listed_seldom_and_only_while_nodes_are_silent(cluster: Cluster) -> None:
    assert cluster.find(0, "n1") == SilentNodes()
    assert not cluster.lists
    for _ in range(3):
        cluster.find(1, "n1")
    assert cluster.lists == 1
    cluster.find(2, "n1", "n2")
    assert cluster.lists == 1
    cluster.clock.now += INTERVAL_S
    cluster.find(1, "n1")
    assert cluster.lists == 1
    cluster.find(2, "n1", "n2")
    assert cluster.lists == 2
    cluster.clock.now += LONG_INTERVAL_S
    cluster.find(2, "n1", "n2")
    assert cluster.lists == 3


def test_without_an_answer_what_was_known_is_kept(cluster: Cluster) -> None:
    cluster.find(1, "n1")
    cluster.api.fail = lambda verb, kind: ApiError("down", 500)
    cluster.clock.now += LONG_INTERVAL_S
    assert cluster.find(1, "n1").names == ("n1",)
    cluster.finder.forget("p")
    assert cluster.find(1, "n1") == SilentNodes()
