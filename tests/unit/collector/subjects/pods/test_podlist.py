"""Pods of the Kubernetes API: to which job their labels say that they belong."""

from __future__ import annotations

from typing import Any

import pytest

from reveal_collector.subjects.pods.podlist import pod_of


def job(labels: Any) -> str:
    pod = pod_of({"metadata": {"uid": "u", "name": "p", "labels": labels}})
    assert pod is not None
    return pod.job


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"jobset.sigs.k8s.io/jobset-name": "llm", "job-name": "llm-workers-0"}, "JobSet/llm"),
        ({"training.kubeflow.org/job-name": "bert"}, "TrainingJob/bert"),
        ({"ray.io/cluster": "ray"}, "RayCluster/ray"),
        ({"reveal.dev/job": "mine", "ray.io/cluster": "ray"}, "Job/mine"),
        (
            {"leaderworkerset.sigs.k8s.io/name": "serve",
             "leaderworkerset.sigs.k8s.io/group-index": "2"},
            "LeaderWorkerSet/serve-2",
        ),
        ({"leaderworkerset.sigs.k8s.io/name": "serve"}, "LeaderWorkerSet/serve"),
    ],
)  # fmt: skip
def test_the_labels_of_controllers_name_the_job(labels: dict[str, str], expected: str) -> None:
    assert job(labels) == expected


@pytest.mark.parametrize("labels", [None, {}, {"app": "x"}, {"ray.io/cluster": 1}, [1]])
def test_other_labels_name_none(labels: Any) -> None:
    assert job(labels) == ""
