"""The Kubernetes sink of a profile and node of its own, on a real API server."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from cluster.plane import ControlPlane
from reveal_analyzer.sinks.kube.api import connect
from reveal_analyzer.sinks.kube.sink import KubeSink
from reveal_analyzer.telemetry.snapshot import NodeSnapshot, Snapshot
from reveal_contract.finding import FindingUpdate
from reveal_contract.kube import names
from reveal_contract.settings import AnalyzerSettings
from support.api_server import Kube, unique, wait_for
from support.report_store_harness import ALL

DEFINITIONS = tuple(sorted((Path(__file__).parents[2] / "crds").glob("*.yaml")))
EVENTS = "events.k8s.io/v1"
Object = dict[str, Any]


class ApiServerSink:
    """A sink of a profile of its own, on nodes of its own."""

    def __init__(self, plane: ControlPlane, kube: Kube, folder: Path, **settings: Any) -> None:
        self.kube, self.plane, self.folder = kube, plane, folder
        self.profile, self.node = unique("p"), unique("n")
        self.settings: Object = {"profile": self.profile, "publish": "kubernetes", **settings}
        kube.create({
            "apiVersion": names.API_VERSION, "kind": names.PROFILE_KIND,
            "metadata": {"name": self.profile}, "spec": {},
        })  # fmt: skip
        self.sink = self.start()

    def start(self) -> KubeSink:
        """Another sink of the same profile and folder."""
        settings = AnalyzerSettings(**self.settings)
        self.sink = KubeSink(settings, connect(self.plane.kubeconfig), "pod-0", self.folder)
        self.observe()
        return self.sink

    def observe(self) -> None:
        now = time.monotonic()
        nodes = {self.node: NodeSnapshot(now, 0.0)}
        self.sink.observe(Snapshot(now, connected=True, shards=ALL, nodes=nodes))

    def update(self, *updates: FindingUpdate) -> None:
        for item in updates:
            self.sink.write(replace(item, finding=replace(item.finding, node_name=self.node)))

    def idle(self, seconds: float = 20) -> None:
        wait_for(lambda: self.sink.counts()["waiting"] == 0, seconds, "all is delivered")

    @property
    def reports(self) -> list[Object]:
        selector = f"{names.LABEL_PROFILE}={self.profile}"
        return self.kube.items(names.API_VERSION, names.REPORT_KIND, labels=selector)

    @property
    def events(self) -> list[Object]:
        found = self.kube.items(EVENTS, "Event", "default")
        about = [item for item in found if item["regarding"].get("name") == self.node]
        return sorted(about, key=lambda item: (str(item["eventTime"]), str(item["reason"])))

    def reasons(self) -> list[str]:
        return [str(event["reason"]) for event in self.events]
