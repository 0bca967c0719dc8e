"""The report store: which changes are written, orphaned reports, and several analyzers."""

from __future__ import annotations

from dataclasses import replace

from reveal_analyzer.sinks.kube import observation as module
from reveal_analyzer.sinks.kube.entry import ReportEntry
from reveal_analyzer.sinks.kube.report_store import ListedReport
from reveal_analyzer.telemetry.snapshot import NodeSnapshot
from reveal_contract.finding import (
    Confidence,
    FindingChange,
    FindingKind,
    FindingScope,
    FindingUpdate,
    Pod,
    Severity,
)
from reveal_contract.kube.anomaly_report import report
from reveal_contract.metric import Subsystem
from reveal_contract.names import shard
from support.finding_factory import SECOND, START_NS, changed, finding, opened, resolved
from support.report_store_harness import ALL, StoreHarness

MINUTE = 60 * SECOND


def test_opened_and_resolved_are_two_writes_and_two_events() -> None:
    harness = StoreHarness()
    harness.update(opened())
    harness.deliver()
    harness.update(resolved())
    harness.deliver()
    assert harness.states() == [("p-n1-cpu-1", "Open"), ("p-n1-cpu-1", "Resolved")]
    assert harness.reasons == ["AnomalyDetected", "AnomalyResolved"]
    assert len(harness.store) == 0
    assert harness.deliver() == []


def test_suspicions_are_not_reported() -> None:
    harness = StoreHarness()
    harness.update(FindingUpdate(FindingChange.SUSPECTED, finding()))
    assert harness.deliver() == []


def test_fifty_updates_in_five_minutes_are_two_writes() -> None:
    harness = StoreHarness()
    harness.update(opened())
    for number in range(60):
        harness.deliver()
        harness.now += 5
        harness.update(
            changed(claim=f"words {number}", last_observed_ns=START_NS + number * 5 * SECOND)
        )
        harness.observe()
    harness.deliver()
    assert len(harness.written) == 2
    assert harness.written[1].status["claim"] == "words 59"
    assert harness.reasons == ["AnomalyDetected"]


def test_a_new_pod_is_written_immediately_and_a_new_order_of_pods_is_not() -> None:
    a, b, c = (Pod("ml", name, f"uid-{name}", "", 60, 60, Confidence.MEASURED) for name in "abc")
    harness = StoreHarness()
    harness.update(opened())
    harness.deliver()
    for pods in ((a, b, c), (a, c, b)):
        harness.update(changed(pods=pods))
        harness.deliver()
    assert [each.status.get("podNames") for each in harness.written] == [None, "ml/a,ml/b,ml/c"]
    harness.update(changed(pods=(b, a, c)))
    harness.deliver()
    assert harness.written[-1].status["podNames"] == "ml/b,ml/a,ml/c"
    # on the node when it opened, and on the first of the pods when it was known
    assert harness.reasons == ["AnomalyDetected", "AnomalyDetected"]


def test_a_report_of_another_analyzer_notifies_no_pod_again() -> None:
    pod = Pod("ml", "a", "uid-a", "", 60, 60, Confidence.MEASURED)
    began = report(finding(first_observed_ns=START_NS - 16 * MINUTE), "p", 0)
    harness = StoreHarness(listed=False)
    harness.list(began)
    harness.update(changed(pods=(pod,)))
    harness.deliver()
    assert harness.written[-1].status["podNames"] == "ml/a"
    assert harness.reasons == []


def test_an_open_report_is_refreshed_every_five_minutes() -> None:
    harness = StoreHarness()
    harness.update(opened())
    harness.run(900)
    assert len(harness.written) == 3
    first, *_, last = harness.written
    assert first.status["lastSeenTime"] < last.status["lastSeenTime"]
    assert last.status["windows"]["count"] > 600


