"""The two processes as a pod runs them: settings, environment, probes, orderly and quick ends."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis

from reveal_contract import names
from reveal_contract.kube.names import NAMESPACE_VARIABLE, NODE_VARIABLE, POD_VARIABLE
from reveal_contract.names import REDIS_VARIABLE
from reveal_contract.runtime.liveness import ALIVE_FILE, READY_FILE
from reveal_contract.settings import AnalyzerSettings, CollectorSettings
from support.component_processes import Process, answer, free_port, running
from support.polling import wait_until
from support.standstill import skipped_seconds

NODE, PROFILE = "node-of-the-pod", "p"
KEY = names.samples_key(PROFILE, names.shard(NODE))
BUFFERED = "reveal_collector_slices_buffered "
COLLECTOR, ANALYZER = "reveal_collector", "reveal_analyzer"
POD = {NODE_VARIABLE: NODE, POD_VARIABLE: "reveal-x", NAMESPACE_VARIABLE: "reveal-system"}


class Pod:
    """A folder with what the kubelet would mount: settings, and a folder to write to."""

    def __init__(self, folder: Path, server: Any) -> None:
        self.folder, self.server = folder, server
        self.run = folder / "run"
        self.run.mkdir()
        self.environment = {**POD, REDIS_VARIABLE: f"unix://{server.socket}"}
        self.port = free_port()

    def settings(self, module: str, **changed: Any) -> Path:
        """As the operator renders them: without node and Redis."""
        whole: CollectorSettings | AnalyzerSettings
        if module == COLLECTOR:
            given = {"include": ("loadavg",), "metrics_port": self.port, **changed}
            whole = CollectorSettings("", "", profile=PROFILE, **given)
        else:
            whole = AnalyzerSettings(profile=PROFILE, metrics_port=self.port, **changed)
        rows = json.loads(whole.to_json())
        kept = {name: value for name, value in rows.items() if name not in ("node", "redisUrl")}
        file = self.folder / f"{module}.json"
        file.write_text(json.dumps(kept))
        return file

    def running(self, module: str, *flags: str, **changed: Any) -> Any:
        settings = str(self.settings(module, **changed))
        return running(
            module, self.folder, "--settings", settings, "--run-folder", str(self.run), *flags,
            environment=self.environment,
        )  # fmt: skip

    @property
    def is_ready(self) -> bool:
        return (self.run / READY_FILE).exists()

    @property
    def age(self) -> float:
        """Seconds since the last sign of life."""
        return time.time() - (self.run / ALIVE_FILE).stat().st_mtime

    @property
    def buffered(self) -> int:
        """The slices that the collector has not delivered yet."""
        rows = answer(self.port, "/metrics")[1].splitlines()
        return sum(int(float(row.split()[1])) for row in rows if row.startswith(BUFFERED))

    @property
    def client(self) -> redis.Redis:
        return redis.Redis(unix_socket_path=str(self.server.socket))

    def sequences(self) -> list[int]:
        with self.client as client:
            entries: Any = client.xrange(KEY)
        return [int(fields[b"q"]) for _, fields in entries]


@pytest.fixture
def pod(tmp_path: Path, redis_launcher: Callable[..., Any]) -> Pod:
    return Pod(tmp_path, redis_launcher())


@pytest.mark.parametrize("module", [COLLECTOR, ANALYZER])
def test_a_process_is_live_immediately_and_ready_with_redis(pod: Pod, module: str) -> None:
    pod.server.stop()
    with pod.running(module) as process:
        wait_until(lambda: answer(pod.port, "/healthz")[0] == 200, "it lives")
        wait_until(
            lambda: (
                process.has_logged("Redis does not accept") or process.has_logged("is unavailable")
            ),
            "it knows",
        )
        status, why = answer(pod.port, "/readyz")
        assert status == 503
        assert "yet" in why
        assert not pod.is_ready
        pod.server.start()
        wait_until(
            lambda: pod.is_ready and answer(pod.port, "/readyz") == (200, "ok\n"), "it is ready"
        )
        assert pod.age < 5
        reported = process.text.count("\n")
        pod.server.stop()  # the process may log it before the server has ended
        wait_until(lambda: process.text.count("\n") > reported, "it knows that Redis is away")
        assert answer(pod.port, "/readyz")[0] == 200
        assert pod.is_ready
        assert answer(pod.port, "/healthz")[0] == 200
        pod.server.start()
        assert process.end() == 0
    assert not process.has_logged("Traceback")


def test_a_ready_analyzer_has_loaded_the_detectors(pod: Pod) -> None:
    """It is seconds' worth, in which no node would be judged and no lease renewed."""
    with pod.running(ANALYZER) as process:
        wait_until(lambda: pod.is_ready, "it is ready")
        assert "/sklearn/ensemble/" in Path(f"/proc/{process.pid}/maps").read_text()
        assert process.end() == 0


def test_the_collector_takes_its_identity_from_the_environment(pod: Pod) -> None:
    with pod.running(COLLECTOR) as process:
        wait_until(pod.sequences, "a slice came")
        with pod.client as client:
            wait_until(lambda: client.exists(names.node_key(PROFILE, NODE)), "the node reported")
        assert process.end() == 0


