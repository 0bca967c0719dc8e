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
from dataclasses import dataclass
from pathlib import Path

import pytest

from clusterwatch import TRAINING, Watched, now, summary
from controlplane import Object, wait_for

pytestmark = pytest.mark.timeout(900)

_VISIBLE_S = 60.0
_LASTS_S = 20.0
_ENDS_S = 120.0
_KNOWN_S = 10.0  # a finding names those who are known when it opens
_IDLE_S = 120.0
_IDLE_PERCENT = 40.0
_STARTED_S = 30.0  # a job that starts is no finding, and its pod must be known by then
_SPIN = "while True: sum(range(10000))"
_EAT = "kept = [b'x' * (1 << 20) for _ in range(200)]"


@dataclass(frozen=True)
class Expected:
    node: str
    subsystem: str
    hypothesis: str
    pod: str


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
    with fault(three_nodes) as began:
        limits = {"cpu": "150m", "memory": "128Mi"}
        container = {"command": ["python3", "-c", _SPIN], "resources": {"limits": limits}}
        with three_nodes.pod(jobs, "node2", "throttled", **container):
            found(three_nodes, expected, began)


def test_a_noisy_neighbour_of_a_training_pod(three_nodes: Watched, jobs: str) -> None:
    expected = Expected("node1", "CPU", "CPUContention", f"{jobs}/noisy")
    with training(three_nodes, jobs, "node1"), fault(three_nodes) as began:
        loops = f"for i in 1 2 3 4 5 6; do python3 -c '{_SPIN}' & done; wait"
        # its requests weigh more than the training pod's, which has none
        container = {"command": ["sh", "-c", loops], "resources": {"requests": {"cpu": "1"}}}
        with three_nodes.pod(jobs, "node1", "noisy", **container):
            found(three_nodes, expected, began)


def test_a_pod_killed_for_its_memory_again_and_again(one_node: Watched, jobs: str) -> None:
    expected = Expected("node1", "Memory", "OOMKill", f"{jobs}/forgetful")
    with fault(one_node, _KNOWN_S) as began:
        loop = f'sleep {_KNOWN_S:.0f}; while true; do python3 -c "{_EAT}"; sleep 2; done'
        container = {"command": ["sh", "-c", loop], "resources": {"limits": {"memory": "64Mi"}}}
        with one_node.pod(jobs, "node1", "forgetful", **container):
            found(one_node, expected, began)


@dataclass
class Began:
    """When a fault began, by both clocks, and what is said of it."""

    time: str
    monotonic: float
    report: str = ""


@contextmanager
def fault(watched: Watched, after: float = 0.0) -> Iterator[Began]:
    """Inside, it happens; afterwards it is over, and one report and its Events tell of it.

    ``after``: how long its pod waits before it does harm.
    """
    watched.calm()
    began = Began(now(), time.monotonic() + after)
    yield began
    ended = time.monotonic()
    wait_for(lambda: _state(watched, began) == "Resolved", _ENDS_S, "it resolves itself")
    print(f"resolved {time.monotonic() - ended:.1f} s after its end")
    wait_for(lambda: len(watched.events(began.report)) >= 2, 10, "an Event of that")
    assert [summary(one) for one in watched.reports(began.time)] == [
        summary(watched.report(began.report))
    ]
    reasons = watched.events(began.report)
    assert reasons.count("AnomalyDetected") == reasons.count("AnomalyResolved") == 1
    assert len(watched.events(began.report, "Pod")) <= 1


def found(watched: Watched, expected: Expected, began: Began) -> None:
    """Wait for the report, say how long it took, and let the fault last a while."""
    made = wait_for(lambda: _of(watched, expected, began), _VISIBLE_S, f"a report of {expected}")
    seconds = time.monotonic() - began.monotonic
    began.report = made["metadata"]["name"]
    listed = watched.cluster.kubectl("get", "anomalyreports", "-o", "wide")
    assert began.report in listed
    print(f"\n{seconds:.1f} s from the fault to its report: {summary(made)}")
    time.sleep(_LASTS_S)


def _of(watched: Watched, expected: Expected, began: Began) -> Object | None:
    for one in watched.reports(began.time):
        spec, status = one["spec"], one["status"]
        pods = [f"{pod['namespace']}/{pod['name']}" for pod in status.get("pods", ())]
        told = Expected(
            spec["nodeName"], status["subsystem"],
            (status.get("hypothesis") or {}).get("name", ""), pods[0] if pods else "",
        )  # fmt: skip
        if told == expected:
            return one
    assert not watched.reports(began.time), [summary(one) for one in watched.reports(began.time)]
    return None


def _state(watched: Watched, began: Began) -> str:
    return str(watched.report(began.report)["status"]["state"])
