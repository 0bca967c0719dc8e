"""The analyzer as a process: what it loads, what it refuses, what it leaves when it ends."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from reveal_analyzer.fleet.fleet import Fleet
from reveal_analyzer.node import NodeAnalyzer
from reveal_analyzer.sinks.metrics import Metrics
from reveal_analyzer.telemetry.snapshot import Snapshot
from reveal_analyzer.worker import Worker
from reveal_contract.names import SHARDS
from reveal_contract.settings import AnalyzerSettings
from support.component_processes import answer, free_port, running
from support.polling import wait_until
from support.redis_streams import QUICK, Stream, message

_LOADED = """
import sys
from reveal_analyzer.__main__ import build, parser, settings_of
from reveal_analyzer.sinks.kube.sink import sink_of
from reveal_contract.runtime.liveness import LivenessFiles
arguments = parser().parse_args(["--redis", "unix:///nowhere"])
settings = settings_of(arguments, {})
assert sink_of(settings, "me", None, None) is None
build(settings, None, "me", LivenessFiles(None))
print("kubernetes" in sys.modules)
"""


def refused(*flags: str) -> str:
    """What it says when it does not start."""
    done = subprocess.run(
        [sys.executable, "-m", "reveal_analyzer", "--redis", "unix:///nowhere", *flags],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2, done.stderr
    return done.stderr


def test_without_reports_the_client_is_not_even_loaded() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _LOADED], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "False"


def test_a_missing_api_address_is_reported_immediately(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    assert "not in a pod of a cluster; give --kubeconfig FILE" in refused("--report", "kubernetes")
    assert "no access to the Kubernetes API" in refused(
        "--publish", "observe", "--kubeconfig", str(tmp_path / "none")
    )
    assert "needs --publish" in refused("--kubeconfig", str(tmp_path / "none"))


def test_an_unreachable_api_loses_no_slice_and_a_signal_ends_the_process(
    redis_server: Path, tmp_path: Path
) -> None:
    config, port = tmp_path / "kubeconfig", free_port()
    config.write_text(_NOBODY)
    flags = [
        "--redis", f"unix://{redis_server}", "--publish", "kubernetes", "--kubeconfig", str(config),
        "--metrics-port", str(port), "--run-folder", str(tmp_path),
    ]  # fmt: skip
    with running("reveal_analyzer", tmp_path, *flags) as process:
        wait_until(lambda: answer(port, "/readyz")[0] == 200, "it reads its stream")
        wait_until(lambda: "reveal_kubernetes_up 0.0" in answer(port, "/metrics")[1], "it is said")
        assert answer(port, "/healthz")[0] == 200
        began = time.monotonic()
        assert process.end() == 0
        assert time.monotonic() - began < 5
        assert len([item for item in process.messages if "API is unavailable" in item]) <= 2


_NOBODY = """
apiVersion: v1
kind: Config
current-context: c
clusters: [{name: c, cluster: {server: "http://127.0.0.1:9"}}]
users: [{name: u, user: {token: t}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
"""


@pytest.fixture
def worker_and_snapshots(stream: Stream) -> Iterator[tuple[Worker, list[Snapshot]]]:
    """A worker that leads, and its snapshots."""
    found: list[Snapshot] = []
    reader = stream.reader("one", timing=QUICK)
    fleet = Fleet(reader.connection.client, "default", "one")
    settings = AnalyzerSettings()
    worker = Worker(
        reader, lambda node: NodeAnalyzer(node, settings), [], Metrics(), fleet, found.append
    )
    with ExitStack() as stack:
        stack.callback(worker.close)
        yield worker, found


def test_snapshots_are_published_each_second_and_on_shard_changes(
    stream: Stream, worker_and_snapshots: tuple[Worker, list[Snapshot]]
) -> None:
    worker, found = worker_and_snapshots
    stream.send(message("n", 1))
    deadline = time.monotonic() + 45  # only ends a test that hangs
    while not (found and "n" in found[-1].nodes and found[-1].leads):
        assert time.monotonic() < deadline, found[-1:]
        worker.turn()
    last = found[-1]
    assert last.connected
    assert last.shards == frozenset(range(SHARDS)) and last.owns("n")
    assert last.nodes["n"].learning
    assert last.nodes["n"].since_s <= last.nodes["n"].last_slice_s <= last.time_s
    first = next(item for item in found if item.shards)
    assert first.time_s - found[0].time_s < 1  # not a second later
    assert len(found) < 20


def test_a_wrong_clock_of_a_node_is_in_the_snapshot(
    stream: Stream, worker_and_snapshots: tuple[Worker, list[Snapshot]]
) -> None:
    worker, found = worker_and_snapshots
    stream.send(*(message("n", second) for second in range(60)))  # of the year 2023

    def is_degraded() -> bool:
        worker.turn()
        reasons = [each.reason for each in found[-1].degraded] if found else []
        return reasons == ["NodeClockWrong"]

    wait_until(is_degraded, "the clock")
