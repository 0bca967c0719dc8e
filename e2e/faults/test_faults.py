"""Faults that a node tells by what is its own: cgroups, pressure and network namespaces.

Three nodes are watched and one of them is named. Nodes share a kernel, and what it counts for
the machine (/proc/stat, /proc/vmstat, disks, interrupts) is the same on each of them: faults
that are told by that are in ``test_machine_faults.py``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from clusterfaults import SPIN, TELLS, Expected, throttled
from clusterwatch import TRAINING, Watched
from faultstory import fault

pytestmark = pytest.mark.timeout(900)

_IDLE_S = 120.0
_IDLE_PERCENT = 40.0
_STARTED_S = 30.0  # a job that starts is no finding, and its pod must be known by then


def test_a_pod_held_back_by_its_quota(three_nodes: Watched, jobs: str) -> None:
    expected = Expected("node2", "CPU", "CPUQuotaThrottling", f"{jobs}/throttled")
    with (
        fault("CPU quota of a pod", three_nodes, expected) as story,
        throttled(three_nodes, jobs, "node2"),
    ):
        story.begins_in(jobs, "throttled")


def test_a_noisy_neighbour_of_a_training_pod(three_nodes: Watched, jobs: str) -> None:
    expected = Expected("node1", "CPU", "CPUContention", f"{jobs}/noisy")
    loops = f"{TELLS}; for i in 1 2 3 4 5 6; do python3 -c '{SPIN}' & done; wait"
    # its requests weigh more than the training pod's, which has none
    container = {"command": ["sh", "-c", loops], "resources": {"requests": {"cpu": "1"}}}
    with (
        training(three_nodes, jobs, "node1"),
        fault("noisy neighbour of a training pod", three_nodes, expected) as story,
        three_nodes.pod(jobs, "node1", "noisy", **container),
    ):
        story.begins_in(jobs, "noisy")


@contextmanager
def training(watched: Watched, jobs: str, node: str) -> Iterator[None]:
    """The job of a pod that is known by now, on a machine where it need not wait."""
    _await_idle_machine()
    with watched.pod(jobs, node, "training", **TRAINING):
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
