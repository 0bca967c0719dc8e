"""Which Events a change of a finding is worth: pure.

One on the node for each change that people act on, and a second one on the pod where it surely
comes from there.  A setting that does not hold is a report and no Event: nothing happened.
"""

from __future__ import annotations

from reveal_analyzer.sinks.kube.entry import Said
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

DOMINANT_PERCENT = 50  # of the node's total, by the kernel's own account


def opened(finding: Finding) -> list[Said]:
    """It is told for the first time."""
    if finding.kind is FindingKind.CONFIGURATION:
        return []
    across = finding.scope is FindingScope.CROSS_NODE
    reason = events.CROSS_NODE_OUTLIER if across else events.ANOMALY_DETECTED
    return [Said(reason, _note(finding), finding.last_seen_ns), *of_culprit(finding)]


def of_culprit(finding: Finding) -> list[Said]:
    """The same on the pod that it surely comes from, where there is one and it is known."""
    pod = culprit(finding)
    if pod is None or finding.kind is FindingKind.CONFIGURATION:
        return []
    across = finding.scope is FindingScope.CROSS_NODE
    reason = events.CROSS_NODE_OUTLIER if across else events.ANOMALY_DETECTED
    note = f"On node {finding.node_name}: {_note(finding)}"
    who = pod.namespace, pod.name, pod.uid
    return [Said(reason, note, finding.last_seen_ns, who)]


def changed(finding: Finding, worst: Severity, *, was_open: bool) -> list[Said]:
    """It is told again; ``worst`` is the highest severity it had so far."""
    if finding.kind is FindingKind.CONFIGURATION:
        return []
    if finding.state is State.RESOLVED:
        at_ns = finding.resolved_ns or finding.last_seen_ns
        return [Said(events.ANOMALY_RESOLVED, finding.claim, at_ns)] if was_open else []
    if finding.severity.rank > worst.rank:
        note = f"From {worst} to {_note(finding)}"
        return [Said(events.ANOMALY_ESCALATED, note, finding.last_seen_ns)]
    return []


def culprit(finding: Finding) -> Pod | None:
    """The pod that it surely comes from."""
    if not finding.pods:
        return None
    first = finding.pods[0]
    sure = first.confidence is Confidence.MEASURED and first.share_percent >= DOMINANT_PERCENT
    return first if sure and first.namespace and first.name else None


def _note(finding: Finding) -> str:
    cause = finding.hypothesis
    what = f"{finding.severity}, {finding.subsystem}: {finding.claim}"
    return f"{what} ({cause.name}: {cause.remediation})" if cause else what
