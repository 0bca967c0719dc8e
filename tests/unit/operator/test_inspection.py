"""When the operator lists the pods of a workload, and what it reports about them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import pytest

from reveal_contract.kube.errors import ApiError
from reveal_operator.api import Object, Page
from reveal_operator.inspection import INTERVAL_S, PATIENCE_S, InspectionResult, WorkloadInspector
from reveal_operator.observed import ObservedObject, Workload

WORKLOAD = Workload(current=True, desired=3, created=3, updated=3, ready=1, available=1)
CHILD = ObservedObject("DaemonSet", "reveal-collector-p", "u", "p", "pu", "", "", False, WORKLOAD)
PULLING = {"state": {"waiting": {"reason": "ErrImagePull"}}}


class Pods:
    """An API of pods alone."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, str]] = []
        self.items: list[Object] = [
            {
                "metadata": {"name": "a"},
                "spec": {"nodeName": "n1"},
                "status": {"containerStatuses": [PULLING]},
            }
        ]
        self.error: ApiError | None = None

    def pages(self, kind: str, namespace: str, labels: str) -> Iterator[Page]:
        self.asked.append((kind, namespace, labels))
        if self.error is not None:
            raise self.error
        yield Page(self.items, "1")


class Bench:
    """An inspection with a clock of its own."""

    def __init__(self) -> None:
        self.pods, self.now = Pods(), 100.0
        self.inspection = WorkloadInspector(self.pods, "reveal-system", lambda: self.now)  # type: ignore[arg-type]

    def look(self, child: ObservedObject | None = CHILD) -> InspectionResult:
        return asyncio.run(self.inspection.inspect("p", "collector", child))


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_pods_are_not_listed_for_half_a_minute(bench: Bench) -> None:
    bench.look(None)  # a new profile: its owned objects are being created
    assert bench.look() == InspectionResult(None, PATIENCE_S)
    bench.now += 20
    assert bench.look() == InspectionResult(None, PATIENCE_S - 20)
    assert bench.pods.asked == []
    bench.now += 10
    found = bench.look()
    assert found.failure and found.failure.reason == "ImagePullFailed"
    assert found.again == INTERVAL_S
    labels = "reveal.dev/profile=p,app.kubernetes.io/component=collector"
    assert bench.pods.asked == [("Pod", "reveal-system", labels)]


def test_pods_of_an_existing_workload_are_listed_immediately(bench: Bench) -> None:
    assert bench.look().failure is not None


def test_pods_are_listed_once_a_minute(bench: Bench) -> None:
    bench.look()
    for _ in range(5):
        bench.now += INTERVAL_S / 6
        assert bench.look().failure is not None
    assert len(bench.pods.asked) == 1
    bench.now += INTERVAL_S / 6
    bench.look()
    assert len(bench.pods.asked) == 2


def test_the_delay_restarts_when_all_pods_are_available(bench: Bench) -> None:
    bench.look()
    whole = replace(CHILD, workload=replace(WORKLOAD, available=3))
    assert bench.look(whole) == InspectionResult()
    assert bench.look() == InspectionResult(None, PATIENCE_S)
    bench.now += PATIENCE_S
    bench.inspection.forget("p")
    assert bench.look(None) == InspectionResult()
    assert bench.look() == InspectionResult(None, PATIENCE_S)


def test_pods_are_listed_while_those_of_an_older_template_are_all_available(bench: Bench) -> None:
    surge = Workload(current=True, desired=1, created=2, updated=1, ready=1, available=1)
    bench.look(None)
    assert bench.look(replace(CHILD, workload=surge)) == InspectionResult(None, PATIENCE_S)
    bench.now += PATIENCE_S
    found = bench.look(replace(CHILD, workload=surge))
    assert found.failure and found.failure.reason == "ImagePullFailed"


@pytest.mark.parametrize("child", [None, replace(CHILD, workload=None)])
def test_without_a_workload_there_is_nothing_to_see(
    bench: Bench, child: ObservedObject | None
) -> None:
    assert bench.look(child) == InspectionResult()


def test_a_complaint_of_the_workload_needs_no_list_of_pods(bench: Bench) -> None:
    complaint = ("FailedCreate", "exceeded quota: gpu")
    child = replace(CHILD, workload=replace(WORKLOAD, failing_conditions=(complaint,)))
    problem = bench.look(child).failure
    assert problem and (problem.reason, problem.message) == complaint
    assert bench.pods.asked == []


def test_pods_that_cannot_be_created_give_a_command_to_run(bench: Bench) -> None:
    bench.pods.items = []
    child = replace(CHILD, workload=replace(WORKLOAD, created=0))
    problem = bench.look(child).failure
    assert problem and problem.reason == "PodsNotCreated"
    assert "kubectl -n reveal-system describe daemonset reveal-collector-p" in problem.message
    assert "privileged" in problem.message


def test_a_refused_list_is_reported(bench: Bench) -> None:
    bench.pods.error = ApiError("pods is forbidden", 403, "Forbidden")
    problem = bench.look().failure
    assert problem and problem.reason == "Unavailable"
    assert "pods is forbidden" in problem.message
