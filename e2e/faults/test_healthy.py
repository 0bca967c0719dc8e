"""What is no fault: a rolling update, and a job that ends and starts again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from clusterwatch import TRAINING, Watched
from controlplane import Object
from faultstory import healthy

pytestmark = pytest.mark.timeout(900)

_RUNS_S = 40.0
_SETTLES_S = 15.0
_SERVE = ["python3", "-m", "http.server", "8080"]


def test_a_rolling_update_is_no_finding(three_nodes: Watched, jobs: str) -> None:
    with healthy("rolling update of 6 pods", three_nodes), serving(three_nodes, jobs):
        time.sleep(_SETTLES_S)
        three_nodes.cluster.kubectl("-n", jobs, "rollout", "restart", "deployment/serving")
        _rolled_out(three_nodes, jobs)
        time.sleep(_SETTLES_S)


def test_a_job_that_ends_and_starts_again_is_no_finding(three_nodes: Watched, jobs: str) -> None:
    with healthy("a job that ends and starts again", three_nodes):
        for name in ("first", "second"):
            with three_nodes.pod(jobs, "node3", name, **TRAINING):
                time.sleep(_RUNS_S)
        time.sleep(_SETTLES_S)


@contextmanager
def serving(watched: Watched, jobs: str) -> Iterator[None]:
    """Six pods of a Deployment, rolled out, wherever the scheduler puts them."""
    image = watched.cluster.image("reveal-workload")
    container = {"name": "main", "image": image, "command": _SERVE}
    pod = {"terminationGracePeriodSeconds": 1, "containers": [container]}
    made: Object = {
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "serving", "namespace": jobs},
        "spec": {
            "replicas": 6, "selector": {"matchLabels": {"app": "serving"}},
            "template": {"metadata": {"labels": {"app": "serving"}}, "spec": pod},
        },
    }  # fmt: skip
    watched.kube.create(made)
    _rolled_out(watched, jobs)
    yield
    watched.kube.delete(made)


def _rolled_out(watched: Watched, jobs: str) -> None:
    words = ("rollout", "status", "deployment/serving", "--timeout=120s")
    watched.cluster.kubectl("-n", jobs, *words)
