"""A node is lost or disconnected: what it observed is reported once, nothing else is."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from support.api_server import condition, wait_for
from support.cluster_outages import ANALYZER, COLLECTOR, OPERATOR, REDIS, Pods
from support.cluster_release import now, summary
from support.fault_run import fault_run
from support.faulty_pods import SPIN, quota, throttled

pytestmark = pytest.mark.timeout(900)

_UNPLUGGED_S = 35.0  # the collector keeps a minute
_WAITS_S = 20  # the fault begins after the network is unplugged and that finding is open
_SETTLES_S = 20.0


def test_findings_of_a_disconnected_node_are_reported_once(pods: Pods, jobs: str) -> None:
    node = _free_node(pods)
    expected = replace(quota(node, jobs, "late"), beside=("LinkDown",))
    container = {
        "command": ["sh", "-c", f"sleep {_WAITS_S}; exec python3 -c '{SPIN}'"],
        "resources": {"limits": {"cpu": "150m", "memory": "128Mi"}},
    }
    with (
        fault_run("node cut off", pods.watched, expected) as story,
        pods.watched.pod(jobs, node, "late", **container),
    ):
        pods.cluster.disconnect(node)
        try:
            time.sleep(_UNPLUGGED_S)
        finally:
            pods.cluster.join(node)
        joined = now()
        story.start()
        first_time = pods.watched.report(story.report)["spec"]["firstSeenTime"]
        assert story.since < first_time < joined, "what it saw meanwhile came to the analyzer"
        _await_ready(pods, node, "True", 90)  # its kubelet has to know that the pod is to go


def test_a_node_that_returns_gives_no_finding(pods: Pods) -> None:
    node = _free_node(pods)
    pods.watched.watch(*pods.cluster.nodes)
    pods.watched.calm()
    began = now()
    _lose(pods, node)
    _return(pods, node)
    pods.watched.watch(*pods.cluster.nodes)
    time.sleep(_SETTLES_S)
    assert [summary(report) for report in pods.watched.reports(began)] == []


def test_a_finding_on_a_lost_node_is_reported_once(pods: Pods, jobs: str) -> None:
    node = _free_node(pods)
    with fault_run("node lost", pods.watched, quota(node, jobs)) as story:
        with throttled(pods.watched, jobs, node):
            story.start()
            _lose(pods, node)
        _return(pods, node)  # where the pod is known to be gone


def _lose(pods: Pods, node: str) -> None:
    """Its plug is pulled, and it is missed."""
    pods.cluster.kill(node)
    _await_ready(pods, node, "Unknown", 120)


def _return(pods: Pods, node: str) -> None:
    pods.cluster.start(node)
    _await_ready(pods, node, "True", 120)
    wait_for(pods.all_ready, 180, "its pods run")


def _await_ready(pods: Pods, node: str, status: str, seconds: float) -> None:
    kube = pods.watched.kube
    wait_for(
        lambda: condition(kube.get("v1", "Node", node), "Ready").get("status") == status,
        seconds, f"{node} Ready={status}",
    )  # fmt: skip


def _free_node(pods: Pods) -> str:
    """With nothing of ours but its collector: who judges must not be lost with it."""
    taken = {
        pod["spec"]["nodeName"] for part in (ANALYZER, OPERATOR, REDIS) for pod in pods.of(part)
    }
    collectors = {pod["spec"]["nodeName"] for pod in pods.of(COLLECTOR)}
    if not (free := sorted(collectors - taken)):
        pytest.skip("each node has an analyzer, the operator or Redis")
    return free[0]
