"""A fault in a pod of a real cluster, and the one report that has to tell of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from clusterwatch import Watched, now, summary
from controlplane import Object, unique, wait_for

KNOWN_S = 10.0  # a finding names those who are known when it opens
SPIN = "while True: sum(range(10000))"
_VISIBLE_S = 60.0
_LASTS_S = 20.0
_ENDS_S = 120.0
_EAT = "kept = [b'x' * (1 << 20) for _ in range(200)]"
TELLS = "date +%s.%N"  # a pod's log says when it began to do harm
FORGETFUL = f'sleep {KNOWN_S:.0f}; {TELLS}; while true; do python3 -c "{_EAT}"; sleep 2; done'


@dataclass(frozen=True)
class Expected:
    """What the one report is to say; of a ``victim`` that nobody is to blame for its loss."""

    node: str
    subsystem: str
    hypothesis: str
    pod: str
    victim: bool = False


def throttled(watched: Watched, namespace: str, node: str) -> AbstractContextManager[None]:
    """A pod that wants a CPU and may have a seventh of one."""
    limits = {"cpu": "150m", "memory": "128Mi"}
    command = ["sh", "-c", f"{TELLS}; exec python3 -c '{SPIN}'"]
    container = {"command": command, "resources": {"limits": limits}}
    return watched.pod(namespace, node, "throttled", **container)


def forgetful(watched: Watched, namespace: str, node: str) -> AbstractContextManager[None]:
    """A pod that is killed for its memory again and again, once it is known."""
    container = {"command": ["sh", "-c", FORGETFUL], "resources": {"limits": {"memory": "64Mi"}}}
    return watched.pod(namespace, node, "forgetful", **container)


@contextmanager
def namespace_of_jobs(watched: Watched) -> Iterator[str]:
    """A namespace of its own: no pod has the name of one that another test had."""
    name = unique("jobs")
    made = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    watched.kube.create(made)
    wait_for(lambda: watched.kube.get("v1", "ServiceAccount", "default", name), 30, "an account")
    try:
        yield name
    finally:
        watched.kube.delete(made)


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
    print(f"resolved {time.monotonic() - ended:.1f} s after its end")  # noqa: T201 - a figure
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
    print(f"\n{seconds:.1f} s from the fault to its report: {summary(made)}")  # noqa: T201 - a figure
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
