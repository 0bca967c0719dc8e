"""Why pods are not available, according to the kubelet and the scheduler."""

from __future__ import annotations

from typing import Any

import pytest

from reveal_operator.pod_failures import Failure, explain


def pod(node: str = "n1", phase: str = "Pending", **status: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": f"p-{node}"},
        "spec": {"nodeName": node},
        "status": {"phase": phase, **status},
    }


def waiting(reason: str, message: str = "", **more: Any) -> dict[str, Any]:
    state = {"waiting": {"reason": reason, **({"message": message} if message else {})}}
    return {"name": "collector", "state": state, **more}


READY = pod(phase="Running", conditions=[{"type": "Ready", "status": "True"}])


def test_nothing_is_wrong_with_ready_pods_and_those_that_leave() -> None:
    leaving = pod()
    leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert explain([READY, leaving]) is None
    assert explain([]) is None


@pytest.mark.parametrize(
    ("broken", "expected"),
    [
        (
            pod(containerStatuses=[waiting("ImagePullBackOff", 'Back-off pulling image "x"')]),
            Failure(
                "ImagePullFailed",
                '1 without an image (n1: ImagePullBackOff, Back-off pulling image "x")',
            ),
        ),
        (
            pod(
                phase="Running",
                containerStatuses=[
                    waiting(
                        "CrashLoopBackOff",
                        restartCount=7,
                        lastState={"terminated": {"exitCode": 137, "reason": "OOMKilled"}},
                    )
                ],
            ),
            Failure(
                "CrashLooping", "1 crash-looping (n1: exit code 137 OOMKilled after 7 restarts)"
            ),
        ),
        (
            pod(
                phase="Running",
                containerStatuses=[
                    {
                        "state": {
                            "terminated": {"exitCode": 2, "reason": "Error", "message": "no url\n"}
                        },
                        "restartCount": 0,
                    }
                ],
            ),
            Failure("CrashLooping", "1 crash-looping (n1: exit code 2 after 0 restarts, no url)"),
        ),
        (
            pod(
                containerStatuses=[
                    waiting("CreateContainerConfigError", 'secret "redis" not found')
                ]
            ),
            Failure(
                "ContainerNotStarted",
                "1 with a container that cannot start (n1: CreateContainerConfigError, "
                'secret "redis" not found)',
            ),
        ),
        (
            pod(phase="Failed", reason="Evicted", message="low on memory"),
            Failure("PodFailed", "1 failed (n1: Evicted, low on memory)"),
        ),
        (
            pod(phase="Running", containerStatuses=[{"state": {"running": {}}}]),
            Failure("NotReady", "1 running, not ready (n1)"),
        ),
        (
            pod(containerStatuses=[waiting("ContainerCreating")]),
            Failure("Waiting", "1 starting (n1)"),
        ),
        (pod(initContainerStatuses=[waiting("ErrImagePull")]), None),
    ],
)
def test_a_problem_is_reported_with_its_node(broken: Any, expected: Failure | None) -> None:
    found = explain([READY, broken])
    assert found == expected if expected else found and found.reason == "ImagePullFailed"


def test_a_pod_that_waits_for_its_node_names_it() -> None:
    field = {"key": "metadata.name", "operator": "In", "values": ["n7"]}
    term = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": term}}
    condition = {"type": "PodScheduled", "status": "False", "message": "0/9 nodes: port in use"}
    unbound = {
        "metadata": {"name": "p"},
        "spec": {"affinity": affinity},
        "status": {"phase": "Pending", "conditions": [condition]},
    }
    assert explain([unbound]) == Failure(
        "Unschedulable", "1 not schedulable (n7: 0/9 nodes: port in use)"
    )


def test_the_most_frequent_problem_is_the_reason_and_the_message_has_all() -> None:
    pulling = [pod(f"n{n}", containerStatuses=[waiting("ErrImagePull")]) for n in (3, 1, 2)]
    found = explain([pod("n9", phase="Failed"), *pulling])
    assert found is not None
    assert found.reason == "ImagePullFailed"
    assert found.message == "3 without an image (n1: ErrImagePull); 1 failed (n9)"


def test_a_pod_without_status_is_being_started() -> None:
    assert explain([{"metadata": {"name": "p"}}]) == Failure("Waiting", "1 starting (p)")
