"""The node condition ``RevealAnomaly``: which profiles and reports put it on a node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reveal_contract.finding import Severity
from reveal_contract.kube.anomaly_report import Report

CONDITION_TYPE = "RevealAnomaly"
# one entry of a strategic merge patch of a node's conditions, which merge by their type
REMOVAL = {"type": CONDITION_TYPE, "$patch": "delete"}
URGENT = (Severity.HIGH, Severity.CRITICAL)


def wants_conditions(spec: Mapping[str, Any]) -> bool:
    """Whether the reports of a profile with this spec put conditions on nodes."""
    reporting = spec.get("reporting") or {}
    return spec.get("mode", "Report") == "Report" and bool(reporting.get("nodeConditions"))


def is_urgent(report: Report) -> bool:
    """Whether a report is reason for the condition: an open anomaly, High or Critical."""
    return report.open and report.anomaly and report.severity in URGENT


def has_condition(node: Mapping[str, Any]) -> bool:
    """Whether a Node has the condition."""
    return reason_of(node) is not None


def reason_of(node: Mapping[str, Any]) -> str | None:
    """Return the reason of a Node's condition; None where it has none."""
    for each in (node.get("status") or {}).get("conditions") or ():
        if each.get("type") == CONDITION_TYPE:
            return str(each.get("reason", ""))
    return None
