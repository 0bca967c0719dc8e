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
from reveal_contract.names import REDIS_VARIABLE
from support.polling import wait_until

KEY = names.samples_key("default", names.shard("n1"))
FLAGS = ["--node", "n1", "--include", "loadavg"]


@pytest.fixture
def guarded(redis_launcher: Any) -> tuple[redis.Redis, str]:
    """A Redis with a password: a client of it, and the URL a collector needs."""
    server = redis_launcher("--requirepass", "se/cret")
    client = redis.Redis(unix_socket_path=str(server.socket), password="se/cret")
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
