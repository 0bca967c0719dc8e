"""Findings and the health of nodes as messages of OTLP/HTTP in its JSON encoding: pure.

OpenTelemetry Protocol specification 1.x, "OTLP/HTTP" and "JSON Protobuf Encoding": keys are
lowerCamelCase, enums are numbers, and 64-bit integers are texts.  Semantic conventions: ``host``,
``k8s.node``, ``hw.status`` (hardware metrics).  Attributes of our own begin with ``reveal.``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reveal_contract import VERSION
from reveal_contract.finding import Finding, FindingChange, FindingUpdate, Pod, Severity, State
from reveal_contract.metric import Subsystem

Json = dict[str, Any]

_SCOPE: Json = {"name": "reveal", "version": VERSION}
_CUMULATIVE = 2  # AGGREGATION_TEMPORALITY_CUMULATIVE
# SeverityNumber: INFO, WARN, ERROR, FATAL
_SEVERITIES = {
    Severity.LOW: (9, "INFO"),
    Severity.MEDIUM: (13, "WARN"),
    Severity.HIGH: (17, "ERROR"),
    Severity.CRITICAL: (21, "FATAL"),
}
_HARDWARE = {
    Subsystem.CPU: "cpu",
    Subsystem.GPU: "gpu",
    Subsystem.MEMORY: "memory",
    Subsystem.NETWORK: "network",
    Subsystem.STORAGE: "physical_disk",
}
_STATES = ("ok", "degraded")


def log_record(update: FindingUpdate, profile: str, observed_ns: int) -> Json:
    """Return a change of a finding; its resource is another part of the message."""
    finding = update.finding
    is_over = finding.state is State.RESOLVED
    number, text = _SEVERITIES[Severity.LOW if is_over else finding.severity]
    return {
        "timeUnixNano": str(_time_ns(update)),
        "observedTimeUnixNano": str(observed_ns),
        "severityNumber": number,
        "severityText": text,
        "eventName": f"reveal.finding.{update.change.value.lower()}",
        "body": {"stringValue": finding.claim},
        "attributes": attributes(_attributes(finding, profile)),
    }


def logs_message(records: Iterable[tuple[str, Json]]) -> Json:
    """Return the message to ``/v1/logs`` for records, each with the name of its node."""
    by_node: dict[str, list[Json]] = {}
    for node, record in records:
        by_node.setdefault(node, []).append(record)
    return {
        "resourceLogs": [
            {"resource": _resource(node), "scopeLogs": [{"scope": _SCOPE, "logRecords": own}]}
            for node, own in by_node.items()
        ]
    }


def status_message(degraded: Mapping[str, Iterable[Subsystem]], since_ns: int, now_ns: int) -> Json:
    """Return the message to ``/v1/metrics``: ``hw.status`` of all nodes.

    ``degraded`` has the watched nodes, each with the subsystems that have an open finding.
    """
    return {
        "resourceMetrics": [
            {
                "resource": _resource(node),
                "scopeMetrics": [
                    {"scope": _SCOPE, "metrics": [_status(node, set(bad), since_ns, now_ns)]}
                ],
            }
            for node, bad in degraded.items()
        ]
    }


def attributes(values: Mapping[str, object]) -> list[Json]:
    """Return attributes; empty texts and lists, and None, are left out."""
    return [
        {"key": key, "value": _value(value)}
        for key, value in values.items()
        if value is not None and value not in ("", [])
    ]


def _status(node: str, bad: set[Subsystem], since_ns: int, now_ns: int) -> Json:
    points = [
        {
            "attributes": attributes(
                {"hw.id": f"{node}/{kind}", "hw.type": kind, "hw.state": state}
            ),
            "startTimeUnixNano": str(since_ns),
            "timeUnixNano": str(now_ns),
            "asInt": str(int((subsystem in bad) == (state == "degraded"))),
        }
        for subsystem, kind in _HARDWARE.items()
        for state in _STATES
    ]
    return {
        "name": "hw.status",
        "unit": "1",
        "description": "Whether a part of the node has an open finding: degraded, or ok",
        "sum": {
            "aggregationTemporality": _CUMULATIVE,
            "isMonotonic": False,
            "dataPoints": points,
        },
    }


def _attributes(finding: Finding, profile: str) -> dict[str, object]:
    """Return what people route and filter by."""
    foremost = finding.foremost
    pod = foremost if isinstance(foremost, Pod) else None
    impact = finding.impact
    lost = finding.lost_time[0] if finding.lost_time else None
    slowdown = impact.slowdown_percent if impact else lost.slowdown_percent if lost else None
    return {
        "reveal.profile": profile,
        "reveal.finding.id": finding.id,
        "reveal.finding.state": finding.state.value,
        "reveal.finding.resolution": finding.resolution.value,
        "reveal.finding.severity": finding.severity.value,
        "reveal.finding.kind": finding.kind.value,
        "reveal.finding.scope": finding.scope.value,
        "reveal.finding.subsystem": finding.subsystem.value,
        "reveal.finding.cause": finding.hypothesis.name if finding.hypothesis else "",
        "reveal.finding.remediation": finding.hypothesis.remediation if finding.hypothesis else "",
        "reveal.finding.confidence_percent": finding.confidence_percent,
        "reveal.culprit": _name(foremost),
        "reveal.victims": list(finding.victims),
        "reveal.slowdown_percent": slowdown,
        "reveal.affected": impact.subject if impact else lost.subject if lost else "",
        "k8s.namespace.name": pod.namespace if pod else "",
        "k8s.pod.name": pod.name if pod else "",
        "k8s.pod.uid": pod.uid if pod else "",
    }


def _name(foremost: object) -> str:
    if isinstance(foremost, Pod):
        return f"{foremost.namespace}/{foremost.name}"
    return str(getattr(foremost, "name", ""))


def _time_ns(update: FindingUpdate) -> int:
    """Return when a change happened, by the clock of the node."""
    finding = update.finding
    if update.change is FindingChange.OPENED:
        return finding.first_observed_ns
    return finding.resolved_ns or finding.last_observed_ns


def _resource(node: str) -> Json:
    names = {"service.name": "reveal", "host.name": node, "k8s.node.name": node}
    return {"attributes": attributes(names)}


def _value(value: object) -> Json:
    """Return an AnyValue."""
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return {"arrayValue": {"values": [_value(each) for each in value]}}
    return {"stringValue": str(value)}