def test_a_refresh_keeps_to_the_clock_of_the_node() -> None:
    """That clock is two hours behind the one of the analyzer."""
    harness = StoreHarness()
    behind_ns = 7200 * SECOND
    found = opened().finding
    observed_ns = found.last_observed_ns - behind_ns
    early = replace(
        found,
        first_observed_ns=found.first_observed_ns - behind_ns,
        last_observed_ns=observed_ns,
    )
    harness.update(FindingUpdate(FindingChange.OPENED, early))
    harness.run(700)
    [last] = harness.written[-1:]
    passed_ns = last.finding.last_observed_ns - observed_ns
    assert 600 <= passed_ns / SECOND <= 700


def test_a_configuration_finding_is_refreshed_each_hour_and_has_no_events() -> None:
    harness = StoreHarness()
    kind = FindingKind.CONFIGURATION
    harness.update(opened("configuration-1", kind=kind))
    harness.run(3500)
    assert len(harness.written) == 1
    harness.run(200)
    assert len(harness.written) == 2
    harness.update(resolved("configuration-1", kind=kind))
    harness.deliver()
    assert harness.written[-1].status["state"] == "Resolved"
    assert harness.reasons == []


def test_severity_cause_and_subsystem_are_written_immediately_and_the_spec_stays() -> None:
    harness = StoreHarness()
    harness.update(opened())
    harness.deliver()
    harness.update(changed(severity=Severity.HIGH))
    harness.deliver()
    harness.update(
        changed(severity=Severity.HIGH, subsystem=Subsystem.MEMORY, first_observed_ns=START_NS + 1)
    )
    harness.deliver()
    harness.update(changed(severity=Severity.LOW, subsystem=Subsystem.MEMORY))
    harness.deliver()
    assert [each.status["severity"] for each in harness.written] == [
        "Medium",
        "High",
        "High",
        "Low",
    ]
    assert [each.status["subsystem"] for each in harness.written] == [
        "CPU",
        "CPU",
        "Memory",
        "Memory",
    ]
    assert {str(each.spec) for each in harness.written} == {str(harness.written[0].spec)}
    assert harness.reasons == ["AnomalyDetected", "AnomalyEscalated"]


def test_it_escalates_only_over_its_highest_severity() -> None:
    harness = StoreHarness()
    harness.update(opened(severity=Severity.HIGH), changed(severity=Severity.LOW))
    harness.update(changed(severity=Severity.HIGH), changed(severity=Severity.CRITICAL))
    harness.deliver()
    assert harness.reasons == ["AnomalyDetected", "AnomalyEscalated"]


def test_a_finding_below_the_minimum_severity_is_reported_when_it_grows() -> None:
    harness = StoreHarness(min_severity="High")
    harness.update(opened(), changed())
    assert harness.deliver() == []
    harness.update(changed(severity=Severity.CRITICAL))
    assert len(harness.deliver()) == 1
    harness.update(changed(severity=Severity.LOW), resolved(severity=Severity.LOW))
    assert harness.deliver()[0].status["state"] == "Resolved"
    assert harness.reasons == ["AnomalyDetected", "AnomalyResolved"]
    harness.update(opened("cpu-2"), resolved("cpu-2"))
    assert harness.deliver() == []


def test_events_can_be_disabled() -> None:
    harness = StoreHarness(events=False)
    harness.update(opened(), resolved())
    harness.deliver()
    assert harness.written and harness.reasons == []


def test_nothing_is_written_before_the_api_is_listed() -> None:
    harness = StoreHarness(listed=False)
    harness.update(opened())
    assert harness.deliver() == []
    harness.list()
    assert len(harness.deliver()) == 1


def test_an_open_report_of_the_api_continues_without_another_event() -> None:
    harness = StoreHarness(listed=False)
    harness.update(opened())
    there = report(finding(severity=Severity.LOW, first_observed_ns=START_NS - 16 * MINUTE), "p", 1)
    harness.list(there)
    (written,) = harness.deliver()
    assert written.spec == there.spec
    assert written.status["severity"] == "Medium"
    assert harness.reasons == []


