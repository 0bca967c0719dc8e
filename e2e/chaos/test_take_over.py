"""Of two analyzers the one that told of a finding is lost: the other goes on within ten seconds."""

from __future__ import annotations

import time

import pytest

from clusterchaos import ANALYZER, Pods, replicas
from clusterfaults import Expected, fault, found, throttled
from controlplane import Object, wait_for

pytestmark = pytest.mark.timeout(900)

NODE = "node2"
TAKES_OVER_S = 10.0


def test_the_other_analyzer_takes_over(pods: Pods, jobs: str) -> None:
    expected = Expected(NODE, "CPU", "CPUQuotaThrottling", f"{jobs}/throttled")
    with (
        replicas(pods.watched, 2),
        fault(pods.watched) as began,
        throttled(pods.watched, jobs, NODE),
    ):
        found(pods.watched, expected, began)
        finding = pods.watched.report(began.report)["spec"]["findingID"]
        first, other = _told_by(pods, finding)
        assert finding not in pods.logs(other)
        pods.remove(first)
        lost = time.monotonic()
        wait_for(lambda: finding in pods.logs(other), 60, "the other one tells of it")
        seconds = time.monotonic() - lost
        print(f"\ntaken over {seconds:.1f} s after the loss")
        assert seconds <= TAKES_OVER_S


def _told_by(pods: Pods, finding: str) -> tuple[Object, Object]:
    """Who told of a finding by its log, and who did not."""
    one, two = pods.of(ANALYZER)
    return (one, two) if finding in pods.logs(one) else (two, one)
