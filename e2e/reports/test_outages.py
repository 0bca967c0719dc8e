"""The Kubernetes sink when the API server dies, and before our kinds are known there."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from reveal_analyzer.sinks.kube import backoff
from reveal_analyzer.sinks.kube import sink as loop
from reveal_analyzer.sinks.kube.api import connect
from reveal_analyzer.sinks.kube.sink import KubeSink
from reveal_analyzer.telemetry.snapshot import Snapshot
from reveal_contract.finding import Severity
from reveal_contract.kube import names
from reveal_contract.settings import AnalyzerSettings
from support.api_server import Kube, Launcher, wait_for
from support.api_server_sink import ALL, DEFINITIONS, ApiServerSink
from support.finding_factory import changed, opened, resolved


@pytest.fixture(autouse=True)
def _hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backoff, "LONGEST_S", 0.3)
    monkeypatch.setattr(loop, "ROUND_SECONDS", 0.05)


def test_a_restarted_api_server_gets_each_update_once(
    launch_control_plane: Launcher, tmp_path: Path
) -> None:
    plane = launch_control_plane(controllers=False)
    kube = Kube(plane.kubeconfig)
    kube.install(*DEFINITIONS)
    bench = ApiServerSink(plane, kube, tmp_path)
    bench.update(opened())
    bench.idle()
    plane.kill()
    bench.update(changed(severity=Severity.HIGH), opened("gpu-1"), resolved(severity=Severity.HIGH))
    wait_for(lambda: bench.sink.counts()["up"] == 0, 20, "it is seen to be away")
    wait_for((tmp_path / "reports.spool").exists, 5, "the spool")
    bench.sink.close()  # the pod is restarted meanwhile
    bench.start()
    plane.resume()
    bench.idle(30)
    states = {report["spec"]["findingID"]: report["status"]["state"] for report in bench.reports}
    assert states == {"cpu-1": "Resolved", "gpu-1": "Open"}
    reasons = ["AnomalyDetected", "AnomalyDetected", "AnomalyEscalated", "AnomalyResolved"]
    assert sorted(bench.reasons()) == reasons
    assert not any("series" in event for event in bench.events)
    wait_for(lambda: not (tmp_path / "reports.spool").exists(), 5, "nothing waits on disk")
    bench.sink.close()


def test_the_sink_waits_for_a_missing_definition(
    launch_control_plane: Launcher, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    plane = launch_control_plane(controllers=False)
    kube = Kube(plane.kubeconfig)
    settings = AnalyzerSettings(profile="p", publish="kubernetes")
    sink = KubeSink(settings, connect(plane.kubeconfig), "pod-0")
    sink.observe(Snapshot(time.monotonic(), connected=True, shards=ALL))
    sink.write(opened())
    wait_for(lambda: "the Kubernetes API refuses" in caplog.text, 20, "it is said")
    kube.install(*DEFINITIONS)
    kube.create({
        "apiVersion": names.API_VERSION, "kind": names.PROFILE_KIND, "metadata": {"name": "p"},
        "spec": {},
    })  # fmt: skip
    wait_for(lambda: sink.counts()["waiting"] == 0, 20, "it is delivered")
    assert len(kube.items(names.API_VERSION, names.REPORT_KIND)) == 1
    sink.close()