def test_a_new_finding_adopts_an_orphaned_report() -> None:
    """After a take-over the analysis restarts, and the same fault gets another identity."""
    harness = StoreHarness(listed=False)
    there = report(finding("cpu-before"), "p", 1)
    other = report(finding("gpu-1", subsystem=Subsystem.GPU), "p", 1)
    harness.list(there, other)
    harness.observe()
    harness.update(
        opened("cpu-after", first_observed_ns=START_NS + 99 * SECOND, severity=Severity.HIGH)
    )
    (written,) = harness.deliver()
    assert (written.name, written.spec) == (there.name, there.spec)
    assert written.status["severity"] == "High"
    harness.update(resolved("cpu-after"))
    assert harness.deliver()[0].name == there.name
    assert harness.reasons == ["AnomalyDetected", "AnomalyResolved"]
    harness.update(opened("cpu-third"))
    assert harness.deliver()[0].name == "p-n1-cpu-third"


def test_an_active_report_is_not_adopted() -> None:
    harness = StoreHarness()
    harness.update(opened("cpu-1"))
    harness.run(10)
    harness.update(opened("cpu-2"))
    (written,) = harness.deliver()
    assert written.name == "p-n1-cpu-2"


def test_an_orphaned_report_is_resolved_after_a_minute() -> None:
    harness = StoreHarness(listed=False)
    harness.list(report(finding(), "p", 1))
    harness.run(int(module.ORPHANED_S))
    assert harness.written == []
    harness.run(10)
    (over,) = harness.written
    assert over.status["state"] == "Resolved"
    assert "no analyzer observes it" in over.status["notes"][-1]
    assert over.status["resolution"] == "Unobserved"
    assert harness.reasons == ["AnomalyUnobserved"]
    assert len(harness.store) == 0


def test_an_orphan_waits_until_its_node_is_out_of_warm_up() -> None:
    harness = StoreHarness(listed=False)
    harness.list(report(finding(), "p", 1))
    for _ in range(60):
        harness.now += 5
        learning = {"n1": NodeSnapshot(harness.now, 0.0, learning=True)}
        harness.observe(replace(harness.snapshot(), nodes=learning))
        harness.deliver()
    harness.run(int(module.ORPHANED_S) - 10)
    assert harness.written == []
    harness.run(15)
    assert harness.written[-1].status["state"] == "Resolved"


def test_an_orphan_of_a_node_without_slices_waits_longer() -> None:
    harness = StoreHarness(listed=False)
    harness.list(report(finding(), "p", 1))
    harness.run(int(module.ABANDONED_S), nodes=())
    assert harness.written == []
    harness.run(10, nodes=())
    assert harness.written[-1].status["state"] == "Resolved"


def test_no_report_is_orphaned_while_redis_is_unavailable() -> None:
    harness = StoreHarness(listed=False)
    harness.list(report(finding(), "p", 1))
    harness.run(3000, connected=False)
    harness.run(int(module.ORPHANED_S) - 10)
    assert harness.written == []


def test_a_report_of_another_analyzers_node_is_dropped() -> None:
    harness = StoreHarness(listed=False)
    harness.list(report(finding(), "p", 1))
    others = ALL - {shard("n1")}
    harness.run(3000, step=50, shards=others)
    assert harness.written == []
    assert len(harness.store) == 0


def test_a_pending_report_of_a_lost_node_is_delivered_first() -> None:
    harness = StoreHarness(listed=False)
    harness.update(opened())
    harness.observe(harness.snapshot(shards=ALL - {shard("n1")}))
    harness.list()
    assert len(harness.deliver()) == 1
    harness.observe(harness.snapshot(nodes=(), shards=ALL - {shard("n1")}))
    assert len(harness.store) == 0


