"""The ledger: what is worth a write, who is behind what is open, too many, two analyzers."""

from __future__ import annotations

from dataclasses import replace

from reveal_analyzer.sinks.kube import report_store as module
from reveal_analyzer.sinks.kube.entry import Entry
from reveal_analyzer.sinks.kube.report_store import Listed
from reveal_analyzer.telemetry.snapshot import Watched
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
from support.finding_factory import AT, SECOND, changed, finding, opened, resolved
from support.report_store_harness import ALL, Desk

MINUTE = 60 * SECOND


def test_opened_and_resolved_are_two_writes_and_two_events() -> None:
    desk = Desk()
    desk.tell(opened())
    desk.turn()
    desk.tell(resolved())
    desk.turn()
    assert desk.states() == [("p-n1-cpu-1", "Open"), ("p-n1-cpu-1", "Resolved")]
    assert desk.said == ["AnomalyDetected", "AnomalyResolved"]
    assert len(desk.ledger) == 0
    assert desk.turn() == []


def test_suspicions_are_not_reported() -> None:
    desk = Desk()
    desk.tell(FindingUpdate(FindingChange.SUSPECTED, finding()))
    assert desk.turn() == []


def test_fifty_updates_in_five_minutes_are_two_writes() -> None:
    desk = Desk()
    desk.tell(opened())
    for number in range(60):
        desk.turn()
        desk.now += 5
        desk.tell(changed(claim=f"words {number}", last_seen_ns=AT + number * 5 * SECOND))
        desk.follow()
    desk.turn()
    assert len(desk.written) == 2
    assert desk.written[1].status["claim"] == "words 59"
    assert desk.said == ["AnomalyDetected"]


def test_a_pod_that_becomes_known_is_written_at_once_and_their_order_is_not() -> None:
    a, b, c = (Pod("ml", name, f"uid-{name}", "", 60, 60, Confidence.MEASURED) for name in "abc")
    desk = Desk()
    desk.tell(opened())
    desk.turn()
    for pods in ((a, b, c), (a, c, b)):
        desk.tell(changed(pods=pods))
        desk.turn()
    assert [one.status.get("podNames") for one in desk.written] == [None, "ml/a,ml/b,ml/c"]
    desk.tell(changed(pods=(b, a, c)))
    desk.turn()
    assert desk.written[-1].status["podNames"] == "ml/b,ml/a,ml/c"
    # on the node when it opened, and on the first of the pods when it was known
    assert desk.said == ["AnomalyDetected", "AnomalyDetected"]


def test_a_report_that_another_analyzer_began_tells_no_pod_again() -> None:
    pod = Pod("ml", "a", "uid-a", "", 60, 60, Confidence.MEASURED)
    began = report(finding(first_seen_ns=AT - 16 * MINUTE), "p", 0)
    desk = Desk(known=False)
    desk.list(began)
    desk.tell(changed(pods=(pod,)))
    desk.turn()
    assert desk.written[-1].status["podNames"] == "ml/a"
    assert desk.said == []


def test_while_it_is_open_it_is_seen_at_least_every_five_minutes() -> None:
    desk = Desk()
    desk.tell(opened())
    desk.run(900)
    assert len(desk.written) == 3
    first, *_, last = desk.written
    assert first.status["lastSeenTime"] < last.status["lastSeenTime"]
    assert last.status["windows"]["count"] > 600


def test_a_setting_is_refreshed_each_hour_only_and_tells_no_events() -> None:
    desk = Desk()
    kind = FindingKind.CONFIGURATION
    desk.tell(opened("configuration-1", kind=kind))
    desk.run(3500)
    assert len(desk.written) == 1
    desk.run(200)
    assert len(desk.written) == 2
    desk.tell(resolved("configuration-1", kind=kind))
    desk.turn()
    assert desk.written[-1].status["state"] == "Resolved"
    assert desk.said == []


def test_severity_cause_and_subsystem_are_written_at_once_and_the_spec_stays() -> None:
    desk = Desk()
    desk.tell(opened())
    desk.turn()
    desk.tell(changed(severity=Severity.HIGH))
    desk.turn()
    desk.tell(changed(severity=Severity.HIGH, subsystem=Subsystem.MEMORY, first_seen_ns=AT + 1))
    desk.turn()
    desk.tell(changed(severity=Severity.LOW, subsystem=Subsystem.MEMORY))
    desk.turn()
    assert [one.status["severity"] for one in desk.written] == ["Medium", "High", "High", "Low"]
    assert [one.status["subsystem"] for one in desk.written] == ["CPU", "CPU", "Memory", "Memory"]
    assert {str(one.spec) for one in desk.written} == {str(desk.written[0].spec)}
    assert desk.said == ["AnomalyDetected", "AnomalyEscalated"]


