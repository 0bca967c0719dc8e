"""Causes that return on a node: which findings count together."""

from __future__ import annotations

from typing import Any

import pytest

from reveal_operator.recurrence import LEAST_FINDINGS, Recurrence, recurrences
from reveal_operator.report_records import ReportRecord, report_of


def record(number: int, node: str = "gpu-07", cause: str = "PacketLoss") -> ReportRecord:
    body: dict[str, Any] = {
        "metadata": {
            "name": f"r{number}", "uid": f"u{number}", "resourceVersion": "1",
            "creationTimestamp": "2026-01-02T03:00:00Z",
        },
        "spec": {
            "profileRef": {"name": "p"}, "nodeName": node, "kind": "Anomaly",
            "firstSeenTime": f"2026-01-02T03:{number:02d}:00.000Z",
        },
        "status": {"state": "Resolved", "cause": cause},
    }  # fmt: skip
    return report_of(body)


def many(count: int, **parts: Any) -> list[ReportRecord]:
    return [record(number, **parts) for number in range(count)]


def test_findings_of_the_same_cause_on_the_same_node_recur() -> None:
    found = recurrences(reversed(many(LEAST_FINDINGS)))
    assert found == (
        Recurrence("gpu-07", "PacketLoss", LEAST_FINDINGS, "2026-01-02T03:00:00.000Z"),
    )


@pytest.mark.parametrize(
    "reports",
    [
        [],
        many(LEAST_FINDINGS - 1),
        [*many(LEAST_FINDINGS - 1), record(30, node="gpu-08")],
        [*many(LEAST_FINDINGS - 1), record(30, cause="CPUContention")],
        many(LEAST_FINDINGS, cause=""),
        many(LEAST_FINDINGS, node=""),
    ],
)
def test_fewer_or_different_findings_do_not_recur(reports: list[ReportRecord]) -> None:
    assert recurrences(reports) == ()


def test_settings_do_not_recur() -> None:
    body = {
        "metadata": {"name": "r", "uid": "u", "resourceVersion": "1"},
        "spec": {"kind": "Configuration", "nodeName": "gpu-07"},
        "status": {"state": "Open", "cause": "IdleHugePages"},
    }
    assert report_of(body).cause == ""


def test_those_with_most_findings_come_first() -> None:
    few, most = many(5, node="a"), many(9, node="b")
    assert [each.node for each in recurrences([*few, *most])] == ["b", "a"]
