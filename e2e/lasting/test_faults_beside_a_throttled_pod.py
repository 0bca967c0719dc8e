"""A pod is throttled for a quarter of an hour; other faults of its node begin and end meanwhile.

Two analyzers watch and set node conditions.  The tests run in the order of this file: all of them
are about the same quarter of an hour.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from reveal_contract.kube.node_condition import CONDITION_TYPE
from support.api_server import condition, wait_for
from support.cluster_release import COMPUTING, Release, cause, now, summary
from support.faulty_pods import (
    CROWDED,
    TAKEN,
    contention,
    namespace_of_jobs,
    noisy,
    quota,
    throttled,
)
from support.lasting_fault import LastingReport, condition_watch, reported
from support.packet_loss import loss, packet_loss, ranks

pytestmark = pytest.mark.timeout(1800)

NODE, OTHER = "node2", "node1"
_STARTED_S = 25.0  # a job that starts is no finding, and its pod must be known by then
_KNOWN_S = 60.0  # how a job was before somebody came
_CROWD_S = 10.0  # what waits just before the noisy pod may be the beginning of its finding
_PER_MILLE = 10
_LOSS_S = 40.0
_PAUSE_S = 30.0
_CONTENTION_S = 640.0  # the Event AnomalyContinues is due after ten minutes
_REQUEST = "200m"  # of the noisy pod: twice that of the job that loses
_QUOTA = "50m"  # far less than the throttled pod gets beside both: else it would not bind
_LASTS_S = 900.0  # analyzers list the open reports every ten minutes
_SET_S, _REMOVED_S = 15.0, 30.0


@dataclass(frozen=True)
class Throttling:
    """The fault that lasts, and the condition of its node by now."""

    watched: Release
    jobs: str
    began: float
    report: LastingReport
    conditions: Callable[[], list[str]]
    end: Callable[[], None]


@pytest.fixture(scope="module")
def throttling(
    two_analyzers: Release, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Throttling]:
    file, cluster = tmp_path_factory.mktemp("conditions") / NODE, two_analyzers.cluster
    with namespace_of_jobs(two_analyzers) as jobs, ExitStack() as fault:
        since = now()
        fault.enter_context(throttled(two_analyzers, jobs, NODE, _QUOTA))
        report = reported(two_analyzers, quota(NODE, jobs), since)
        wait_for(
            lambda: condition(two_analyzers.kube.get("v1", "Node", NODE), CONDITION_TYPE),
            _SET_S,
            "a condition",
        )
        with condition_watch(cluster, NODE, file) as states:
            yield Throttling(two_analyzers, jobs, time.monotonic(), report, states, fault.close)


def test_packet_loss_is_reported_each_time(throttling: Throttling) -> None:
    watched, jobs = throttling.watched, throttling.jobs
    with ranks(watched, jobs, (OTHER, NODE)):
        time.sleep(_STARTED_S)
        for _ in range(2):
            since = now()
            with loss(watched.cluster, NODE, _PER_MILLE):
                report = reported(watched, packet_loss(NODE, jobs), since)
                report.follow(_LOSS_S)
                throttling.report.check_open()
            report.check_resolved()
            throttling.report.check_open()
            time.sleep(_PAUSE_S)


def test_contention_names_the_pod_that_began_it_to_its_end(throttling: Throttling) -> None:
    """A job was there all along: it loses, and is not named when the minute before it is old."""
    watched, jobs = throttling.watched, throttling.jobs
    with watched.pod(jobs, NODE, "training", **COMPUTING):
        time.sleep(_KNOWN_S - _CROWD_S)
        since = now()
        time.sleep(_CROWD_S)
        _expect_no_contention(watched)
        with noisy(watched, jobs, NODE, _REQUEST):
            report = reported(watched, contention(NODE, jobs), since)
            report.follow(_CONTENTION_S)
            throttling.report.check_open()
        report.check_resolved()
    assert report.reasons == ["AnomalyDetected", "AnomalyContinues", "AnomalyResolved"]
    assert report.pods == {f"{jobs}/noisy"}
    throttling.report.check_open()


def test_the_condition_stays_while_a_finding_is_high(throttling: Throttling) -> None:
    throttling.report.follow(_LASTS_S - (time.monotonic() - throttling.began))
    states = throttling.conditions()
    assert all(states), states


def test_report_and_condition_end_with_the_throttling(throttling: Throttling) -> None:
    throttling.end()
    throttling.report.check_resolved()
    assert throttling.report.pods == {f"{throttling.jobs}/throttled"}
    wait_for(lambda: throttling.conditions()[-1] == "", _REMOVED_S, "no condition")


def test_nothing_else_was_reported(throttling: Throttling) -> None:
    known = {"CPUQuotaThrottling", "PacketLoss", TAKEN, CROWDED}
    found = throttling.watched.reports(throttling.report.since)
    others = [
        summary(report)
        for report in found
        if cause(report) not in known or report["spec"]["nodeName"] != NODE
    ]
    assert others == []


def _expect_no_contention(watched: Release) -> None:
    """Skip where work beside the cluster makes pods wait before the noisy one does."""
    found = [
        summary(report)
        for report in watched.reports()
        if cause(report) in {TAKEN, CROWDED} and report["status"]["state"] == "Open"
    ]
    if found:
        pytest.skip(f"pods wait already: {found}")
