"""A real fault on this host, by real processes, becomes one AnomalyReport and one Event.

Collector, Redis and analyzer run as in a pod, against the API server of the session; the fault is
one of ``reveal demo``.  What the API has, the JSON rows and the metrics say the same.
"""

from __future__ import annotations

import time
from itertools import accumulate, pairwise
from typing import Any

import pytest

from reveal_cli.faults import Injection, find
from reveal_cli.workloads import Workload
from reveal_contract.finding import Severity
from support.api_server import wait_for
from support.component_processes import answer
from support.kubectl import kubectl
from support.report_pipeline import ReportPipeline, of_the_fault, state

# nothing that runs beside the test does this to the host; tests themselves wait for CPUs and disks
FAULT, SUBSYSTEM, FAULT_S = "hugepages", "Memory", 20.0
_WRITTEN_S = 20.0  # a busy machine writes later


@pytest.mark.timeout(400)
def test_a_fault_has_a_single_report_and_event_and_resolves(
    job: Workload, watching: ReportPipeline
) -> None:
    fault = find(FAULT)
    if why := fault.unsupported_reason(job.target):
        pytest.skip(f"{FAULT} cannot be had here: {why}")
    with watching.analyzing():
        _expect_single_report(fault.on(job.target), watching)


def _expect_single_report(fault: Injection, watching: ReportPipeline) -> None:
    wait_for(lambda: watching.telemetry.get("nodesReporting") == 1, 90, "the node reports")
    wait_for(lambda: watching.telemetry.get("nodesLearning") == 0, 150, "the node is learned")
    assert watching.telemetry["streamReachable"] is True
    wait_for(lambda: _is_quiet(watching), 90, "the host's own trouble with its memory is over")
    with fault:
        began_ns = time.time_ns()
        result = wait_for(
            lambda: of_the_fault(watching, SUBSYSTEM, began_ns), 40, "a report of the fault"
        )
        seconds = (time.time_ns() - began_ns) / 1e9
        name = str(result["metadata"]["name"])
        listed = kubectl(watching.plane, "get", "anomalyreports")
        assert name in listed
        print(f"\n{seconds:.1f} s from the fault to its report:\n{listed}")
        wait_for(lambda: watching.events(name), _WRITTEN_S, "an Event of it")
        time.sleep(max(0.0, FAULT_S - seconds))
    wait_for(lambda: state(watching, name) == "Resolved", 60, "it resolves itself")
    wait_for(lambda: _reasons(watching, name)[-1:] == ["AnomalyResolved"], _WRITTEN_S, "an Event")
    _agree(watching, name, began_ns)


def _is_quiet(watching: ReportPipeline) -> bool:
    """Whether nothing is open in the fault's subsystem: the fault would be a part of it."""
    found = [
        report for report in watching.reports if report.get("status", {}).get("state") == "Open"
    ]
    claims = [
        item["status"]["claim"] for item in found if SUBSYSTEM in item["status"]["subsystems"]
    ]
    assert not claims, claims
    return True


def _agree(watching: ReportPipeline, name: str, began_ns: int) -> None:
    result = watching.report(name)
    of_the_fault(watching, SUBSYSTEM, began_ns)  # and no second one
    rows = [row for row in watching.rows if row["id"] == result["spec"]["findingID"]]
    last, status = rows[-1], result["status"]
    for key in ("state", "severity", "subsystem", "claim", "scorePercent", "resolvedTime"):
        assert status[key] == last[key], key
    assert {**result["spec"], **status}["nodeName"] == last["nodeName"]
    assert result["spec"]["firstSeenTime"] == rows[0]["firstSeenTime"]
    assert status["evidence"][0]["metric"] == last["evidence"][0]["metric"]
    raised = ["AnomalyEscalated"] * _escalations(rows)  # none, on most machines
    assert _reasons(watching, name) == ["AnomalyDetected", *raised, "AnomalyResolved"]
    detected = _events(watching, name)[0]
    assert rows[0]["claim"] in detected["note"]
    assert "series" not in detected
    found = wait_for(lambda: answer(watching.port, "/metrics")[0] == 200, 10, "metrics")
    assert found
    # the host's own findings go on meanwhile: rows come before the API gets the update
    wait_for(lambda: _is_delivered(watching), _WRITTEN_S, "all that was found is told")


def _events(watching: ReportPipeline, name: str) -> list[dict[str, Any]]:
    return sorted(watching.events(name), key=lambda item: str(item["eventTime"]))


def _reasons(watching: ReportPipeline, name: str) -> list[str]:
    return [item["reason"] for item in _events(watching, name)]


def _escalations(rows: list[dict[str, Any]]) -> int:
    """How often it was escalated while open."""
    ranks = [Severity(row["severity"]).rank for row in rows if row["state"] == "Open"]
    worst = list(accumulate(ranks, max))
    return sum(now > before for before, now in pairwise(worst))


def _is_delivered(watching: ReportPipeline) -> bool:
    numbers = (
        watching.metric("reveal_findings_total"),
        watching.metric('reveal_report_writes_total{result="created"}'),
        len(watching.reports),
    )
    up, waiting = watching.metric("reveal_kubernetes_up"), watching.metric("reveal_reports_waiting")
    return {*numbers} == {len({row["id"] for row in watching.rows})} and (up, waiting) == (1, 0)
