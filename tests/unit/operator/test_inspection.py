"""When the pods of a workload are looked at, and what is told of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import pytest

from reveal_contract.kube.errors import ApiError
from reveal_operator.api import Object, Page
from reveal_operator.inspection import LOOK_S, PATIENCE_S, Finding, Inspection
from reveal_operator.seen import ChildSeen, Workload

MADE = Workload(current=True, desired=3, created=3, updated=3, ready=1, available=1)
CHILD = ChildSeen("DaemonSet", "reveal-collector-p", "u", "p", "pu", "", "", False, MADE)
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
        self.inspection = Inspection(self.pods, "reveal-system", lambda: self.now)  # type: ignore[arg-type]

    def look(self, child: ChildSeen | None = CHILD) -> Finding:
        return asyncio.run(self.inspection.of("p", "collector", child))


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_nobody_looks_for_half_a_minute(bench: Bench) -> None:
    bench.look(None)  # a new profile: its children are being made
    assert bench.look() == Finding(None, PATIENCE_S)
    bench.now += 20
    assert bench.look() == Finding(None, PATIENCE_S - 20)
    assert bench.pods.asked == []
    bench.now += 10
    found = bench.look()
    assert found.trouble and found.trouble.reason == "ImagePullFailed"
    assert found.again == LOOK_S
    labels = "reveal.dev/profile=p,app.kubernetes.io/component=collector"
    assert bench.pods.asked == [("Pod", "reveal-system", labels)]


def test_what_was_there_before_us_is_looked_at_at_once(bench: Bench) -> None:
    assert bench.look().trouble is not None


def test_pods_are_listed_once_a_minute(bench: Bench) -> None:
    bench.look()
    for _ in range(5):
        bench.now += LOOK_S / 6
        assert bench.look().trouble is not None
    assert len(bench.pods.asked) == 1
    bench.now += LOOK_S / 6
    bench.look()
    assert len(bench.pods.asked) == 2


def test_once_all_are_there_it_begins_anew(bench: Bench) -> None:
    bench.look()
    whole = replace(CHILD, workload=replace(MADE, available=3))
    assert bench.look(whole) == Finding()
    assert bench.look() == Finding(None, PATIENCE_S)
    bench.now += PATIENCE_S
    bench.inspection.forget("p")
    assert bench.look(None) == Finding()
    assert bench.look() == Finding(None, PATIENCE_S)


@pytest.mark.parametrize("child", [None, replace(CHILD, workload=None)])
def test_without_a_workload_there_is_nothing_to_see(bench: Bench, child: ChildSeen | None) -> None:
    assert bench.look(child) == Finding()


def test_what_a_deployment_says_itself_needs_no_pods(bench: Bench) -> None:
    said = ("FailedCreate", "exceeded quota: gpu")
    child = replace(CHILD, workload=replace(MADE, complaints=(said,)))
    trouble = bench.look(child).trouble
    assert trouble and (trouble.reason, trouble.message) == said
    assert bench.pods.asked == []


def test_pods_that_cannot_be_made_have_their_command(bench: Bench) -> None:
    bench.pods.items = []
    child = replace(CHILD, workload=replace(MADE, created=0))
    trouble = bench.look(child).trouble
    assert trouble and trouble.reason == "PodsNotCreated"
    assert "kubectl -n reveal-system describe daemonset reveal-collector-p" in trouble.message
    assert "privileged" in trouble.message


def test_a_refused_list_is_told(bench: Bench) -> None:
    bench.pods.error = ApiError("pods is forbidden", 403, "Forbidden")
    trouble = bench.look().trouble
    assert trouble and trouble.reason == "Unavailable"
    assert "pods is forbidden" in trouble.message
