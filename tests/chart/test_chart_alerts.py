"""Alerts on what slows jobs, run by promtool on made-up series: when they fire, and for whom."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.helm_chart import CHART

ALERTS: list[dict[str, Any]] = yaml.safe_load((CHART / "files" / "alerts.yaml").read_text())[
    "alerts"
]
RULES = {alert["alert"]: alert for alert in ALERTS}


def open_findings(severity: str, kind: str = "Anomaly") -> dict[str, str]:
    labels = f'node="n1", subsystem="CPU", severity="{severity}", kind="{kind}"'
    return {"series": f"reveal_findings_open{{{labels}}}", "values": "1x480"}


def job(subject: str, desired: float, **lost: float) -> list[dict[str, str]]:
    """Series of a subject: seconds a second that it wants, and loses by reason."""
    where = f'node="n1", subject="{subject}", instance="10.0.0.1:9478", job="analyzers"'
    rows = [(f"reveal_subject_desired_seconds_total{{{where}}}", desired)]
    rows += [
        (f'reveal_subject_lost_seconds_total{{{where}, reason="{reason}"}}', amount)
        for reason, amount in lost.items()
    ]
    return [{"series": series, "values": f"0+{15 * amount}x480"} for series, amount in rows]


def assert_fires(
    tmp_path: Path, alert: str, series: list[dict[str, str]], minutes: int, *labels: dict[str, str]
) -> None:
    """Fail unless the alert fires after so many minutes, once for each of ``labels``."""
    if shutil.which("promtool") is None:
        pytest.skip("no promtool: Debian's package prometheus has it")
    rule = {key: value for key, value in RULES[alert].items() if key != "annotations"}
    severity = rule["labels"]
    (tmp_path / "rules.yaml").write_text(
        yaml.safe_dump({"groups": [{"name": "reveal", "rules": [rule]}]})
    )
    expected = [{"exp_labels": {**each, **severity}} for each in labels]
    check = {"eval_time": f"{minutes}m", "alertname": alert, "exp_alerts": expected}
    test = {"interval": "15s", "input_series": series, "alert_rule_test": [check]}
    (tmp_path / "test.yaml").write_text(
        yaml.safe_dump(
            {"rule_files": ["rules.yaml"], "evaluation_interval": "15s", "tests": [test]}
        )
    )
    command = ["promtool", "test", "rules", tmp_path / "test.yaml"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


ON_NODE = {"node": "n1", "subsystem": "CPU"}


@pytest.mark.parametrize(
    ("alert", "severity", "minutes", "fires"),
    [
        ("RevealCriticalFinding", "Critical", 1, True),
        ("RevealHighFinding", "High", 1, True),
        ("RevealHighFinding", "High", 0, False),
        ("RevealHighFinding", "Medium", 20, False),
        ("RevealHighFinding", "Critical", 20, False),
        ("RevealFindingLasts", "Medium", 31, True),
        ("RevealFindingLasts", "Medium", 29, False),
        ("RevealFindingLasts", "Low", 60, False),
    ],
)
def test_a_finding_raises_the_alert_of_its_severity(
    tmp_path: Path, alert: str, severity: str, minutes: int, fires: bool
) -> None:
    labels = [ON_NODE] if fires else []
    assert_fires(tmp_path, alert, [open_findings(severity)], minutes, *labels)


@pytest.mark.parametrize("alert", ["RevealHighFinding", "RevealFindingLasts"])
def test_a_hint_on_the_configuration_raises_no_alert(tmp_path: Path, alert: str) -> None:
    series = [open_findings("High", "Configuration")]
    assert_fires(tmp_path, alert, series, 60)


def test_a_job_that_loses_time_is_named_with_its_namespace_and_the_cause(tmp_path: Path) -> None:
    series = [
        *job("team-a/train-0", 4.0, cpu=1.2, quota=0.1),
        *job("team-b/loader", 1.0, cpu=0.1, storage=0.25),
        *job("/system.slice/build.service", 1.0, quota=0.5),
    ]
    assert_fires(
        tmp_path, "RevealJobLosesTime", series, 20,
        {"node": "n1", "namespace": "team-a", "job": "team-a/train-0", "cause": "cpu"},
        {"node": "n1", "namespace": "team-b", "job": "team-b/loader", "cause": "storage"},
        {"node": "n1", "job": "/system.slice/build.service", "cause": "quota"},
    )  # fmt: skip
    assert_fires(tmp_path, "RevealJobLosesTime", series, 8)


def test_idle_jobs_and_the_rest_of_a_node_raise_no_alert(tmp_path: Path) -> None:
    series = [
        *job("team-a/sidecar", 0.05, cpu=0.04),
        *job("other", 5.0, cpu=4.0),
        *job("team-a/train-0", 4.0, cpu=0.4, storage=0.4, memory=0.4),
    ]
    assert_fires(tmp_path, "RevealJobLosesTime", series, 60)
