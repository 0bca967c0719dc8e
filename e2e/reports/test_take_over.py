"""An analyzer is killed while a fault goes on: the next one goes on with the same report."""

from __future__ import annotations

import time
from contextlib import ExitStack

import pytest

from reveal_cli.faults import find
from reveal_cli.workloads import Workload
from support.api_server import wait_for
from support.component_processes import free_port
from support.report_pipeline import ReportPipeline, of_the_fault, state

FAULT = "hugepages"  # a share of the memory that is certain harm, learned past or not
TAKES_OVER_S = 60  # a lease of seven seconds, an interpreter's start, the last minute read again


@pytest.mark.timeout(300)
def test_the_next_analyzer_continues_the_same_report(
    job: Workload, watching: ReportPipeline
) -> None:
    fault = find(FAULT)
    if why := fault.unsupported_reason(job.target):
        pytest.skip(f"{FAULT} cannot be had here: {why}")
    with ExitStack() as stack:
        first = stack.enter_context(watching.analyzing())
        wait_for(lambda: watching.telemetry.get("nodesReporting") == 1, 90, "the node reports")
        injection = stack.enter_context(fault.on(job.target))
        began_ns = time.time_ns()
        result = wait_for(
            lambda: of_the_fault(watching, "Memory", began_ns), 60, "a report of the fault"
        )
        first.process.kill()
        rows_before = len(watching.rows)
        stack.enter_context(watching.analyzing(free_port()))
        wait_for(lambda: len(watching.rows) > rows_before, TAKES_OVER_S, "the next one tells of it")
        assert state(watching, result["metadata"]["name"]) == "Open"
        injection.stop()
        name = str(result["metadata"]["name"])
        wait_for(lambda: state(watching, name) == "Resolved", 60, "it resolves itself")
        reasons = sorted(str(event["reason"]) for event in watching.events(name))
    assert reasons[0] == "AnomalyDetected" and reasons.count("AnomalyDetected") == 1
    of_the_fault(watching, "Memory", began_ns)  # and no second one