def test_it_escalates_only_over_what_it_ever_was() -> None:
    desk = Desk()
    desk.tell(opened(severity=Severity.HIGH), changed(severity=Severity.LOW))
    desk.tell(changed(severity=Severity.HIGH), changed(severity=Severity.CRITICAL))
    desk.turn()
    assert desk.said == ["AnomalyDetected", "AnomalyEscalated"]


def test_what_is_below_the_least_severity_is_reported_when_it_grows() -> None:
    desk = Desk(min_severity="High")
    desk.tell(opened(), changed())
    assert desk.turn() == []
    desk.tell(changed(severity=Severity.CRITICAL))
    assert len(desk.turn()) == 1
    desk.tell(changed(severity=Severity.LOW), resolved(severity=Severity.LOW))
    assert desk.turn()[0].status["state"] == "Resolved"
    assert desk.said == ["AnomalyDetected", "AnomalyResolved"]
    desk.tell(opened("cpu-2"), resolved("cpu-2"))
    assert desk.turn() == []


def test_events_are_a_setting() -> None:
    desk = Desk(events=False)
    desk.tell(opened(), resolved())
    desk.turn()
    assert desk.written and desk.said == []


def test_nothing_is_written_before_it_is_known_what_the_api_has() -> None:
    desk = Desk(known=False)
    desk.tell(opened())
    assert desk.turn() == []
    desk.list()
    assert len(desk.turn()) == 1


def test_what_the_api_has_as_open_goes_on_and_is_not_detected_again() -> None:
    desk = Desk(known=False)
    desk.tell(opened())
    there = report(finding(severity=Severity.LOW, first_seen_ns=AT - 16 * MINUTE), "p", 1)
    desk.list(there)
    (written,) = desk.turn()
    assert written.spec == there.spec
    assert written.status["severity"] == "Medium"
    assert desk.said == []


def test_what_began_just_before_another_took_over_is_told_under_the_same_name() -> None:
    """The first may have died between the report and its Event; the API knows one that it has."""
    desk = Desk(known=False)
    desk.tell(opened())
    desk.list(report(finding(first_seen_ns=AT - 14 * MINUTE), "p", 1))
    desk.turn()
    assert desk.said == ["AnomalyDetected"]


def test_a_finding_that_opens_where_nobody_is_behind_a_report_takes_it_on() -> None:
    """After a take-over the analysis begins anew: the same fault has another identity."""
    desk = Desk(known=False)
    there = report(finding("cpu-before"), "p", 1)
    other = report(finding("gpu-1", subsystem=Subsystem.GPU), "p", 1)
    desk.list(there, other)
    desk.follow()
    desk.tell(opened("cpu-after", first_seen_ns=AT + 99 * SECOND, severity=Severity.HIGH))
    (written,) = desk.turn()
    assert (written.name, written.spec) == (there.name, there.spec)
    assert written.status["severity"] == "High"
    desk.tell(resolved("cpu-after"))
    assert desk.turn()[0].name == there.name
    assert desk.said == ["AnomalyDetected", "AnomalyResolved"]
    desk.tell(opened("cpu-third"))
    assert desk.turn()[0].name == "p-n1-cpu-third"


def test_a_report_that_somebody_is_behind_is_not_taken_on() -> None:
    desk = Desk()
    desk.tell(opened("cpu-1"))
    desk.run(10)
    desk.tell(opened("cpu-2"))
    (written,) = desk.turn()
    assert written.name == "p-n1-cpu-2"


def test_what_nobody_follows_is_resolved_after_a_minute() -> None:
    desk = Desk(known=False)
    desk.list(report(finding(), "p", 1))
    desk.run(int(module.ORPHANED_S))
    assert desk.written == []
    desk.run(10)
    (over,) = desk.written
    assert over.status["state"] == "Resolved"
    assert "nobody follows it" in over.status["notes"][-1]
    assert desk.said == ["AnomalyResolved"]
    assert len(desk.ledger) == 0


def test_while_its_node_is_learned_nobody_can_be_behind_it() -> None:
    desk = Desk(known=False)
    desk.list(report(finding(), "p", 1))
    for _ in range(60):
        desk.now += 5
        learning = {"n1": Watched(desk.now, 0.0, learning=True)}
        desk.follow(replace(desk.situation(), nodes=learning))
        desk.turn()
    desk.run(int(module.ORPHANED_S) - 10)
    assert desk.written == []
    desk.run(15)
    assert desk.written[-1].status["state"] == "Resolved"


def test_a_node_that_is_not_heard_gets_more_time() -> None:
    desk = Desk(known=False)
    desk.list(report(finding(), "p", 1))
    desk.run(int(module.ABANDONED_S), nodes=())
    assert desk.written == []
    desk.run(10, nodes=())
    assert desk.written[-1].status["state"] == "Resolved"


def test_nobody_is_missed_while_redis_is_away() -> None:
    desk = Desk(known=False)
    desk.list(report(finding(), "p", 1))
    desk.run(3000, connected=False)
    desk.run(int(module.ORPHANED_S) - 10)
    assert desk.written == []


