"""A real collector and a real analyzer against a real API server, and what they say."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cluster.plane import ControlPlane
from reveal_contract.finding import rfc3339
from reveal_contract.kube import names
from reveal_contract.settings import AnalyzerSettings
from support.api_server import Kube, unique
from support.component_processes import Process, answer, free_port, running

DEFINITIONS = tuple(sorted((Path(__file__).parents[2] / "crds").glob("*.yaml")))
WARMUP_S = 45
EARLY_NS = 2_000_000_000
Object = dict[str, Any]


@dataclass
class ReportPipeline:
    """A collector and an analyzer of a profile of their own, and what they say."""

    kube: Kube
    plane: ControlPlane
    folder: Path
    profile: str
    node: str
    port: int
    redis: str

    @property
    def telemetry(self) -> Object:
        found = self.kube.get(names.API_VERSION, names.PROFILE_KIND, self.profile)
        status: Object = (found or {}).get("status", {}).get("telemetry", {})
        return status

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
        return [item for item in found if item.get("related", {}).get("name") == name]

    @property
    def rows(self) -> list[Object]:
        lines = (self.folder / "findings.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def metric(self, name: str) -> float:
        """The sum of a metric's series; ``name`` may have labels."""
        text = answer(self.port, "/metrics")[1]
        rows = re.findall(rf"^{re.escape(name)}(?:{{[^}}]*}})? (\S+)$", text, re.MULTILINE)
        return sum(map(float, rows))

    @contextmanager
    def collecting(self) -> Iterator[Process]:
        flags = ["--redis-url", self.redis, "--node", self.node, "--profile", self.profile]
        with running("reveal_collector", self.folder, *flags) as process:
            yield process

    @contextmanager
    def analyzing(self, port: int = 0) -> Iterator[Process]:
        """An analyzer; ``port`` for its metrics, where it is not the first."""
        run = self.folder / f"run-{port}"
        run.mkdir()
        settings = AnalyzerSettings(
            profile=self.profile, warmup_seconds=WARMUP_S, metrics_port=port or self.port,
            publish="kubernetes",
        )  # fmt: skip
        (run / "analyzer.json").write_text(settings.to_json())
        flags = [
            "--redis", self.redis, "--settings", str(run / "analyzer.json"),
            "--kubeconfig", str(self.plane.kubeconfig), "--run-folder", str(run),
            "--jsonl", str(self.folder / "findings.jsonl"),
        ]  # fmt: skip
        with running("reveal_analyzer", self.folder, *flags) as process:
            yield process


def pipeline_of(plane: ControlPlane, kube: Kube, redis: Path, folder: Path) -> ReportPipeline:
    """A profile and a node of its own; nothing runs yet."""
    kube.install(*DEFINITIONS)
    pipeline = ReportPipeline(
        kube, plane, folder, unique("e2e"), unique("node"), free_port(), f"unix://{redis}"
    )
    kube.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": pipeline.node}})
    kube.create({
        "apiVersion": names.API_VERSION, "kind": names.PROFILE_KIND,
        "metadata": {"name": pipeline.profile}, "spec": {},
    })  # fmt: skip
    return pipeline


def of_the_fault(watching: ReportPipeline, subsystem: str, began_ns: int) -> Object:
    """Return the single report of what began with the fault; others are the host's own troubles.

    Raises ``AssertionError`` with all reports while there is none, and when there are several.
    """
    since = rfc3339(began_ns - EARLY_NS)
    written = [report for report in watching.reports if report.get("status")]
    found = [
        report for report in written
        if report["spec"]["firstSeenTime"] >= since and report["spec"]["subsystem"] == subsystem
        and report["spec"]["kind"] == "Anomaly"
    ]  # fmt: skip
    assert len(found) == 1, (
        since,
        subsystem,
        watching.telemetry,
        [_line(item) for item in written],
    )
    return found[0]


def _line(report: Object) -> str:
    spec, status = report["spec"], report["status"]
    return f"{spec['firstSeenTime']} {spec['subsystem']} {spec['kind']} {status['claim']}"


def state(watching: ReportPipeline, name: str) -> str:
    return str(watching.report(name)["status"]["state"])
