"""Pods of the Kubernetes API: to which job their labels say that they belong, and their GPUs."""

from __future__ import annotations

from typing import Any

import pytest

from reveal_collector.subjects.cgroup_paths import SubjectPath
from reveal_collector.subjects.pods.names import identify
from reveal_collector.subjects.pods.podlist import Pod, PodIndex, pod_of
from reveal_contract.subjects import MAX_GPUS, SubjectKind


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


def gpus(*limits: Any) -> int:
    containers = [{"resources": {"limits": each}} for each in limits]
    pod = pod_of({"metadata": {"uid": "u", "name": "p"}, "spec": {"containers": containers}})
    assert pod is not None
    return pod.gpus


@pytest.mark.parametrize(
    ("limits", "expected"),
    [
        ([{"nvidia.com/gpu": "8", "cpu": "64"}], 8),
        ([{"nvidia.com/gpu": "1"}, {"cpu": "1"}, {"nvidia.com/gpu": 2}], 3),
        ([{"amd.com/gpu": "4"}], 4),
        ([{"gpu.intel.com/i915": "1", "gpu.intel.com/xe": "2"}], 3),
        ([{"gpu.intel.com/millicores": "500", "gpu.intel.com/i915_monitoring": "1"}], 0),
        ([{"nvidia.com/mig-1g.5gb": "2"}], 0),
        ([{"cpu": "8"}], 0),
    ],
)
def test_the_limits_of_all_containers_are_the_gpus_of_a_pod(
    limits: list[dict[str, Any]], expected: int
) -> None:
    assert gpus(*limits) == expected


@pytest.mark.parametrize(
    "amount", [None, True, -1, 1.5, "", "-1", "1.5", "1k", "\u0661", "9" * 5000, [8], {"a": 1}]
)
def test_an_amount_that_is_no_whole_number_counts_nothing(amount: Any) -> None:
    assert gpus({"nvidia.com/gpu": amount}, {"nvidia.com/gpu": "2"}) == 2


@pytest.mark.parametrize("amount", [10**30, "999999999"])
def test_the_gpus_of_a_pod_are_bounded(amount: Any) -> None:
    assert gpus({"nvidia.com/gpu": amount}) == MAX_GPUS


@pytest.mark.parametrize("containers", [None, 1, "x", [1, None, []], [{"resources": [1]}], {}])
def test_a_specification_of_another_form_has_no_gpus(containers: Any) -> None:
    pod = pod_of({"metadata": {"uid": "u", "name": "p"}, "spec": {"containers": containers}})
    assert pod is not None
    assert pod.gpus == 0


def test_the_subjects_of_a_pod_have_its_gpus() -> None:
    index = PodIndex([Pod("u", "ml", "train-0", {"c1": "worker"}, gpus=8)])
    owner = SubjectPath(SubjectKind.POD, "/podu", "u", container="c1", container_root="/podu/c1")
    assert identify(owner, index, 1).gpus == 8
    worker = SubjectPath(
        SubjectKind.CONTAINER, "/podu/c1", "u", container="c1", container_root="/podu/c1"
    )
    assert identify(worker, index, 2).gpus == 8
