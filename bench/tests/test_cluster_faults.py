"""The table of faults on a cluster: a row a run, and how a report is judged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import cluster_faults
from support.fault_run import Row, wrong
from support.faulty_pods import Expected

RIGHT = Row("loss", 3, True, True, True, True, True, 1, 1, 6.5, 12.0, ("said",))
EXPECTED = Expected("node2", "CPU", "CPUQuotaThrottling", "jobs/throttled")


def report(**status: Any) -> dict[str, Any]:
    default_status = {
        "subsystem": "CPU", "hypothesis": {"name": "CPUQuotaThrottling"},
        "pods": [{"namespace": "jobs", "name": "throttled"}, {"namespace": "jobs", "name": "b"}],
    }  # fmt: skip
    return {"spec": {"nodeName": "node2"}, "status": default_status | status}


def test_a_report_is_right_when_it_names_the_pod_first() -> None:
    assert wrong(report(), EXPECTED) == ()
    turned = report(pods=[{"namespace": "jobs", "name": "b"}])
    assert wrong(turned, EXPECTED) == ("pod",)
    assert wrong(report(hypothesis=None, subsystem="Memory"), EXPECTED) == (
        "subsystem", "hypothesis",
    )  # fmt: skip


def test_a_victim_is_no_culprit() -> None:
    lost = Expected("node2", "CPU", "CPUQuotaThrottling", "jobs/rank-1", victim=True)
    assert wrong(report(pods=[], victims=["jobs/rank-0", "jobs/rank-1"]), lost) == ()
    assert wrong(report(victims=["jobs/rank-1"]), lost) == ("pod",)


def test_a_report_without_status_still_has_its_node() -> None:
    bare = {"spec": {"nodeName": "node2"}}
    assert wrong(bare, EXPECTED) == ("subsystem", "pod", "hypothesis")


def test_the_table_counts_what_is_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = tmp_path / "rows.jsonl"
    monkeypatch.setenv("REVEAL_FAULT_ROWS", str(rows))
    never = Row("loss", 3, False, False, False, False, False, 0, 0, None, None, ())
    for row in (RIGHT, RIGHT, never):
        row.save()
    with rows.open("a") as file:
        file.write(json.dumps({"healthy": "idle", "seconds": 90, "findings": 0}) + "\n")
    out = tmp_path / "out.json"
    assert cluster_faults.main([str(rows), "--out", str(out)]) == 0
    table = json.loads(out.read_text())
    assert table["totals"]["runs"] == 3
    assert table["totals"]["reports"] == pytest.approx(2 / 3)
    assert table["totals"]["p95_s"] is None
    printed = capsys.readouterr().out
    assert "| loss | 3 | 2/3 | 2/3 | 2/3 | 2/3 | 2/3 | 0 to 1 | 0 to 1 | 6.5 to inf |" in printed
    assert "| idle | 1 | 1.5 | 0 |" in printed


def test_wrong_fields_are_named() -> None:
    assert RIGHT.wrong == []
    twice = Row("loss", 3, True, True, True, False, True, 2, 2, 6.5, None, ())
    assert twice.wrong == ["pod", "reports", "events", "resolved_s"]
