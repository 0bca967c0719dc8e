"""Faults that a node tells by what is its own: cgroups, pressure and network namespaces.

Three nodes are watched and one of them is named. Nodes share a kernel, and what it counts for
the machine (/proc/stat, /proc/vmstat, disks, interrupts) is the same on each of them: faults
that are detected by those counters are in ``test_machine_faults.py``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.cluster_release import TRAINING, Release
from support.fault_run import fault_run, throttled_run
from support.faulty_pods import NOISY, THROTTLED, contention, noisy
from support.packet_loss import loss, packet_loss, ranks

pytestmark = pytest.mark.timeout(900)

_IDLE_S = 120.0
_IDLE_PERCENT = 40.0
_STARTED_S = 25.0  # a job that starts is no finding, and its pod must be known by then


def test_a_pod_throttled_by_its_quota_is_reported(three_nodes: Release, jobs: str) -> None:
    with throttled_run("CPU quota of a pod", three_nodes, jobs, "node2") as story:
        story.start_in(jobs, THROTTLED)


def test_a_noisy_neighbour_of_a_training_pod_is_reported(three_nodes: Release, jobs: str) -> None:
    expected = contention("node1", jobs)
    with (
        training(three_nodes, jobs, "node1"),
        fault_run("noisy neighbour of a training pod", three_nodes, expected) as story,
        noisy(three_nodes, jobs, "node1"),
    ):
        story.start_in(jobs, NOISY)


@pytest.mark.parametrize("per_mille", [10, 1])
def test_packet_loss_of_a_node_is_reported(three_nodes: Release, jobs: str, per_mille: int) -> None:
    """Two ranks train across two nodes, and what leaves one of them is lost at random."""
    name = f"packet loss of {per_mille / 10:g} % on a node"
    with (
        training_across(three_nodes, jobs),
        fault_run(name, three_nodes, packet_loss("node2", jobs)) as story,
        loss(three_nodes.cluster, "node2", per_mille),
    ):
        story.start()


@contextmanager
def training(watched: Release, jobs: str, node: str) -> Iterator[None]:
    """The job of a pod that is known by now, on a machine where it need not wait."""
    _await_idle_machine()
    with watched.pod(jobs, node, "training", **TRAINING):
        time.sleep(_STARTED_S)
        yield


@contextmanager
def training_across(watched: Release, jobs: str) -> Iterator[None]:
    """A job of two pods on two nodes that is known by now, on a machine where it need not wait."""
    _await_idle_machine()
    with ranks(watched, jobs, ("node1", "node2")):
        time.sleep(_STARTED_S)
        yield


def _await_idle_machine() -> None:
    """Work beside the cluster makes pods of all nodes wait: a fault before there is one."""
    deadline = time.monotonic() + _IDLE_S
    while (waiting := _waiting_percent()) > _IDLE_PERCENT:
        if time.monotonic() > deadline:
            pytest.skip(f"work beside the cluster keeps tasks waiting {waiting:.0f} % of the time")
        time.sleep(2)


def _waiting_percent() -> float:
    """Of the last ten seconds, how many somebody waited for a CPU."""
    some = Path("/proc/pressure/cpu").read_text().split()
    return float(some[1].removeprefix("avg10="))
