"""A real fault on this host, by real processes, becomes one AnomalyReport and one Event.

Collector, Redis and analyzer run as in a pod, against the API server of the session; the fault is
one of ``reveal demo``.  What the API has, the JSON rows and the metrics say the same.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cluster.plane import ControlPlane
from controlplane import Kube, unique, wait_for
from kubectl import kubectl
from processes import answer, free_port, running
from reveal_cli.faults import find, sweep
from reveal_cli.workloads import Workload
from reveal_contract import kubernetes as names
from reveal_contract.finding import rfc3339
from reveal_contract.settings import AnalyzerSettings

CRDS = tuple(sorted((Path(__file__).parents[2] / "crds").glob("*.yaml")))
FAULT, WARMUP_S, FAULT_S = "cpu_contend", 45, 20.0
EARLY_NS = 2_000_000_000
Object = dict[str, Any]


@dataclass
class Watching:
    """A collector and an analyzer of a profile of their own, and what they say."""

    kube: Kube
    plane: ControlPlane
    folder: Path
    profile: str
    node: str
    port: int

    @property
    def telemetry(self) -> Object:
        found = self.kube.get(names.API_VERSION, names.PROFILE_KIND, self.profile)
        told: Object = (found or {}).get("status", {}).get("telemetry", {})
        return told

    @property
    def reports(self) -> list[Object]:
        selector = f"{names.LABEL_PROFILE}={self.profile}"
        return self.kube.items(names.API_VERSION, names.REPORT_KIND, labels=selector)

    def report(self, name: str) -> Object:
        found = self.kube.get(names.API_VERSION, names.REPORT_KIND, name)
        assert found is not None
        return found

    def events(self, name: str) -> list[Object]:
        """Those that are related to a report."""
        found = self.kube.items("events.k8s.io/v1", "Event")
        return [one for one in found if one.get("related", {}).get("name") == name]

    @property
    def rows(self) -> list[Object]:
        lines = (self.folder / "findings.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def metric(self, name: str) -> float:
        """The sum of a metric's series; ``name`` may have labels."""
        text = answer(self.port, "/metrics")[1]
        rows = re.findall(rf"^{re.escape(name)}(?:{{[^}}]*}})? (\S+)$", text, re.MULTILINE)
        return sum(map(float, rows))


@pytest.fixture
def watching(
    control_plane: ControlPlane, kube: Kube, redis_server: Path, tmp_path: Path
) -> Iterator[Watching]:
    kube.install(*CRDS)
    made = Watching(kube, control_plane, tmp_path, unique("e2e"), unique("node"), free_port())
    kube.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": made.node}})
    kube.create({
        "apiVersion": names.API_VERSION, "kind": names.PROFILE_KIND,
        "metadata": {"name": made.profile}, "spec": {},
    })  # fmt: skip
    redis = f"unix://{redis_server}"
    settings = AnalyzerSettings(
        profile=made.profile, warmup_seconds=WARMUP_S, metrics_port=made.port, report="kubernetes"
    )
    (tmp_path / "analyzer.json").write_text(settings.to_json())
    (tmp_path / "run").mkdir()
    with ExitStack() as stack:
        stack.enter_context(running(
            "reveal_analyzer", tmp_path, "--redis", redis, "--settings",
            str(tmp_path / "analyzer.json"), "--kubeconfig", str(control_plane.kubeconfig),
            "--jsonl", str(tmp_path / "findings.jsonl"), "--run-folder", str(tmp_path / "run"),
        ))  # fmt: skip
        stack.enter_context(running(
            "reveal_collector", tmp_path, "--redis-url", redis, "--node", made.node,
            "--profile", made.profile,
        ))  # fmt: skip
        yield made


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Workload]:
    sweep()
    with Workload("train", tmp_path) as running_job:
        yield running_job


@pytest.mark.timeout(400)
def test_a_fault_is_one_report_and_one_event_and_resolves_itself(
    job: Workload, watching: Watching
) -> None:
    fault = find(FAULT)
    if why := fault.why_not(job.stage):
        pytest.skip(f"{FAULT} cannot be had here: {why}")
    wait_for(lambda: watching.telemetry.get("nodesReporting") == 1, 90, "the node reports")
    wait_for(lambda: watching.telemetry.get("nodesLearning") == 0, 150, "the node is learned")
    assert watching.telemetry["streamReachable"] is True
    with fault.on(job.stage):
        began_ns = time.time_ns()
        made = wait_for(lambda: _of_the_fault(watching, began_ns), 40, "a report of the fault")
        seconds = (time.time_ns() - began_ns) / 1e9
        name = str(made["metadata"]["name"])
        listed = kubectl(watching.plane, "get", "anomalyreports")
        assert name in listed
        print(f"\n{seconds:.1f} s from the fault to its report:\n{listed}")
        wait_for(lambda: watching.events(name), 5, "an Event of it")
        time.sleep(max(0.0, FAULT_S - seconds))
    wait_for(lambda: _state(watching, name) == "Resolved", 60, "it resolves itself")
    wait_for(lambda: len(watching.events(name)) == 2, 5, "an Event of that")
    _agree(watching, name, began_ns)


def _of_the_fault(watching: Watching, began_ns: int) -> Object | None:
    """The report of what began with the fault; others are the host's own troubles."""
    since = rfc3339(began_ns - EARLY_NS)
    found = [
        one for one in watching.reports
        if one["spec"]["firstSeenTime"] >= since and one["spec"]["subsystem"] == "CPU"
        and one["spec"]["kind"] == "Anomaly" and one.get("status")
    ]  # fmt: skip
    assert len(found) <= 1, found
    return found[0] if found else None


def _state(watching: Watching, name: str) -> str:
    return str(watching.report(name)["status"]["state"])


def _agree(watching: Watching, name: str, began_ns: int) -> None:
    made = watching.report(name)
    assert _of_the_fault(watching, began_ns) is not None  # and no second one
    rows = [row for row in watching.rows if row["id"] == made["spec"]["findingID"]]
    last, status = rows[-1], made["status"]
    for key in ("state", "severity", "subsystem", "claim", "scorePercent", "resolvedTime"):
        assert status[key] == last[key], key
    assert {**made["spec"], **status}["nodeName"] == last["nodeName"]
    assert made["spec"]["firstSeenTime"] == rows[0]["firstSeenTime"]
    assert status["evidence"][0]["metric"] == last["evidence"][0]["metric"]
    detected, over = sorted(watching.events(name), key=lambda one: str(one["eventTime"]))
    assert (detected["reason"], over["reason"]) == ("AnomalyDetected", "AnomalyResolved")
    assert rows[0]["claim"] in detected["note"]
    assert "series" not in detected
    found = wait_for(lambda: answer(watching.port, "/metrics")[0] == 200, 10, "metrics")
    assert found
    told = {row["id"] for row in watching.rows}
    assert watching.metric("reveal_findings_total") == len(told)
    assert watching.metric('reveal_report_writes_total{result="created"}') == len(told)
    assert len(watching.reports) == len(told)
    assert watching.metric("reveal_kubernetes_up") == 1
    assert watching.metric("reveal_reports_waiting") == 0
