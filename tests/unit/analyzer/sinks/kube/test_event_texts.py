"""What the Events on findings say."""

from __future__ import annotations

import pytest

from reveal_analyzer.sinks.kube import event_texts
from reveal_contract.finding import Hypothesis, Resolution, Severity, State
from support.finding_factory import SECOND, finding


def test_a_state_without_a_cause_ends_with_the_claim() -> None:
    assert event_texts.state(finding()) == "Medium, CPU: CPU is slow"


def test_a_state_names_the_cause_and_what_to_do() -> None:
    known = finding(hypothesis=Hypothesis("CpuContention", 80, "move the neighbor"))
    assert event_texts.state(known).endswith("CPU is slow (CpuContention: move the neighbor)")


def test_an_escalation_names_both_severities() -> None:
    text = event_texts.escalation(finding(severity=Severity.HIGH), Severity.LOW)
    assert text == "From Low to High, CPU: CPU is slow"


@pytest.mark.parametrize(
    ("resolution", "unseen"),
    [(Resolution.ENDED, False), (Resolution.UNOBSERVED, True), (Resolution.STOPPED, True)],
)
def test_an_end_that_nobody_saw_is_called_unknown(resolution: Resolution, unseen: bool) -> None:
    text = event_texts.end(finding(state=State.RESOLVED, resolution=resolution))
    assert ("whether it lasts is unknown" in text) is unseen
    assert text.endswith("CPU is slow")


@pytest.mark.parametrize(
    ("age_s", "text"),
    [(600, "10 min"), (59 * 60, "59 min"), (3600, "1 h"), (47 * 3600, "47 h"), (72 * 3600, "3 d")],
)
def test_the_unit_of_an_age_follows_its_length(age_s: int, text: str) -> None:
    assert event_texts.reminder(finding(), age_s * SECOND).startswith(f"Still open after {text}")
