"""Texts of the Events on findings: pure.  ``event_policy`` decides which Events there are."""

from __future__ import annotations

from reveal_contract.finding import Finding, Resolution, Severity
from reveal_contract.time_units import NS_PER_SECOND

_END_NOT_OBSERVED = {
    Resolution.UNOBSERVED: "No longer observed, whether it lasts is unknown",
    Resolution.STOPPED: "No longer watched, whether it lasts is unknown",
    Resolution.ACCEPTED: "It lasts, and is the baseline from now on",
}


def state(finding: Finding) -> str:
    """Return what a finding says now: severity, subsystem, claim, cause and what to do."""
    cause = finding.hypothesis
    text = f"{finding.severity}, {finding.subsystem}: {finding.claim}"
    return f"{text} ({cause.name}: {cause.remediation})" if cause else text


def on_pod(finding: Finding, text: str) -> str:
    """Return the text of an Event on a pod, which also names the node."""
    return f"On node {finding.node_name}: {text}"


def escalation(finding: Finding, before: Severity) -> str:
    """Return the text of a finding that became more severe."""
    return f"From {before} to {state(finding)}"


def end(finding: Finding) -> str:
    """Return the text of a finding that is resolved; it says so where nobody saw it end."""
    unseen = _END_NOT_OBSERVED.get(finding.resolution)
    return f"{unseen}: {finding.claim}" if unseen else finding.claim


def reminder(finding: Finding, age_ns: int) -> str:
    """Return the text of a finding that has lasted for so long."""
    return f"Still open after {_duration(age_ns)}: {state(finding)}"


def _duration(age_ns: int) -> str:
    minutes = age_ns // (60 * NS_PER_SECOND)
    if minutes < 60:
        return f"{minutes} min"
    hours = minutes // 60
    return f"{hours} h" if hours < 48 else f"{hours // 24} days"
