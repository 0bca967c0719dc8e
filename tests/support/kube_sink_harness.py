"""The whole Kubernetes sink with its thread, beside an API that is held in memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from reveal_analyzer.sinks.kube.sink import KubeSink, Telemetry
from reveal_analyzer.telemetry.snapshot import NodeSnapshot, Snapshot
from reveal_contract.finding import FindingUpdate
from reveal_contract.settings import AnalyzerSettings
from support.fake_kube import FakeKube
from support.polling import becomes_true
from support.report_store_harness import ALL


class SinkHarness:
    """Reports of the profile "p", of the node "n1"."""

    def __init__(
        self,
        folder: Path | None = None,
        api: FakeKube | None = None,
        telemetry: Telemetry | None = None,
        **other: Any,
    ) -> None:
        self.api = api or FakeKube()
        given: dict[str, Any] = {"profile": "p", "publish": "kubernetes", **other}
        self.sink = KubeSink(AnalyzerSettings(**given), self.api, "pod-0", folder, telemetry)
        self.observe()

    def observe(self, **other: Any) -> None:
        now = time.monotonic()
        given: dict[str, Any] = {
            "connected": True, "shards": ALL, "nodes": {"n1": NodeSnapshot(now, 0.0)}, **other,
        }  # fmt: skip
        self.sink.observe(Snapshot(time_s=now, **given))

    def update(self, *updates: FindingUpdate) -> None:
        for update in updates:
            self.sink.write(update)

    def until(self, done: Callable[[], object]) -> None:
        in_time = becomes_true(done, 20)
        assert in_time, (self.api.calls[-9:], self.sink.counts())

    def idle(self) -> bool:
        return self.sink.counts()["waiting"] == 0

    @property
    def state(self) -> str:
        return str(self.api.reports["p-n1-cpu-1"].get("status", {}).get("state"))
