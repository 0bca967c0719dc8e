"""A finding as an AnomalyReport: pure; ``docs/reference/api.md`` says what each field is for.

Every text and list has a bound, numbers are whole, and the object is never over ``MAX_BYTES``:
where a finding is larger, its longest lists lose their last entries until it fits.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from reveal_contract.finding import Finding, FindingKind, FindingScope, Severity, State, rfc3339
from reveal_contract.kube.names import (
    ANALYZER_MANAGER,
    API_VERSION,
    APP,
    LABEL_MANAGED_BY,
    LABEL_NAME,
    LABEL_NODE,
    LABEL_PROFILE,
    LABEL_SEVERITY,
    LABEL_STATE,
    LABEL_SUBSYSTEM,
    PROFILE_KIND,
    REPORT_KIND,
    clipped,
    label_value,
    report_name,
)
from reveal_contract.time_units import NS_PER_SECOND

MAX_BYTES = 8192
_SERVER_BYTES = 512  # uid, resourceVersion, creationTimestamp and what else the server adds
_OWNER_BYTES = 256  # an ownerReference

_IDENTITY = ("id", "kind", "nodeName", "scope", "firstSeenTime")  # of a finding's row: the spec
_IDENTIFIED = {
    "profileRef", "nodeName", "findingID", "scope", "kind", "subsystem", "firstSeenTime",
}  # fmt: skip
# of lists: how many entries, and how many stay at first when the report is too large; those that
# say least come first
_LISTS = {
    "notes": (10, 1),
    "victims": (10, 1),
    "subjects": (10, 2),
    "methods": (8, 3),
    "pods": (10, 2),
    "evidence": (10, 3),
    "subsystems": (5, 5),
}
# of texts in bytes, by the path of keys; None is every other one
_TEXTS: dict[str | None, int] = {
    "claim": 512,
    "hypothesis.name": 63,
    "hypothesis.remediation": 512,
    "methods.name": 63,
    "evidence.instance": 253,
    "pods.namespace": 63,
    "pods.name": 253,
    "pods.uid": 64,
    "pods.container": 63,
    "subjects.kind": 63,
    "subjects.name": 253,
    "victims": 317,
    "notes": 256,
    "impact.subject": 317,
    None: 128,
}
_REQUIRED = ("metric", "value", "name", "namespace", "kind", "subject", "slowdownPercent")
_CAUSE_BYTES = 128
_SHOWN_PODS = 3
_POD_NAMES_BYTES = 512


@dataclass(frozen=True, slots=True)
class Owner:
    """The profile that a report belongs to, as the API knows it."""

    name: str
    uid: str
    generation: int


@dataclass(frozen=True, slots=True)
class Report:
    """One AnomalyReport: its name, what never changes and what is known by now."""

    name: str
    spec: dict[str, Any] = field(hash=False)
    status: dict[str, Any] = field(hash=False)

    @property
    def node(self) -> str:
        return str(self.spec["nodeName"])

    @property
    def severity(self) -> Severity:
        return Severity(self.status["severity"])

    @property
    def open(self) -> bool:
        return bool(self.status["state"] == State.OPEN.value)

    @property
    def anomaly(self) -> bool:
        """Whether it is no mere setting."""
        return bool(self.spec["kind"] == FindingKind.ANOMALY.value)

    @property
    def cross_node(self) -> bool:
        return bool(self.spec["scope"] == FindingScope.CROSS_NODE.value)

    @property
    def known_ns(self) -> int:
        """From when it was first seen to when it was last."""
        return _ns(self.status["lastSeenTime"]) - _ns(self.spec["firstSeenTime"])

    @property
    def core(self) -> tuple[str, ...]:
        """What is worth a write at once when it changes."""
        status = self.status
        cause = (status.get("hypothesis") or {}).get("name", "")
        pods = [f"{pod['namespace']}/{pod['name']}" for pod in status.get("pods", ())]
        # who comes first is who it is put down to; the order of the others says little
        named = ",".join([*pods[:1], *sorted(pods[1:])])
        return status["state"], status["severity"], status["subsystem"], cause, named

    def labels(self) -> dict[str, str]:
        """What people select by."""
        return {
            LABEL_NAME: APP,
            LABEL_MANAGED_BY: ANALYZER_MANAGER,
            LABEL_PROFILE: label_value(self.spec["profileRef"]["name"]),
            LABEL_NODE: label_value(self.node),
            LABEL_SUBSYSTEM: self.status["subsystem"],
            LABEL_SEVERITY: self.status["severity"],
            LABEL_STATE: self.status["state"],
        }

    def to_create(self, owner: Owner | None = None) -> dict[str, Any]:
        """The object without its status, which the server takes by the subresource only."""
        metadata: dict[str, Any] = {"name": self.name, "labels": self.labels()}
        if owner is not None:
            metadata["ownerReferences"] = [_reference(owner)]
        return {
            "apiVersion": API_VERSION,
            "kind": REPORT_KIND,
            "metadata": metadata,
            "spec": self.spec,
        }

    def to_apply(self) -> dict[str, Any]:
        """The whole status, for server-side apply: what is left out is removed."""
        return {
            "apiVersion": API_VERSION,
            "kind": REPORT_KIND,
            "metadata": {"name": self.name},
            "status": self.status,
        }

    def resolved(self, note: str, at_ns: int) -> Report:
        """As it is when nobody follows it any more."""
        notes = [*self.status.get("notes", [])[: _LISTS["notes"][0] - 1], note]
        over = {"state": State.RESOLVED.value, "resolvedTime": rfc3339(at_ns), "notes": notes}
        return _fitted(replace(self, status={**self.status, **over}))

    def seen(self, at_ns: int, stride_seconds: int) -> Report:
        """Still there at ``at_ns``."""
        status = {**self.status, "lastSeenTime": rfc3339(at_ns)}
        if windows := status.get("windows"):
            first_ns = _ns(windows["firstTime"])
            status["windows"] = _windows(first_ns, at_ns, stride_seconds)
        return replace(self, status=status)

    def of_severity(self, severity: Severity) -> Report:
        return replace(self, status={**self.status, "severity": severity.value})


def report(finding: Finding, profile: str, generation: int, stride_seconds: int = 1) -> Report:
    """The report that a finding of ``profile`` amounts to; it always fits."""
    row = finding.to_dict()
    spec = {
        "profileRef": {"name": profile},
        "nodeName": row["nodeName"],
        "findingID": row["id"],
        "scope": row["scope"],
        "kind": row["kind"],
        "subsystem": row["subsystem"],
        "firstSeenTime": row["firstSeenTime"],
    }
    status = {key: value for key, value in row.items() if key not in _IDENTITY}
    if finding.state is State.RESOLVED:
        status.setdefault("resolvedTime", row["lastSeenTime"])
    status = {key: _bounded(value, key) for key, value in status.items()}
    status |= _columns(status)
    status["profileGeneration"] = generation
    if finding.kind is FindingKind.ANOMALY:
        status["windows"] = _windows(finding.first_seen_ns, finding.last_seen_ns, stride_seconds)
    status = {key: value for key, value in status.items() if value not in (None, [], "")}
    name = report_name(profile, finding.node_name, finding.id)
    return _fitted(Report(name, spec, status))


def from_object(found: Mapping[str, Any]) -> Report | None:
    """What the API has; None for what is no report.

    One whose writer died before it wrote the status is open, of the severity of its label.
    """
    spec, status, metadata = found.get("spec"), found.get("status"), found["metadata"]
    if not isinstance(spec, dict) or not spec.keys() >= _IDENTIFIED:
        return None
    if not isinstance(status, dict) or not {"state", "severity", "subsystem"} <= status.keys():
        severity = (metadata.get("labels") or {}).get(LABEL_SEVERITY, Severity.LOW.value)
        status = {
            "state": State.OPEN.value,
            "severity": severity if severity in list(Severity) else Severity.LOW.value,
            "subsystem": spec["subsystem"],
            "lastSeenTime": spec["firstSeenTime"],
        }
    return Report(metadata["name"], spec, status)


def _columns(status: Mapping[str, Any]) -> dict[str, str | None]:
    """Fields that are there for people's eyes: ``kubectl get`` can neither count nor choose."""
    methods, pods = status["methods"], status["pods"]
    loudest = status["evidence"][0]["metric"] if status["evidence"] else None
    cause = status["hypothesis"]["name"] if status["hypothesis"] else loudest
    names = [f"{pod['namespace']}/{pod['name']}" for pod in pods]
    more = f"+{len(names) - _SHOWN_PODS}" if len(names) > _SHOWN_PODS else ""
    shown = ",".join([*names[:_SHOWN_PODS], *([more] if more else [])])
    return {
        "cause": clipped(cause, _CAUSE_BYTES) if cause else None,
        "agree": f"{sum(m['agrees'] for m in methods)}/{len(methods)}" if methods else None,
        "podNames": clipped(shown, _POD_NAMES_BYTES) if shown else None,
    }


