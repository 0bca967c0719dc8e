"""Faults on a node with its own kernel are reported for that node only.

What a kernel counts for itself (/proc/meminfo, /proc/stat) is the same on all nodes that
share it and names none of them. Here it is a node's own: faults that it detects name the
virtual machine, while the collector of the other node reads those of the machine.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from cluster.handle import Cluster
from reveal_contract.kube.names import LABEL_PROFILE
from support.cluster_release import Release, now, summary
from support.fault_run import fault_run, throttled_run
from support.faulty_pods import Expected
from support.helm_chart import NAMESPACE

pytestmark = pytest.mark.timeout(900)

_QUIET_S = 60.0
_PAGES = 160  # of 2 MiB: a sixth of its memory
_HUGE_PAGES = "/proc/sys/vm/nr_hugepages"
_NOBODY = ""


def test_its_collector_runs_like_that_of_another_node(watched: Release, vm: str) -> None:
    status = watched.profile["status"]
    assert (status["readyNodes"], status["desiredNodes"]) == (2, 2)
    pods = watched.kube.items("v1", "Pod", NAMESPACE, f"{LABEL_PROFILE}=gpu-nodes")
    collectors = [pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("hostPID")]
    assert sorted(collectors) == [watched.cluster.nodes[0], vm]


def test_an_idle_node_gives_no_finding(watched: Release) -> None:
    watched.calm()
    began = now()
    time.sleep(_QUIET_S)
    assert [summary(report) for report in watched.reports(began)] == []


def test_a_pod_throttled_by_its_quota_is_reported(watched: Release, vm: str, jobs: str) -> None:
    with throttled_run("quota, on a VM", watched, jobs, vm) as story:
        story.start()


def test_unused_huge_pages_are_reported_on_their_node_only(watched: Release, vm: str) -> None:
    expected = Expected(vm, "Memory", "HugePagesIdle", _NOBODY)
    with (
        fault_run("huge pages, on a VM", watched, expected) as story,
        _set_aside(watched.cluster, vm, _PAGES),
    ):
        story.start()


@contextmanager
def _set_aside(cluster: Cluster, node: str, pages: int) -> Iterator[None]:
    cluster.execute(node, "sh", "-c", f"echo {pages} >{_HUGE_PAGES}")
    try:
        assert int(cluster.execute(node, "cat", _HUGE_PAGES)) == pages
        yield
    finally:
        cluster.execute(node, "sh", "-c", f"echo 0 >{_HUGE_PAGES}")
