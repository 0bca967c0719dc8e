"""Read findings back, from objects of the API and from rows: the edge where text becomes typed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from reveal_contract.costs import Cost, PodCost, is_price
from reveal_contract.finding import (
    Confidence,
    DelayedJob,
    Evidence,
    EvidenceRef,
    Finding,
    FindingKind,
    FindingScope,
    Hypothesis,
    Impact,
    JobLoss,
    Method,
    Peers,
    Pod,
    Resolution,
    Severity,
    State,
    Subject,
)
from reveal_contract.kube.anomaly_report import Columns, Report, ReportIdentity, Windows
from reveal_contract.kube.names import LABEL_SEVERITY
from reveal_contract.metric import Subsystem
from reveal_contract.verification import Effect, Verdict, Verification

_REQUIRED_OF_STATUS = {"state", "severity", "subsystem"}
_KNOWN = {
    "state", "severity", "subsystem", "subsystems", "lastSeenTime", "resolvedTime",
    "resolution", "claim", "hypothesis", "methods", "evidence", "pods", "subjects", "victims",
    "peers", "impact", "scorePercent", "confidencePercent", "notes", "cause", "agree", "podNames",
    "shareMetric", "lostTime", "delayedJob", "cost", "podCosts", "verification", "evidenceRef",
    "windows", "profileGeneration",
}  # fmt: skip

Row = Mapping[str, Any]


def has_status(found: Row) -> bool:
    """Whether the object has the fields that every written status has."""
    status = found.get("status")
    return isinstance(status, dict) and status.keys() >= _REQUIRED_OF_STATUS


def parse_report(found: Row) -> Report | None:
    """Return the report that the API has, None for an object that this version cannot read.

    A report without a status is open and has the severity of its label: its writer died between
    creating the object and writing the status.
    """
    try:
        identity = _identity(found["spec"])
        if has_status(found):
            return _with_status(found["metadata"]["name"], identity, found["status"])
        labels = found["metadata"].get("labels") or {}
        return Report(found["metadata"]["name"], identity, _bare_finding(identity, labels))
    except (KeyError, ValueError, TypeError, AttributeError):
        return None


def parse_row(row: Row) -> Finding | None:
    """Return the finding of a row of ``findings.jsonl``; None where it is not such a row."""
    try:
        identity = _identity({**row, "profileRef": {"name": ""}, "findingID": row["id"]})
        return _finding(identity, row)
    except (KeyError, ValueError, TypeError, AttributeError):
        return None


def _identity(spec: Row) -> ReportIdentity:
    return ReportIdentity(
        profile=str(spec["profileRef"]["name"]),
        node=str(spec["nodeName"]),
        finding_id=str(spec["findingID"]),
        scope=FindingScope(spec["scope"]),
        kind=FindingKind(spec["kind"]),
        subsystem=Subsystem(spec["subsystem"]),
        first_observed_ns=_ns(spec["firstSeenTime"]),
    )


def _bare_finding(identity: ReportIdentity, labels: Row) -> Finding:
    severity = labels.get(LABEL_SEVERITY)
    return Finding(
        id=identity.finding_id,
        node_name=identity.node,
        subsystem=identity.subsystem,
        severity=Severity(severity) if severity in list(Severity) else Severity.LOW,
        state=State.OPEN,
        first_observed_ns=identity.first_observed_ns,
        last_observed_ns=identity.first_observed_ns,
        claim="",
        scope=identity.scope,
        kind=identity.kind,
    )


def _with_status(name: str, identity: ReportIdentity, status: Row) -> Report:
    windows = status.get("windows")
    return Report(
        name=name,
        identity=identity,
        finding=_finding(identity, status),
        columns=Columns(
            cause=status.get("cause", ""),
            agree=status.get("agree", ""),
            pod_names=status.get("podNames", ""),
        ),
        windows=_windows(windows) if windows else None,
        generation=status.get("profileGeneration"),
        extra={key: value for key, value in status.items() if key not in _KNOWN},
    )


def _finding(identity: ReportIdentity, status: Row) -> Finding:
    hypothesis, peers, impact = (status.get(key) for key in ("hypothesis", "peers", "impact"))
    ref, delayed, cost = (status.get(key) for key in ("evidenceRef", "delayedJob", "cost"))
    resolved, verified = status.get("resolvedTime"), status.get("verification")
    last_time = status.get("lastSeenTime")
    return Finding(
        id=identity.finding_id,
        node_name=identity.node,
        subsystem=Subsystem(status["subsystem"]),
        severity=Severity(status["severity"]),
        state=State(status["state"]),
        first_observed_ns=identity.first_observed_ns,
        last_observed_ns=_ns(last_time) if last_time else identity.first_observed_ns,
        claim=status.get("claim", ""),
        scope=identity.scope,
        subsystems=tuple(Subsystem(name) for name in status.get("subsystems", ())),
        hypothesis=_hypothesis(hypothesis) if hypothesis else None,
        methods=tuple(map(_method, status.get("methods", ()))),
        evidence=tuple(map(_evidence, status.get("evidence", ()))),
        pods=tuple(map(_pod, status.get("pods", ()))),
        subjects=tuple(map(_subject, status.get("subjects", ()))),
        score_percent=status.get("scorePercent", 0),
        confidence_percent=status.get("confidencePercent", 0),
        resolved_ns=_ns(resolved) if resolved else None,
        notes=tuple(status.get("notes", ())),
        kind=identity.kind,
        peers=_peers(peers) if peers else None,
        impact=_impact(impact) if impact else None,
        victims=tuple(status.get("victims", ())),
        resolution=Resolution(status.get("resolution", "")),
        share_metric=status.get("shareMetric", ""),
        lost_time=tuple(map(_job_loss, status.get("lostTime", ()))),
        evidence_ref=EvidenceRef(ref["store"], ref["name"]) if ref else None,
        delayed_job=_delayed_job(delayed) if delayed else None,
        cost=_cost(cost) if cost else None,
        pod_costs=tuple(map(_pod_cost, status.get("podCosts", ()))),
        verification=_verification(verified) if verified else None,
    )


def _windows(row: Row) -> Windows:
    return Windows(row["count"], _ns(row["firstTime"]), _ns(row["lastTime"]))


def _hypothesis(row: Row) -> Hypothesis:
    return Hypothesis(row["name"], row["confidencePercent"], row.get("remediation", ""))


def _method(row: Row) -> Method:
    return Method(row["name"], row["agrees"], row.get("scorePercent", 0))


def _evidence(row: Row) -> Evidence:
    return Evidence(
        metric=row["metric"],
        feature=row.get("feature", ""),
        instance=row.get("instance", ""),
        value=row["value"],
        baseline=row.get("baseline", ""),
        unit=row.get("unit", ""),
        direction=row.get("direction", ""),
        known_as=row.get("knownAs", ""),
    )


def _pod(row: Row) -> Pod:
    return Pod(
        namespace=row["namespace"],
        name=row["name"],
        uid=row.get("uid", ""),
        container=row.get("container", ""),
        share_percent=row.get("sharePercent", 0),
        change_percent=row.get("changePercent", 0),
        confidence=Confidence(row.get("confidence", Confidence.INFERRED)),
    )


def _subject(row: Row) -> Subject:
    return Subject(
        kind=row["kind"],
        name=row["name"],
        share_percent=row.get("sharePercent", 0),
        change_percent=row.get("changePercent", 0),
        confidence=Confidence(row.get("confidence", Confidence.INFERRED)),
    )


def _peers(row: Row) -> Peers:
    return Peers(row["compared"], row.get("median", ""), row.get("value", ""))


def _job_loss(row: Row) -> JobLoss:
    return JobLoss(row["subject"], float(row["lostPercent"]), row.get("windowSeconds", 0))


def _delayed_job(row: Row) -> DelayedJob:
    slowdown = row["slowdownPercent"]
    return DelayedJob(
        row["name"],
        row.get("ranks", 0),
        float(slowdown),
        float(row.get("lowPercent", slowdown)),
        float(row.get("highPercent", slowdown)),
    )


def _cost(row: Row) -> Cost:
    hours = row["lostGPUHours"]
    return Cost(
        row.get("gpus", 0),
        float(row.get("lostGPUs", 0)),
        float(hours),
        float(row.get("lowGPUHours", hours)),
        float(row.get("highGPUHours", hours)),
        price if is_price(price := row.get("price", "")) else "",
    )


def _pod_cost(row: Row) -> PodCost:
    return PodCost(row["name"], float(row["lostGPUHours"]))


def _verification(row: Row) -> Verification:
    effect = None
    if "effectPercent" in row:
        percent = float(row["effectPercent"])
        low, high = (float(row.get(key, percent)) for key in ("lowPercent", "highPercent"))
        effect = Effect(percent, low, high)
    time_ns = _ns(row["time"]) if "time" in row else 0
    verdict = Verdict(row["verdict"])
    return Verification(verdict, row["change"], row.get("subject", ""), time_ns, effect)


def _impact(row: Row) -> Impact:
    slowdown = row["slowdownPercent"]
    return Impact(
        subject=row["subject"],
        slowdown_percent=float(slowdown),
        low_percent=float(row.get("lowPercent", slowdown)),
        high_percent=float(row.get("highPercent", slowdown)),
        period_ms=float(row.get("periodMilliseconds", 0)),
        baseline_ms=float(row.get("usualMilliseconds", 0)),
        since_ns=_ns(row["since"]) if "since" in row else 0,
        window_s=row.get("windowSeconds", 0),
        channel=row.get("channel", ""),
        confidence=row.get("confidencePercent", 0),
    )


def _ns(text: str) -> int:
    """Return nanoseconds since the epoch, in whole milliseconds as reports are written."""
    return round(datetime.fromisoformat(text).timestamp() * 1000) * 1_000_000
