"""What is no fault: a rolling update, and a job that ends and is started again."""

from __future__ import annotations

import time

import pytest

from clusterwatch import TRAINING, Watched, now, summary

pytestmark = pytest.mark.timeout(900)

_RUNS_S = 40.0
_SETTLES_S = 15.0
_SERVE = ["python3", "-m", "http.server", "8080"]


def test_a_rolling_update_is_no_finding(three_nodes: Watched, jobs: str) -> None:
    image = three_nodes.cluster.image("reveal-workload")
    serving = {
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "serving", "namespace": jobs},
        "spec": {
            "replicas": 6, "selector": {"matchLabels": {"app": "serving"}},
            "template": {
                "metadata": {"labels": {"app": "serving"}},
                "spec": {
                    "terminationGracePeriodSeconds": 1,
                    "containers": [{"name": "main", "image": image, "command": _SERVE}],
                },
            },
        },
    }  # fmt: skip
    rolled_out = ("-n", jobs, "rollout", "status", "deployment/serving", "--timeout=120s")
    three_nodes.calm()
    began = now()
    three_nodes.kube.create(serving)
    three_nodes.cluster.kubectl(*rolled_out)
    time.sleep(_SETTLES_S)
    three_nodes.cluster.kubectl("-n", jobs, "rollout", "restart", "deployment/serving")
    three_nodes.cluster.kubectl(*rolled_out)
    time.sleep(_SETTLES_S)
    assert [summary(one) for one in three_nodes.reports(began)] == []


def test_a_job_that_ends_and_starts_again_is_no_finding(three_nodes: Watched, jobs: str) -> None:
    three_nodes.calm()
    began = now()
    for name in ("first", "second"):
        with three_nodes.pod(jobs, "node3", name, **TRAINING):
            time.sleep(_RUNS_S)
    time.sleep(_SETTLES_S)
    assert [summary(one) for one in three_nodes.reports(began)] == []
