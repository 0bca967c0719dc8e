"""Which Events a change of a finding is worth: pure.  Their texts are those of ``event_texts``.

Each change that people act on has an Event on the node, and one on the pod that certainly causes
it.  A configuration finding is a report without Events: nothing happened.
"""

from __future__ import annotations

from reveal_analyzer.sinks.kube import event_texts
from reveal_analyzer.sinks.kube.entry import PendingEvent
from reveal_contract.finding import (
    Confidence,
    Finding,
    FindingKind,
    FindingScope,
    Pod,
    Resolution,
    Severity,
    State,
)
from reveal_contract.kube import events
from reveal_contract.time_units import NS_PER_SECOND

DOMINANT_PERCENT = 50  # share of the node's total, as the kernel counts it
# ages at which an Event says that a finding continues: in seconds, then once in each so many
REMINDER_AGES_S, REMINDER_EVERY_S = (600, 3600, 6 * 3600), 24 * 3600
_RESOLVED = {
    Resolution.UNOBSERVED: events.ANOMALY_UNOBSERVED,
    Resolution.STOPPED: events.REPORTING_STOPPED,
    Resolution.ACCEPTED: events.REPORTING_STOPPED,
}


def opened(finding: Finding) -> list[PendingEvent]:
    """Return the Events of a finding that is reported for the first time."""
    if finding.kind is FindingKind.CONFIGURATION:
        return []
    reason = _opening_reason(finding)
    on_node = PendingEvent(reason, event_texts.state(finding), finding.last_observed_ns)
    return [on_node, *of_culprit(finding)]


def of_culprit(finding: Finding) -> list[PendingEvent]:
    """Return the Event on the pod that certainly causes the finding, where one is known."""
    pod = culprit(finding)
    if pod is None or finding.kind is FindingKind.CONFIGURATION:
        return []
    note = event_texts.on_pod(finding, event_texts.state(finding))
    identity = pod.namespace, pod.name, pod.uid
    return [PendingEvent(_opening_reason(finding), note, finding.last_observed_ns, identity)]


def changed(finding: Finding, max_severity: Severity, *, was_open: bool) -> list[PendingEvent]:
    """Return the Events of an update; ``max_severity`` is the highest before it."""
    if finding.kind is FindingKind.CONFIGURATION:
        return []
    if finding.state is State.RESOLVED:
        time_ns = finding.resolved_ns or finding.last_observed_ns
        return [resolved(finding.resolution, event_texts.end(finding), time_ns)] if was_open else []
    if finding.severity.rank > max_severity.rank:
        note = event_texts.escalation(finding, max_severity)
        return [PendingEvent(events.ANOMALY_ESCALATED, note, finding.last_observed_ns)]
    return []


def resolved(resolution: Resolution, note: str, time_ns: int) -> PendingEvent:
    """Return the Event of a resolved finding: only one that ended has ``AnomalyResolved``."""
    return PendingEvent(_RESOLVED.get(resolution, events.ANOMALY_RESOLVED), note, time_ns)


def reminders(age_ns: int) -> int:
    """Return how many reminders a finding of that age has had: fewer as it gets older."""
    age_s = age_ns // NS_PER_SECOND
    return sum(age_s >= limit for limit in REMINDER_AGES_S) + max(0, age_s // REMINDER_EVERY_S)


def reminder(finding: Finding, age_ns: int, now_ns: int) -> list[PendingEvent]:
    """Return the Events that say how long a finding has lasted, on the node and its culprit."""
    text = event_texts.reminder(finding, age_ns)
    found = [PendingEvent(events.ANOMALY_CONTINUES, text, now_ns)]
    if (pod := culprit(finding)) is not None:
        note = event_texts.on_pod(finding, text)
        identity = pod.namespace, pod.name, pod.uid
        found.append(PendingEvent(events.ANOMALY_CONTINUES, note, now_ns, identity))
    return found


def culprit(finding: Finding) -> Pod | None:
    """Return the pod that certainly causes the finding: measured, and over half of the total.

    No pod does if a subject that is no pod explains more.
    """
    first = finding.foremost
    if not isinstance(first, Pod):
        return None
    certain = first.confidence is Confidence.MEASURED and first.share_percent >= DOMINANT_PERCENT
    return first if certain and first.namespace and first.name else None


def _opening_reason(finding: Finding) -> events.EventReason:
    cross_node = finding.scope is FindingScope.CROSS_NODE
    return events.CROSS_NODE_OUTLIER if cross_node else events.ANOMALY_DETECTED
