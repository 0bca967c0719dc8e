"""A fault in a pod is one report that names node, cause and pod, one Event, and ends by itself.

The nodes share a kernel: what it counts for the machine (/proc/stat, /proc/vmstat, disks) is the
same on each of them and names none. Counters of cgroups and of network namespaces are a node's
own, and so is pressure, which its collector reads from the root of its own tree. Faults that are
told by these are looked for on three nodes, the others where one node is watched.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from clusterfaults import KNOWN_S, SPIN, Expected, fault, forgetful, found, throttled
from clusterwatch import TRAINING, Watched

pytestmark = pytest.mark.timeout(900)

_IDLE_S = 120.0
_IDLE_PERCENT = 40.0
_STARTED_S = 30.0  # a job that starts is no finding, and its pod must be known by then


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


def test_a_pod_held_back_by_its_quota(three_nodes: Watched, jobs: str) -> None:
    expected = Expected("node2", "CPU", "CPUQuotaThrottling", f"{jobs}/throttled")
    with fault(three_nodes) as began, throttled(three_nodes, jobs, "node2"):
        found(three_nodes, expected, began)


def test_a_noisy_neighbour_of_a_training_pod(three_nodes: Watched, jobs: str) -> None:
    expected = Expected("node1", "CPU", "CPUContention", f"{jobs}/noisy")
    with training(three_nodes, jobs, "node1"), fault(three_nodes) as began:
        loops = f"for i in 1 2 3 4 5 6; do python3 -c '{SPIN}' & done; wait"
        # its requests weigh more than the training pod's, which has none
        container = {"command": ["sh", "-c", loops], "resources": {"requests": {"cpu": "1"}}}
        with three_nodes.pod(jobs, "node1", "noisy", **container):
            found(three_nodes, expected, began)


def test_a_pod_killed_for_its_memory_again_and_again(one_node: Watched, jobs: str) -> None:
    expected = Expected("node1", "Memory", "OOMKill", f"{jobs}/forgetful")
    with fault(one_node, KNOWN_S) as began, forgetful(one_node, jobs, "node1"):
        found(one_node, expected, began)