def test_reports_of_a_silent_node_are_resolved_after_15_minutes() -> None:
    harness = StoreHarness()
    harness.update(opened())
    harness.deliver()
    snapshot = NodeSnapshot(harness.now, 0.0)
    while harness.now + 30 < 1000 + module.SILENT_S:
        harness.now += 30
        harness.observe(replace(harness.snapshot(), nodes={"n1": snapshot}))
        harness.deliver()
    assert "has sent nothing for 15 minutes" not in str(harness.written[-1].status)
    harness.now += 60
    harness.observe(replace(harness.snapshot(), nodes={"n1": snapshot}))
    harness.deliver()
    assert "has sent nothing for 15 minutes" in harness.written[-1].status["notes"][-1]
    assert harness.written[-1].status["resolution"] == "Unobserved"
    harness.update(changed())  # it came back, and is still so
    assert harness.deliver()[0].status["state"] == "Open"


def test_a_reset_analysis_does_not_observe_earlier_findings() -> None:
    harness = StoreHarness()
    harness.update(opened())
    harness.run(30)
    restarted_ns = harness.now
    for _ in range(0, int(module.ORPHANED_S) + 30, 10):
        harness.now += 10
        harness.observe(
            replace(harness.snapshot(), nodes={"n1": NodeSnapshot(harness.now, restarted_ns)})
        )
        harness.deliver()
    assert harness.written[-1].status["state"] == "Resolved"


def test_the_leader_decides_on_cross_node_findings() -> None:
    across = report(finding("cpu-x", scope=FindingScope.CROSS_NODE), "p", 1)
    harness = StoreHarness(listed=False)
    harness.list(across)
    harness.run(1000, leads=True, cross_node_findings=frozenset({"cpu-x"}))
    assert {each.status["state"] for each in harness.written} == {"Open"}
    harness.run(int(module.ABANDONED_S), leads=True)
    assert {each.status["state"] for each in harness.written} == {"Open"}
    harness.run(10, leads=True)
    assert harness.written[-1].status["state"] == "Resolved"
    harness = StoreHarness(listed=False)
    harness.list(across)
    harness.run(1000, leads=False)
    assert harness.written == [] and len(harness.store) == 0


def test_stale_labels_are_fixed() -> None:
    """An analyzer died between status and labels: the list by label shows it as open."""
    harness = StoreHarness(listed=False)
    over = report(resolved().finding, "p", 1)
    labels = report(finding(), "p", 1).labels()
    harness.store.set_listed([ListedReport(over, labels, False)], harness.now)
    (written,) = harness.deliver()
    assert written == over
    assert len(harness.store) == 0


def test_pending_reports_of_an_earlier_run_are_delivered_once() -> None:
    first = StoreHarness(listed=False)
    first.update(opened(), resolved())
    rows = [entry.to_row() for entry in first.store.pending()]
    second = StoreHarness(listed=False)
    second.store.restore(ReportEntry.from_row(row) for row in rows)
    second.list()
    (written,) = second.deliver()
    assert (written.name, written.status["state"]) == ("p-n1-cpu-1", "Resolved")
    assert second.reasons == ["AnomalyDetected", "AnomalyResolved"]
    assert second.deliver() == [] and len(second.store) == 0


def test_a_finding_that_resolves_before_it_is_reported_is_no_report() -> None:
    harness = StoreHarness()
    harness.update(resolved())
    assert harness.deliver() == []
    assert len(harness.store) == 0


def test_urgent_nodes_have_an_open_report_of_high_severity() -> None:
    harness = StoreHarness()
    harness.update(opened("a", severity=Severity.HIGH), opened("b", node_name="n2"))
    harness.deliver()
    assert list(harness.store.urgent_by_node(harness.now_ns)) == ["n1"]
    harness.update(resolved("a", severity=Severity.HIGH))
    assert list(harness.store.urgent_by_node(harness.now_ns)) == ["n1"], (
        "the API still has it as open"
    )
    harness.deliver()
    assert harness.store.urgent_by_node(harness.now_ns) == {}
