"""What is no fault: a rolling update, a job that ends and starts again, a node that comes back."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from support.api_server import Object, condition, wait_for
from support.cluster_release import TRAINING, Release
from support.fault_run import healthy_run
from support.helm_chart import NAMESPACE

pytestmark = pytest.mark.timeout(900)

_RUNS_S = 40.0
_SETTLES_S = 15.0
_AWAY_S = 150.0
_SERVE = ["python3", "-m", "http.server", "8080"]


def test_a_rolling_update_gives_no_finding(three_nodes: Release, jobs: str) -> None:
    with healthy_run("rolling update of 6 pods", three_nodes), serving(three_nodes, jobs):
        time.sleep(_SETTLES_S)
        three_nodes.cluster.kubectl("-n", jobs, "rollout", "restart", "deployment/serving")
        _rolled_out(three_nodes, jobs)
        time.sleep(_SETTLES_S)


def test_a_restarted_job_gives_no_finding(three_nodes: Release, jobs: str) -> None:
    with healthy_run("a job that ends and starts again", three_nodes):
        for name in ("first", "second"):
            with three_nodes.pod(jobs, "node3", name, **TRAINING):
                time.sleep(_RUNS_S)
        time.sleep(_SETTLES_S)


def test_a_drained_node_gives_no_finding(three_nodes: Release, jobs: str) -> None:
    """Telemetry shows it instead; its pods move elsewhere and the node is learned again."""
    cluster, node = three_nodes.cluster, _without_redis(three_nodes)
    with (
        healthy_run("a node drained, shut down and back", three_nodes),
        serving(three_nodes, jobs),
    ):
        cluster.kubectl("drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--force",
                        "--timeout=90s")  # fmt: skip
        cluster.stop(node)
        try:
            wait_for(lambda: _reporting(three_nodes) == 2, _AWAY_S, "telemetry tells of two nodes")
        finally:
            cluster.start(node)
            wait_for(lambda: _ready(three_nodes, node), 60, f"{node} is Ready")
            cluster.kubectl("uncordon", node)
        three_nodes.watch(*cluster.nodes)
        assert _reporting(three_nodes) == 3
        time.sleep(_SETTLES_S)


@contextmanager
def serving(watched: Release, jobs: str) -> Iterator[None]:
    """Six pods of a Deployment, rolled out, wherever the scheduler puts them."""
    image = watched.cluster.image("reveal-workload")
    container = {"name": "main", "image": image, "command": _SERVE}
    pod = {"terminationGracePeriodSeconds": 1, "containers": [container]}
    manifest: Object = {
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "serving", "namespace": jobs},
        "spec": {
            "replicas": 6, "selector": {"matchLabels": {"app": "serving"}},
            "template": {"metadata": {"labels": {"app": "serving"}}, "spec": pod},
        },
    }  # fmt: skip
    watched.kube.create(manifest)
    _rolled_out(watched, jobs)
    yield
    watched.kube.delete(manifest)


def _rolled_out(watched: Release, jobs: str) -> None:
    words = ("rollout", "status", "deployment/serving", "--timeout=120s")
    watched.cluster.kubectl("-n", jobs, *words)


def _without_redis(watched: Release) -> str:
    """The last node that the evaluation's Redis, which forgets all when it moves, is not on."""
    pods = watched.kube.items("v1", "Pod", NAMESPACE)
    holds = {pod["spec"].get("nodeName") for pod in pods if "redis" in pod["metadata"]["name"]}
    return [name for name in watched.cluster.nodes if name not in holds][-1]


def _reporting(watched: Release) -> int:
    return int(watched.telemetry.get("nodesReporting", 0))


def _ready(watched: Release, node: str) -> bool:
    found = watched.kube.get("v1", "Node", node) or {}
    return bool(condition(found, "Ready").get("status") == "True")
