"""Which Events a finding is worth, and of whom."""

from __future__ import annotations

from reveal_analyzer.sinks.kube import event_policy
from reveal_contract.finding import (
    Confidence,
    FindingKind,
    FindingScope,
    Hypothesis,
    Pod,
    Severity,
    State,
)
from support.finding_factory import AT, SECOND, finding


def pod(confidence: Confidence = Confidence.MEASURED, share: int = 60, name: str = "p0") -> Pod:
    return Pod("ns", name, "uid", "", share, 40, confidence)


def test_the_note_says_how_bad_what_and_what_to_do() -> None:
    known = finding(hypothesis=Hypothesis("CpuContention", 80, "move the neighbour"))
    (said,) = event_policy.opened(known)
    assert said.note == "Medium, CPU: CPU is slow (CpuContention: move the neighbour)"
    assert said.at_ns == known.last_seen_ns
    assert said.pod is None


def test_the_pod_is_told_of_only_when_it_is_measured_and_most_of_it() -> None:
    node, on_pod = event_policy.opened(finding(pods=(pod(), pod(name="p1"))))
    assert (node.pod, on_pod.pod) == (None, ("ns", "p0", "uid"))
    assert on_pod.note.startswith("On node n1: ")
    for other in (
        pod(share=49),
        pod(Confidence.INFERRED),
        pod(Confidence.CO_LOCATED),
        pod(name=""),
    ):
        assert len(event_policy.opened(finding(pods=(other, pod())))) == 1


def test_across_nodes_the_reason_is_another() -> None:
    (said,) = event_policy.opened(finding(scope=FindingScope.CROSS_NODE))
    assert said.reason.name == "CrossNodeOutlier"


def test_a_setting_is_no_event() -> None:
    setting = finding(kind=FindingKind.CONFIGURATION, severity=Severity.HIGH)
    assert event_policy.opened(setting) == []
    assert event_policy.changed(setting, Severity.LOW, was_open=True) == []


def test_it_is_resolved_once_and_at_the_time_it_was() -> None:
    over = finding(state=State.RESOLVED, resolved_ns=AT + 60 * SECOND)
    (said,) = event_policy.changed(over, Severity.HIGH, was_open=True)
    assert (said.reason.name, said.at_ns) == ("AnomalyResolved", AT + 60 * SECOND)
    assert event_policy.changed(over, Severity.HIGH, was_open=False) == []


def test_escalation_names_both_severities() -> None:
    (said,) = event_policy.changed(finding(severity=Severity.HIGH), Severity.LOW, was_open=True)
    assert said.reason.name == "AnomalyEscalated"
    assert said.note.startswith("From Low to High, CPU: ")
    assert event_policy.changed(finding(), Severity.MEDIUM, was_open=True) == []
