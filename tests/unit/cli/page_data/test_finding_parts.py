"""What a page knows about each finding of a recording."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from reveal_cli.page_data.collect import page_data
from reveal_cli.page_data.finding_parts import MOST_DETAILED, MOST_PANELS, Judged, worst_first
from reveal_cli.page_data.model import PageData
from reveal_cli.summary_text import Coverage
from reveal_contract.costs import Cost
from reveal_contract.finding import Evidence, Finding, Hypothesis, JobLoss, Severity
from reveal_contract.recording import RecordingWriter
from reveal_contract.wire import encode, gauges
from support.finding_factory import finding
from support.ledger_node import Times, ledger_node, ledger_values
from support.synthetic_node import Node

SECOND, START = 10**9, 1_700_000_000 * 10**9
FAULT = range(60, 70)
PRESSURE = Evidence("cpu.pressure.some", "mean", "", "8e8", "2e6", "ns/s", "up", "psi cpu some")
TAKEN = Evidence("ledger.taken_cpu", "mean", "/thief", "4e8", "", "ns", "up")
BUSY = Evidence("cpu.busy", "mean", "", "2e9", "3e8", "ns/s", "up")
UNREAD = Evidence("gpu.utilization", "mean", "0", "9", "1", "percent", "up")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two nodes over two minutes: the first waits for CPUs that somebody takes."""
    path = tmp_path_factory.mktemp("r") / "r.rvl"
    faulty, quiet = ledger_node("/job", "/thief"), Node()
    with RecordingWriter(path) as writer:
        for second in range(120):
            stolen = 0.4 if second in FAULT else 0.0
            times = {"/job": Times(run=1 - stolen, cpu={"/thief": stolen}), "/thief": Times(stolen)}
            values = ledger_values(times) | {"cpu.pressure.some": 8e5 if stolen else 2e3}
            message = faulty.slice(values)
            writer.message(encode(message, gauges(faulty.table)), faulty.table)
            other = replace(quiet.slice(), node="n2")
            writer.message(encode(other, gauges(quiet.table)), quiet.table)
    return path


def found(identity: str = "cpu-1", **other: object) -> Finding:
    times = {
        "first_observed_ns": START + FAULT.start * SECOND,
        "last_observed_ns": START + (FAULT.stop - 1) * SECOND,
        "evidence": (PRESSURE, TAKEN, BUSY, UNREAD),
    }
    return finding(identity, **{**times, **other})


def page(path: Path, *findings: Finding) -> PageData:
    return page_data(Judged(path, "r", findings, (), Coverage(120, 60, 60, 240, 20)))


def test_evidence_has_samples_and_what_is_computed_has_seconds(recorded: Path) -> None:
    [part] = page(recorded, found()).findings
    panels = {panel.title: panel for panel in part.panels}
    assert len(panels) == len(part.panels) <= MOST_PANELS
    assert next(iter(panels)) == "cpu.pressure.some"
    assert panels["cpu.pressure.some"].period_s == pytest.approx(0.1)
    assert panels["cpu.pressure.some"].known_as == "psi cpu some"
    taken = panels["ledger.taken_cpu{/thief}"]
    assert taken.period_s == 1.0
    assert max(value for line in taken.lines for _, value in line) == pytest.approx(4e8, rel=0.1)
    assert taken.band is not None
    assert taken.band[1] == 0.0
    assert "gpu.utilization{0}" not in panels
    assert part.span == (60.0, 70.0)
    assert part.window == (0.0, 120.0)


def test_the_same_metric_is_compared_with_other_nodes(recorded: Path) -> None:
    [part] = page(recorded, found()).findings
    assert part.peers is not None
    values = {each.node: each.value for each in part.peers.values}
    assert values["n1"] > 100 * values["n2"]
    assert [each.node for each in part.peers.values if each.is_own] == ["n1"]


def test_a_cause_that_another_finding_has_is_no_alternative(recorded: Path) -> None:
    cause = Hypothesis("CPUContention", 90, "")
    other = found("cpu-2", hypothesis=cause)
    first, _ = page(recorded, found(severity=Severity.HIGH), other).findings
    results = {each.name: each.result for each in first.ruled_out}
    assert results["CPUContention"] == "found as well"
    assert results["HungTasks"] == "unknown"
    assert "ruled out" in results.values()


def test_only_the_worst_findings_have_details(recorded: Path) -> None:
    many = [found(f"cpu-{n}", severity=Severity.LOW) for n in range(MOST_DETAILED)]
    data = page(recorded, *many, found("worst", severity=Severity.CRITICAL))
    assert data.findings[0].finding.id == "worst"
    assert [bool(part.panels) for part in data.findings] == [True] * MOST_DETAILED + [False]
    assert any("Only the 12 worst" in line for line in data.limits)


def test_a_finding_of_a_node_that_was_not_recorded_has_no_details(recorded: Path) -> None:
    [part] = page(recorded, found(node_name="elsewhere")).findings
    assert not part.panels
    assert part.peers is None


def test_the_order_is_severity_then_cost_then_onset() -> None:
    costly = found("costly", lost_time=(JobLoss("j", 50.0, 9),))
    cheap = found("cheap", lost_time=(JobLoss("j", 5.0, 9),))
    early = replace(cheap, id="early", first_observed_ns=START)
    high = found("high", severity=Severity.HIGH)
    gpus = replace(cheap, id="gpus", cost=Cost(8, 0.1, 0.2, 0.1, 0.3))
    ordered = [each.id for each in worst_first([cheap, early, costly, gpus, high])]
    assert ordered == ["high", "gpus", "costly", "early", "cheap"]
