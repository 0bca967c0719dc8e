"""Which Events a change of a finding is worth: pure.

Each change that people act on has an Event on the node, and one on the pod that certainly causes
it.  A configuration finding is a report without Events: nothing happened.
"""

from __future__ import annotations

from reveal_analyzer.sinks.kube.entry import PendingEvent
from reveal_contract.finding import (
    Confidence,
    Finding,
    FindingKind,
    FindingScope,
    Pod,
    Severity,
    State,
)
from reveal_contract.kube import events

DOMINANT_PERCENT = 50  # share of the node's total, as the kernel counts it


def opened(finding: Finding) -> list[PendingEvent]:
    """Return the Events of a finding that is reported for the first time."""
    if finding.kind is FindingKind.CONFIGURATION:
        return []
    reason = _opening_reason(finding)
    on_node = PendingEvent(reason, _note(finding), finding.last_observed_ns)
    return [on_node, *of_culprit(finding)]


def of_culprit(finding: Finding) -> list[PendingEvent]:
    """Return the Event on the pod that certainly causes the finding, where one is known."""
    pod = culprit(finding)
    if pod is None or finding.kind is FindingKind.CONFIGURATION:
        return []
    note = f"On node {finding.node_name}: {_note(finding)}"
    identity = pod.namespace, pod.name, pod.uid
    return [PendingEvent(_opening_reason(finding), note, finding.last_observed_ns, identity)]


def changed(finding: Finding, max_severity: Severity, *, was_open: bool) -> list[PendingEvent]:
    """Return the Events of an update; ``max_severity`` is the highest before it."""
    if finding.kind is FindingKind.CONFIGURATION:
        return []
    if finding.state is State.RESOLVED:
        time_ns = finding.resolved_ns or finding.last_observed_ns
        return [PendingEvent(events.ANOMALY_RESOLVED, finding.claim, time_ns)] if was_open else []
    if finding.severity.rank > max_severity.rank:
        note = f"From {max_severity} to {_note(finding)}"
        return [PendingEvent(events.ANOMALY_ESCALATED, note, finding.last_observed_ns)]
    return []


def culprit(finding: Finding) -> Pod | None:
    """Return the pod that certainly causes the finding: measured, and over half of the total."""
    if not finding.pods:
        return None
    first = finding.pods[0]
    certain = first.confidence is Confidence.MEASURED and first.share_percent >= DOMINANT_PERCENT
    return first if certain and first.namespace and first.name else None


def _opening_reason(finding: Finding) -> events.EventReason:
    cross_node = finding.scope is FindingScope.CROSS_NODE
    return events.CROSS_NODE_OUTLIER if cross_node else events.ANOMALY_DETECTED


def _note(finding: Finding) -> str:
    cause = finding.hypothesis
    text = f"{finding.severity}, {finding.subsystem}: {finding.claim}"
    return f"{text} ({cause.name}: {cause.remediation})" if cause else text