def _windows(first_ns: int, last_ns: int, stride_seconds: int) -> dict[str, Any]:
    last_ns = max(first_ns, last_ns)
    return {
        "count": max(1, (last_ns - first_ns) // (stride_seconds * NS_PER_SECOND)),
        "firstTime": rfc3339(first_ns),
        "lastTime": rfc3339(last_ns),
    }


def _bounded(value: Any, path: str) -> Any:
    """The value with its texts cut, its lists cut and its percents in their range."""
    if isinstance(value, str):
        return clipped(value, _TEXTS.get(path, _TEXTS[None]))
    if isinstance(value, dict):  # an empty text says nothing, and is no direction
        parts = {key: _bounded(part, f"{path}.{key}") for key, part in value.items()}
        return {key: part for key, part in parts.items() if part != "" or key in _REQUIRED}
    if isinstance(value, list):
        return [_bounded(part, path) for part in value[: _LISTS[path][0]]]
    if isinstance(value, int) and not isinstance(value, bool) and path.endswith("Percent"):
        return max(-100 if path.endswith("changePercent") else 0, min(100, value))
    return value


def _fitted(one: Report) -> Report:
    """The report within ``MAX_BYTES``: first what is most loses its last, down to a few."""
    kept = _size(one.to_create()) + _OWNER_BYTES + _SERVER_BYTES
    status = dict(one.status)
    while kept + _size(status) > MAX_BYTES and (longest := _longest(status)) is not None:
        status[longest] = status[longest][:-1]
        if not status[longest]:
            del status[longest]
    return replace(one, status=status)


def _longest(status: Mapping[str, Any]) -> str | None:
    """The list that takes most of those over their least number, else of those over one entry.

    Where each has one left, the one that says least.
    """
    lists = [name for name in _LISTS if status.get(name)]
    for leasts in ({name: least for name, (_, least) in _LISTS.items()}, dict.fromkeys(_LISTS, 1)):
        over = [name for name in lists if len(status[name]) > leasts[name]]
        if over:
            return max(over, key=lambda name: _size(status[name]))
    return lists[0] if lists else None


def _size(part: Any) -> int:
    """In bytes of JSON, as the API server writes it: with ``<``, ``>`` and ``&`` as six each."""
    text = json.dumps(part, ensure_ascii=False, separators=(",", ":"))
    return len(text.encode(errors="replace")) + 5 * sum(map(text.count, "<>&"))


def _reference(owner: Owner) -> dict[str, Any]:
    return {
        "apiVersion": API_VERSION,
        "kind": PROFILE_KIND,
        "name": owner.name,
        "uid": owner.uid,
        "controller": False,
        "blockOwnerDeletion": False,
    }


def _ns(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000) * 1_000_000
