"""Too many findings: one summary, what is High is not crowded out, everything is bounded."""

from __future__ import annotations

from typing import Any

from reveal_analyzer.sinks.kube import report_store as module
from reveal_analyzer.sinks.kube.entry import Admission
from reveal_contract.finding import FindingChange, FindingKind, FindingUpdate, Severity
from reveal_contract.kube.anomaly_report import Report, report
from reveal_contract.metric import Subsystem
from support.finding_factory import changed, finding, opened, resolved
from support.report_store_harness import Desk, flood


def test_too_many_become_one_summary() -> None:
    desk = Desk(reports_per_minute=10)
    flood(desk, 100)
    written = desk.turn() + desk.turn()
    assert len(written) == 9  # two are kept for what is High, one is the summary
    (total,) = [one for one in written if one.status.get("cause") == "TooManyFindings"]
    assert total.status["claim"].startswith("92 more findings on 9 nodes, over 10 new reports")
    assert total.spec["findingID"].startswith("overflow-")
    assert desk.ledger.counts["summed"] == 92
    assert desk.said.count("AnomalyDetected") == 9


def test_what_lasts_is_told_one_by_one_when_the_flood_is_over() -> None:
    desk = Desk(reports_per_minute=10)
    flood(desk, 40)
    desk.turn()
    assert len(desk.ledger) == 41
    for _ in range(30):
        desk.run(10, nodes=[f"n{n}" for n in range(9)])
    total = [one for one in desk.written if "overflow" in one.name][-1]
    assert total.status["state"] == "Resolved"
    assert len({one.name for one in desk.written}) == 41
    assert desk.said.count("AnomalyDetected") == 41


def test_nodes_that_another_analyzer_took_over_leave_the_summary() -> None:
    desk = Desk(reports_per_minute=10)
    flood(desk, 40)
    desk.turn()
    desk.follow(desk.situation(nodes=(), shards=frozenset()))
    desk.turn()
    assert desk.written[-1].status["state"] == "Resolved"
    assert len(desk.ledger) == 0


def test_what_is_high_is_not_crowded_out() -> None:
    desk = Desk(reports_per_minute=10)
    flood(desk, 100)
    desk.turn()
    desk.tell(opened("gpu-1", subsystem=Subsystem.GPU, severity=Severity.CRITICAL))
    written = desk.turn()
    assert "p-n1-gpu-1" in [one.name for one in written]


def test_one_of_the_summed_that_grows_is_told_by_itself() -> None:
    desk = Desk(reports_per_minute=10)
    flood(desk, 100)
    desk.turn()
    (grown,) = [e for e in desk.ledger if e.admission is Admission.SUMMED][-1:]
    desk.tell(changed(grown.finding, node_name=grown.report.node, severity=Severity.HIGH))
    assert grown.report.name in [one.name for one in desk.turn()]


def test_the_summary_is_rewritten_each_minute_at_most_and_resolves_itself() -> None:
    desk = Desk(reports_per_minute=10)
    flood(desk, 100)

    def totals() -> list[Report]:
        return [one for one in desk.written if "overflow" in one.name]

    desk.turn()
    for _ in range(11):
        desk.now += 10
        flood(desk, 100)
        desk.turn()
    assert len(totals()) == 2
    for n in range(100):
        desk.tell(resolved(f"cpu-{n}", node_name=f"n{n % 9}", severity=Severity.LOW))
    desk.turn()
    assert len({one.name for one in totals()}) == 1
    assert totals()[-1].status["state"] == "Resolved"
    assert len(desk.ledger) == 0


def test_a_flood_that_the_api_has_already_needs_no_tokens() -> None:
    """After a restart every setting that does not hold is found again."""
    desk = Desk(known=False, reports_per_minute=1)
    kind = FindingKind.CONFIGURATION
    found = [finding(f"configuration-{n}", kind=kind) for n in range(50)]
    desk.tell(*(FindingUpdate(FindingChange.OPENED, one) for one in found))
    desk.list(*(report(one, "p", 1) for one in found))
    assert desk.turn() == []
    assert desk.ledger.counts["summed"] == 0
    assert len(desk.ledger) == 50


def test_the_ledger_is_bounded(monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "MAX_ENTRIES", 5)
    desk = Desk(known=False)
    flood(desk, 9)
    assert len(desk.ledger) == 5
    assert desk.ledger.counts["dropped"] == 4
