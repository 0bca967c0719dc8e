"""Too many findings: one summary, room for severe ones, limited memory."""

from __future__ import annotations

from typing import Any

from reveal_analyzer.sinks.kube import entries as module
from reveal_analyzer.sinks.kube.entry import Admission
from reveal_contract.finding import FindingChange, FindingKind, FindingUpdate, Severity
from reveal_contract.kube.anomaly_report import Report, report
from reveal_contract.metric import Subsystem
from support.finding_factory import changed, finding, opened, resolved
from support.report_store_harness import StoreHarness, flood


def test_too_many_findings_become_a_summary() -> None:
    harness = StoreHarness(reports_per_minute=10)
    flood(harness, 100)
    written = harness.deliver() + harness.deliver()
    assert len(written) == 9  # two are reserved for severe ones, one is the summary
    (total,) = [each for each in written if each.status.get("cause") == "TooManyFindings"]
    assert total.status["claim"].startswith(
        "92 more findings on 9 nodes, over the limit of 10 new reports"
    )
    assert total.spec["findingID"].startswith("overflow-")
    assert harness.store.counts["summed"] == 92
    assert harness.reasons.count("AnomalyDetected") == 9


def test_lasting_findings_are_reported_individually_after_the_flood() -> None:
    harness = StoreHarness(reports_per_minute=10)
    flood(harness, 40)
    harness.deliver()
    assert len(harness.store) == 41
    for _ in range(30):
        harness.run(10, nodes=[f"n{n}" for n in range(9)])
    total = [each for each in harness.written if "overflow" in each.name][-1]
    assert total.status["state"] == "Resolved"
    assert len({each.name for each in harness.written}) == 41
    assert harness.reasons.count("AnomalyDetected") == 41


def test_nodes_that_another_analyzer_took_over_leave_the_summary() -> None:
    harness = StoreHarness(reports_per_minute=10)
    flood(harness, 40)
    harness.deliver()
    harness.observe(harness.snapshot(nodes=(), shards=frozenset()))
    harness.deliver()
    assert harness.written[-1].status["state"] == "Resolved"
    assert len(harness.store) == 0


def test_a_critical_finding_is_reported_during_a_flood() -> None:
    harness = StoreHarness(reports_per_minute=10)
    flood(harness, 100)
    harness.deliver()
    harness.update(opened("gpu-1", subsystem=Subsystem.GPU, severity=Severity.CRITICAL))
    written = harness.deliver()
    assert "p-n1-gpu-1" in [each.name for each in written]


def test_a_summarized_finding_that_grows_is_reported_individually() -> None:
    harness = StoreHarness(reports_per_minute=10)
    flood(harness, 100)
    harness.deliver()
    (grown,) = [e for e in harness.store if e.admission is Admission.SUMMARIZED][-1:]
    harness.update(changed(grown.finding_id, node_name=grown.report.node, severity=Severity.HIGH))
    assert grown.report.name in [each.name for each in harness.deliver()]


def test_the_summary_is_written_once_a_minute_and_finally_resolved() -> None:
    harness = StoreHarness(reports_per_minute=10)
    flood(harness, 100)

    def totals() -> list[Report]:
        return [each for each in harness.written if "overflow" in each.name]

    harness.deliver()
    for _ in range(11):
        harness.now += 10
        flood(harness, 100)
        harness.deliver()
    assert len(totals()) == 2
    for n in range(100):
        harness.update(resolved(f"cpu-{n}", node_name=f"n{n % 9}", severity=Severity.LOW))
    harness.deliver()
    assert len({each.name for each in totals()}) == 1
    assert totals()[-1].status["state"] == "Resolved"
    assert len(harness.store) == 0


def test_a_flood_that_the_api_has_already_needs_no_tokens() -> None:
    """After a restart every configuration finding is detected again."""
    harness = StoreHarness(listed=False, reports_per_minute=1)
    kind = FindingKind.CONFIGURATION
    found = [finding(f"configuration-{n}", kind=kind) for n in range(50)]
    harness.update(*(FindingUpdate(FindingChange.OPENED, each) for each in found))
    harness.list(*(report(each, "p", 1) for each in found))
    assert harness.deliver() == []
    assert harness.store.counts["summed"] == 0
    assert len(harness.store) == 50


def test_the_number_of_entries_is_limited(monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "MAX_ENTRIES", 5)
    harness = StoreHarness(listed=False)
    flood(harness, 9)
    assert len(harness.store) == 5
    assert harness.store.counts["dropped"] == 4
