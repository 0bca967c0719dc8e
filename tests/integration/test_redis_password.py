"""The URL of Redis may hold a password: it reaches the collector by ways nobody else can read."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from reveal_cli.collector_process import CollectorProcess, CollectorSupervisor
from reveal_contract import names
from reveal_contract.kube.names import REDIS_PASSWORD_VARIABLE
from reveal_contract.names import REDIS_VARIABLE
from support.polling import wait_until

KEY = names.samples_key("default", names.shard("n1"))
FLAGS = ["--node", "n1", "--include", "loadavg"]
PASSWORD = "se/cret"


@pytest.fixture
def guarded(redis_launcher: Any) -> tuple[redis.Redis, str]:
    """A Redis with a password: a client of it, and the URL a collector needs."""
    server = redis_launcher("--requirepass", PASSWORD)
    client = redis.Redis(unix_socket_path=str(server.socket), password=PASSWORD)
    return client, f"unix://:se%2Fcret@{server.socket}"


def await_slices(client: redis.Redis) -> None:
    wait_until(lambda: client.xlen(KEY), "a slice arrived")


def command_line(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text()


@contextlib.contextmanager
def collector(*flags: str, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", "reveal_collector", *FLAGS, *flags]
    with subprocess.Popen(
        command, env={**os.environ, **environment}, stderr=subprocess.DEVNULL
    ) as process:
        try:
            yield process
        finally:
            process.terminate()


def test_the_password_is_read_from_a_file(guarded: tuple[redis.Redis, str], tmp_path: Path) -> None:
    client, url = guarded
    file = tmp_path / "url"
    file.write_text(url + "\n")
    with collector("--redis-file", str(file), REVEAL_REDIS_URL="unix:///nowhere") as process:
        await_slices(client)
        assert "cret" not in command_line(process.pid)


def test_the_password_is_read_from_the_environment_and_a_flag_wins(
    guarded: tuple[redis.Redis, str],
) -> None:
    client, url = guarded
    with collector(**{REDIS_VARIABLE: url}):
        await_slices(client)
    client.delete(KEY)
    with collector("--redis-url", url, **{REDIS_VARIABLE: "unix:///nowhere"}):
        await_slices(client)


def test_a_scan_passes_the_password_to_its_collector(guarded: tuple[redis.Redis, str]) -> None:
    client, url = guarded
    with CollectorSupervisor(FLAGS, url) as supervisor:
        await_slices(client)
        assert "cret" not in command_line(supervisor.process.pid)


def reveal(*words: str) -> subprocess.Popen[str]:
    """Start ``reveal`` with the password in its environment."""
    return subprocess.Popen(
        [sys.executable, "-m", "reveal_cli", *words],
        env={**os.environ, REDIS_PASSWORD_VARIABLE: PASSWORD},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def without_login(url: str) -> str:
    return url.replace(":se%2Fcret@", "")


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("command", [["scan", "--duration", "60s", "--warmup", "10s"], ["top"]])
def test_a_scan_takes_the_password_of_the_environment(
    guarded: tuple[redis.Redis, str], command: list[str]
) -> None:
    client, url = guarded
    host = ["--redis", without_login(url), "--node", "n1", "--include-source", "loadavg"]
    with reveal(*command, *host) as process:
        try:
            wait_until(lambda: client.keys("reveal:{scan-n1-*:samples*"), "a slice arrived")
            running = [process.pid, *children(process.pid)]
            assert len(running) > 1
            assert not [pid for pid in running if "cret" in command_line(pid)]
        finally:
            process.terminate()
            process.communicate(timeout=40)


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (["top", "--profile", "default", "--node", "n1", "--once"], "has sent nothing"),
        (["evidence", "cpu-1", "-o", "none.rvl"], "there are no samples of cpu-1"),
    ],
)
def test_a_reader_of_redis_takes_the_password_of_the_environment(
    guarded: tuple[redis.Redis, str], command: list[str], sentence: str
) -> None:
    _, url = guarded
    with reveal(*command, "--redis", without_login(url)) as process:
        _, errors = process.communicate(timeout=40)
    assert sentence in errors


def test_a_recording_is_not_sent_to_redis(
    guarded: tuple[redis.Redis, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, url = guarded
    monkeypatch.setenv(REDIS_VARIABLE, url)
    record = tmp_path / "r"
    with CollectorProcess([*FLAGS, "--record", str(record)]):
        wait_until(lambda: record.exists() and record.stat().st_size >= 1500, "a slice is recorded")
    assert not client.exists(KEY)


def test_a_missing_file_gives_a_single_sentence(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "reveal_collector", "--redis-file", str(tmp_path / "none")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert str(tmp_path / "none") in result.stderr
    assert "Traceback" not in result.stderr