def test_a_stopped_process_fails_its_liveness_check(pod: Pod) -> None:
    with pod.running(COLLECTOR) as process:
        wait_until(lambda: pod.is_ready, "it is ready")
        os.kill(process.pid, signal.SIGSTOP)
        wait_until(lambda: pod.age > 3, "no sign of life for 3 s")  # it gives one each second
        os.kill(process.pid, signal.SIGCONT)
        wait_until(lambda: pod.age < 1, "it goes on")
        assert process.end() == 0


def test_buffered_slices_are_delivered_before_exit(pod: Pod) -> None:
    with pod.running(COLLECTOR) as process:
        wait_until(pod.sequences, "a slice came")
        client = pod.client
        client.save()  # what the stream held outlives the outage
        pod.server.stop()
        wait_until(lambda: "Redis does not accept" in process.text, "Redis is missed")
        wait_until(lambda: pod.buffered >= 3, "slices wait")
        process.process.terminate()
        wait_until(lambda: not process.has_pending_signals(), "it heard the signal")
        assert process.process.poll() is None
        pod.server.start()
        assert process.process.wait(20) == 0
    sequences = pod.sequences()
    assert len(sequences) >= 4
    assert sequences == sorted(set(sequences))
    missing = sequences[-1] + 1 - sequences[0] - len(sequences)
    assert missing <= skipped_seconds(process.text)
    assert not process.has_logged("could not be delivered")


@pytest.mark.parametrize("module", [COLLECTOR, ANALYZER])
def test_a_second_signal_ends_the_process_immediately(pod: Pod, module: str) -> None:
    with pod.running(module, "--drain-seconds", "60") as process:
        wait_until(lambda: pod.is_ready, "it is ready")
        server = _server_pid(pod)
        os.kill(server, signal.SIGSTOP)  # hung: an orderly end waits
        try:
            if module == COLLECTOR:  # the analyzer's orderly end asks Redis in any case
                wait_until(lambda: pod.buffered >= 1, "a slice waits")
            # signals that arrive together count as one: repeat until the second is heard
            wait_until(process.terminated, "it ended", 10)
            code = process.process.wait(3)
        finally:
            os.kill(server, signal.SIGCONT)
    assert code == 128 + signal.SIGTERM or (module == ANALYZER and code == 0)


def test_shutdown_takes_no_longer_than_drain_seconds(pod: Pod) -> None:
    with pod.running(COLLECTOR, "--drain-seconds", "1") as process:
        wait_until(lambda: pod.is_ready, "it is ready")
        pod.server.stop()
        wait_until(lambda: "Redis does not accept" in process.text, "Redis is missed")
        began = time.monotonic()
        assert process.end() == 0
        assert time.monotonic() - began < 3
    assert process.has_logged("could not be delivered before the end")


def test_a_second_collector_runs_without_the_taken_metrics_port(pod: Pod, tmp_path: Path) -> None:
    second = tmp_path / "second"
    second.mkdir()
    with pod.running(COLLECTOR) as first:
        wait_until(lambda: answer(pod.port, "/metrics")[0] == 200, "the first serves")
        flags = ("--settings", str(pod.settings(COLLECTOR)), "--profile", "q")
        with running(COLLECTOR, second, *flags, environment=pod.environment) as other:
            wait_until(lambda: other.has_logged("metrics are not served"), "the warning")
            with pod.client as client:
                key = names.samples_key("q", names.shard(NODE))
                wait_until(lambda: client.xlen(key), "the second ships")
            assert other.end() == 0
        assert answer(pod.port, "/metrics")[0] == 200
        assert first.end() == 0


@pytest.mark.parametrize("module", [COLLECTOR, ANALYZER])
def test_promtool_accepts_the_metrics_of_both_processes(pod: Pod, module: str) -> None:
    if shutil.which("promtool") is None:
        pytest.skip("no promtool on PATH (Debian, Ubuntu: apt install prometheus)")
    with pod.running(module) as process:
        wait_until(lambda: pod.is_ready, "it is ready")
        text = answer(pod.port, "/metrics")[1]
        assert process.end() == 0
    command = ["promtool", "check", "metrics"]
    completed = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert completed.stderr == ""
    assert completed.returncode == 0
    assert "reveal_" in text


@pytest.mark.parametrize("module", [COLLECTOR, ANALYZER])
def test_a_missing_run_folder_gives_a_single_sentence(pod: Pod, module: str) -> None:
    pod.run.rmdir()
    with pod.running(module) as process:
        assert process.process.wait(20) == 1
    assert f"run folder {pod.run}: No such file or directory" in process.messages[-1]


def _server_pid(pod: Pod) -> int:
    with pod.client as client:
        info: Any = client.info("server")
    return int(info["process_id"])


def test_lines_of_the_log_are_json(pod: Pod) -> None:
    with pod.running(COLLECTOR) as process:
        wait_until(lambda: pod.is_ready, "it is ready")
        assert process.end() == 0
    assert _is_json(process)


def _is_json(process: Process) -> bool:
    rows = [json.loads(line) for line in process.text.splitlines()]
    return bool(rows) and all({"time", "severity", "message"} <= row.keys() for row in rows)
