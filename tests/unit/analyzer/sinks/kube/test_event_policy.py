"""Which Events a change of a finding is worth, and on which objects."""

from __future__ import annotations

import pytest

from reveal_analyzer.sinks.kube import event_policy
from reveal_contract.finding import (
    Confidence,
    FindingKind,
    FindingScope,
    Hypothesis,
    Pod,
    Resolution,
    Severity,
    State,
)
from support.finding_factory import SECOND, START_NS, finding


def pod(confidence: Confidence = Confidence.MEASURED, share: int = 60, name: str = "p0") -> Pod:
    return Pod("ns", name, "uid", "", share, 40, confidence)


def test_the_note_has_severity_subsystem_claim_and_remediation() -> None:
    known = finding(hypothesis=Hypothesis("CpuContention", 80, "move the neighbor"))
    (event,) = event_policy.opened(known)
    assert event.note == "Medium, CPU: CPU is slow (CpuContention: move the neighbor)"
    assert event.time_ns == known.last_observed_ns
    assert event.pod is None


def test_a_pod_has_an_event_only_if_it_is_measured_and_dominant() -> None:
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


def test_a_cross_node_finding_has_another_reason() -> None:
    (event,) = event_policy.opened(finding(scope=FindingScope.CROSS_NODE))
    assert event.reason.name == "CrossNodeOutlier"


def test_a_configuration_finding_has_no_event() -> None:
    setting = finding(kind=FindingKind.CONFIGURATION, severity=Severity.HIGH)
    assert event_policy.opened(setting) == []
    assert event_policy.changed(setting, Severity.LOW, was_open=True) == []


def test_a_resolved_finding_has_an_event_with_its_duration() -> None:
    over = finding(state=State.RESOLVED, resolved_ns=START_NS + 60 * SECOND)
    (event,) = event_policy.changed(over, Severity.HIGH, was_open=True)
    assert (event.reason.name, event.time_ns) == ("AnomalyResolved", START_NS + 60 * SECOND)
    assert event_policy.changed(over, Severity.HIGH, was_open=False) == []


def test_escalation_names_both_severities() -> None:
    (event,) = event_policy.changed(finding(severity=Severity.HIGH), Severity.LOW, was_open=True)
    assert event.reason.name == "AnomalyEscalated"
    assert event.note.startswith("From Low to High, CPU: ")
    assert event_policy.changed(finding(), Severity.MEDIUM, was_open=True) == []


@pytest.mark.parametrize(
    ("resolution", "reason"),
    [
        (Resolution.ENDED, "AnomalyResolved"),
        (Resolution.UNOBSERVED, "AnomalyUnobserved"),
        (Resolution.STOPPED, "ReportingStopped"),
    ],
)
def test_only_a_finding_that_ended_is_called_resolved(resolution: Resolution, reason: str) -> None:
    over = finding(state=State.RESOLVED, resolution=resolution)
    (event,) = event_policy.changed(over, Severity.HIGH, was_open=True)
    assert event.reason.name == reason
    assert ("whether it lasts is unknown" in event.note) == (resolution is not Resolution.ENDED)
    assert "CPU is slow" in event.note


def test_a_finding_that_is_the_baseline_now_is_not_called_over() -> None:
    accepted = finding(state=State.RESOLVED, resolution=Resolution.ACCEPTED)
    (event,) = event_policy.changed(accepted, Severity.HIGH, was_open=True)
    assert event.reason.name == "ReportingStopped"
    assert event.note.startswith("It lasts, and is the baseline from now on: ")


def test_reminders_become_rarer_with_age() -> None:
    hour = 3600
    ages = {0: 0, 599: 0, 600: 1, hour: 2, 6 * hour: 3, 24 * hour: 4, 47 * hour: 4, 72 * hour: 6}
    for age_s, count in ages.items():
        assert event_policy.reminders(age_s * SECOND) == count
    assert event_policy.reminders(-3600 * SECOND) == 0  # the clocks differ


def test_a_reminder_has_the_age_and_goes_to_the_pod_too() -> None:
    known = finding(pods=(pod(),))
    for age_s, text in ((600, "10 min"), (6 * 3600, "6 h"), (72 * 3600, "3 days")):
        on_node, on_pod = event_policy.reminder(known, age_s * SECOND, START_NS)
        assert on_node.note == f"Still open after {text}: Medium, CPU: CPU is slow"
        assert on_node.reason.name == on_pod.reason.name == "AnomalyContinues"
        assert on_pod.note == f"On node n1: {on_node.note}"