def test_a_report_of_a_node_of_another_analyzer_is_left_to_it() -> None:
    desk = Desk(known=False)
    desk.list(report(finding(), "p", 1))
    others = ALL - {shard("n1")}
    desk.run(3000, step=50, shards=others)
    assert desk.written == []
    assert len(desk.ledger) == 0


def test_a_node_that_is_lost_with_something_to_deliver_is_delivered_first() -> None:
    desk = Desk(known=False)
    desk.tell(opened())
    desk.follow(desk.situation(shards=ALL - {shard("n1")}))
    desk.list()
    assert len(desk.turn()) == 1
    desk.follow(desk.situation(nodes=(), shards=ALL - {shard("n1")}))
    assert len(desk.ledger) == 0


def test_a_node_that_fell_silent_is_over_after_a_quarter_of_an_hour() -> None:
    desk = Desk()
    desk.tell(opened())
    desk.turn()
    seen = Watched(desk.now, 0.0)
    while desk.now + 30 < 1000 + module.SILENT_S:
        desk.now += 30
        desk.follow(replace(desk.situation(), nodes={"n1": seen}))
        desk.turn()
    assert "has sent nothing for 15 minutes" not in str(desk.written[-1].status)
    desk.now += 60
    desk.follow(replace(desk.situation(), nodes={"n1": seen}))
    desk.turn()
    assert "has sent nothing for 15 minutes" in desk.written[-1].status["notes"][-1]
    desk.tell(changed())  # it came back, and is still so
    assert desk.turn()[0].status["state"] == "Open"


def test_an_analysis_that_began_anew_is_not_behind_what_the_old_one_found() -> None:
    desk = Desk()
    desk.tell(opened())
    desk.run(30)
    anew = desk.now
    for _ in range(0, int(module.ORPHANED_S) + 30, 10):
        desk.now += 10
        desk.follow(replace(desk.situation(), nodes={"n1": Watched(desk.now, anew)}))
        desk.turn()
    assert desk.written[-1].status["state"] == "Resolved"


def test_findings_across_nodes_are_the_leaders() -> None:
    across = report(finding("cpu-x", scope=FindingScope.CROSS_NODE), "p", 1)
    desk = Desk(known=False)
    desk.list(across)
    desk.run(1000, leads=True, cases=frozenset({"cpu-x"}))
    assert {one.status["state"] for one in desk.written} == {"Open"}
    desk.run(int(module.ABANDONED_S), leads=True)
    assert {one.status["state"] for one in desk.written} == {"Open"}
    desk.run(10, leads=True)
    assert desk.written[-1].status["state"] == "Resolved"
    desk = Desk(known=False)
    desk.list(across)
    desk.run(1000, leads=False)
    assert desk.written == [] and len(desk.ledger) == 0


def test_one_that_was_deleted_by_hand_is_made_again_while_it_is_open() -> None:
    desk = Desk()
    desk.tell(opened())
    desk.run(30)
    desk.list()
    (entry,) = desk.ledger
    assert entry.told is None
    assert [one.name for one in desk.turn()] == ["p-n1-cpu-1"]


def test_one_that_nobody_is_behind_and_was_deleted_is_forgotten() -> None:
    desk = Desk(known=False)
    desk.list(report(finding(), "p", 1))
    desk.list()
    assert len(desk.ledger) == 0


def test_labels_that_lag_are_mended() -> None:
    """An analyzer died between status and labels: the list by label shows it as open."""
    desk = Desk(known=False)
    over = report(resolved().finding, "p", 1)
    labels = report(finding(), "p", 1).labels()
    desk.ledger.listed([Listed(over, labels, False)], desk.now)
    (written,) = desk.turn()
    assert written == over
    assert len(desk.ledger) == 0


def test_what_an_earlier_run_could_not_deliver_is_delivered_once() -> None:
    first = Desk(known=False)
    first.tell(opened(), resolved())
    rows = [entry.to_row() for entry in first.ledger.pending()]
    second = Desk(known=False)
    second.ledger.restore(Entry.from_row(row) for row in rows)
    second.list()
    (written,) = second.turn()
    assert (written.name, written.status["state"]) == ("p-n1-cpu-1", "Resolved")
    assert second.said == ["AnomalyDetected", "AnomalyResolved"]
    assert second.turn() == [] and len(second.ledger) == 0


def test_over_before_it_could_be_told_and_never_told_is_no_report() -> None:
    desk = Desk()
    desk.tell(resolved())
    assert desk.turn() == []
    assert len(desk.ledger) == 0


def test_alarmed_nodes_are_those_with_something_high_that_is_open() -> None:
    desk = Desk()
    desk.tell(opened("a", severity=Severity.HIGH), opened("b", node_name="n2"))
    desk.turn()
    assert list(desk.ledger.alarmed()) == ["n1"]
    desk.tell(resolved("a", severity=Severity.HIGH))
    assert desk.ledger.alarmed() == {}
