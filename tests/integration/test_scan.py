"""A real scan: private Redis, collector process, analyzer, outputs; and its end by signal."""

import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import redis

from reveal_cli.errors import DONE, FOUND
from reveal_cli.recordings import Slices
from reveal_cli.scan_directory import FINDINGS, RECORDING, REPORT, STATE, SUMMARY
from reveal_contract import names
from support.hosts import complete_hosts
from support.hosts.tree import Tree
from support.polling import wait_until
from support.standstill import without_lost_slices

SCAN = [sys.executable, "-m", "reveal_cli", "scan"]
FIELDS = {
    "id", "nodeName", "scope", "subsystem", "subsystems", "severity", "state", "firstSeenTime",
    "lastSeenTime", "claim", "hypothesis", "methods", "evidence", "pods", "subjects",
    "scorePercent", "confidencePercent",
}  # fmt: skip


class Host:
    """Scans with a temporary directory of their own, so that what they leave can be seen."""

    def __init__(self, temporary: Path) -> None:
        self.temporary = temporary
        self.environment = {**os.environ, "TMPDIR": str(temporary)}

    def start(self, *flags: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [*SCAN, *flags], env=self.environment,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def processes(self) -> list[str]:
        """Command lines of all processes that were started with our temporary directory."""
        expected = f"TMPDIR={self.temporary}".encode()
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                if expected in (entry / "environ").read_bytes().split(b"\0"):
                    found.append((entry / "cmdline").read_bytes().replace(b"\0", b" ").decode())
            except OSError:
                continue
        return found

    def assert_clean(self) -> None:
        assert self.processes() == []
        assert list(self.temporary.iterdir()) == []


@pytest.fixture
def host(tmp_path: Path) -> Host:
    temporary = tmp_path / "t"
    temporary.mkdir()
    return Host(temporary)


def assert_whole(directory: Path) -> dict[str, Any]:
    """All three files can be read to their end; the summary."""
    slices = Slices(directory / RECORDING)
    count = sum(1 for _ in slices)
    assert not slices.truncated
    rows = [json.loads(line) for line in (directory / FINDINGS).read_text().splitlines()]
    assert all(row.keys() >= FIELDS for row in rows)
    summary: dict[str, Any] = json.loads((directory / SUMMARY).read_text())
    assert summary["slices"]["received"] == count
    assert summary["findings"]["total"] == len(rows)
    return summary


@pytest.mark.timeout(60)
def test_a_scan_sees_this_host_and_analyze_agrees(host: Host, tmp_path: Path) -> None:
    out = tmp_path / "out"
    began = time.monotonic()
    scan = host.start("--duration", "14s", "--warmup", "10s", "--output", str(out), "--json")
    output, warned = scan.communicate(timeout=40)
    seconds = time.monotonic() - began
    assert scan.returncode == 0, warned
    warned, lost = without_lost_slices(warned)
    assert warned == ""
    summary = assert_whole(out)
    assert output == (out / FINDINGS).read_text()
    assert (out / REPORT).read_text().startswith("<!doctype html>")
    received, judged = summary["slices"]["received"], summary["judgedSeconds"]
    assert 11 <= received + lost <= seconds  # one a second; a busy machine begins and ends later
    assert summary["slices"]["lost"] == lost
    assert summary["channels"] >= 300
    assert 3 <= judged <= received - 9
    host.assert_clean()
    for _ in range(2):
        again = subprocess.run(
            [sys.executable, "-m", "reveal_cli", "analyze", "--json", "--warmup", "10s",
             str(out / RECORDING)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert (again.returncode, again.stdout) == (0, output)


@pytest.mark.slow
@pytest.mark.timeout(60)
@pytest.mark.parametrize(("fail_on", "code"), [("low", FOUND), ("medium", DONE)])
def test_the_roots_select_the_host_and_fail_on_selects_what_counts(
    host: Host, tmp_path: Path, fail_on: str, code: int
) -> None:
    """The host is a tree of files whose huge pages nobody uses: a finding on its configuration."""
    tree = Tree(tmp_path / "dgx")
    complete_hosts.dgx_h100(tree)
    out = tmp_path / "out"
    scan = host.start(
        "--duration", "14s", "--warmup", "10s", "--output", str(out), "--fail-on", fail_on,
        *tree.flags("dgx"),
    )  # fmt: skip
    output, warned = scan.communicate(timeout=40)
    assert (scan.returncode, warned) == (code, "")
    assert "64 GiB are reserved" in " ".join(output.split())
    assert {message.node for message, _ in Slices(out / RECORDING)} == {"dgx"}
    host.assert_clean()


@pytest.mark.timeout(60)
def test_a_scan_leaves_nothing_in_a_redis_that_others_use(host: Host, redis_server: Path) -> None:
    client = redis.Redis(unix_socket_path=str(redis_server))
    node = socket.gethostname()
    client.hset(names.node_key("gpu-nodes", node), names.SUBJECTS, b"of another profile")
    client.hset(names.EARLIER_NODE_KEYS[names.SUBJECTS], node, b"of an earlier version")
    before = dump(client)
    flags = ("--redis", f"unix://{redis_server}", "--duration", "60s", "--warmup", "10s")
    scan = host.start(*flags)
    for kind in ("node", "table", "samples", "owner"):
        wait_until(lambda: client.keys(f"reveal:{{scan-*:{kind}*"), kind)  # noqa: B023
    scan.send_signal(signal.SIGTERM)
    scan.communicate(timeout=40)
    assert scan.returncode == 0
    assert dump(client) == before


def dump(client: redis.Redis) -> dict[Any, Any]:
    keys: Any = client.keys()
    return {key: client.dump(key) for key in keys}


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_a_scan_starts_from_what_an_earlier_scan_learned(host: Host, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    scan = host.start("--duration", "13s", "--warmup", "10s", "--output", str(first))
    _, warned = scan.communicate(timeout=40)
    assert (scan.returncode, warned) == (0, "")
    assert 1_000 < (first / STATE).stat().st_size <= 64 * 1024
    flags = ("--duration", "5s", "--baseline", str(first), "--output", str(second))
    scan = host.start(*flags)
    _, warned = scan.communicate(timeout=40)
    assert (scan.returncode, warned) == (0, "")
    summary = assert_whole(second)
    assert summary["warmupSeconds"] == 0
    assert summary["judgedSeconds"] == summary["watchedSeconds"] >= 4
    assert summary["baselineTime"] >= json.loads((first / SUMMARY).read_text())["startTime"][:19]
    assert (second / STATE).exists(), "it goes on learning"
    host.assert_clean()


@pytest.mark.slow
@pytest.mark.timeout(60)
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_a_scan_cleanly_in_any_phase(
    host: Host, tmp_path: Path, number: signal.Signals
) -> None:
    moments = random.Random(number).sample(range(20, 400), 6)
    for attempt, hundredths in enumerate(moments):
        out = tmp_path / f"out{attempt}"
        scan = host.start("--duration", "60s", "--warmup", "10s", "--output", str(out))
        wait_until(out.exists)  # before that, nothing of ours exists and the default is right
        time.sleep(hundredths / 100)
        asked = time.monotonic()
        scan.send_signal(number)
        _, warned = scan.communicate(timeout=20)
        assert time.monotonic() - asked < 2
        assert (scan.returncode, warned) == (0, "")
        assert assert_whole(out)["interrupted"]
        host.assert_clean()


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_concurrent_scans_do_not_disturb_each_other(host: Host, tmp_path: Path) -> None:
    outs = [tmp_path / name for name in ("one", "two")]
    flags = ("--duration", "12s", "--warmup", "10s")
    scans = [host.start(*flags, "--output", str(out)) for out in outs]
    for scan, out in zip(scans, outs, strict=True):
        _, warned = scan.communicate(timeout=40)
        assert (scan.returncode, warned) == (0, "")
        summary = assert_whole(out)
        assert summary["slices"]["lost"] == 0
        assert 9 <= summary["slices"]["received"] <= 13
    host.assert_clean()


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_a_second_scan_cannot_use_the_same_directory(host: Host, tmp_path: Path) -> None:
    (tmp_path / RECORDING).write_bytes(b"precious")
    scan = host.start("--output", str(tmp_path))
    _, warned = scan.communicate(timeout=20)
    assert scan.returncode == 1
    assert warned.count("\n") == 1
    assert "exists already" in warned
    assert (tmp_path / RECORDING).read_bytes() == b"precious"


@pytest.mark.slow
@pytest.mark.timeout(60)
@pytest.mark.parametrize(
    ("name", "shows"),
    [("reveal_collector", "the collector ended"), ("-server", "the private Redis ended")],
)
def test_a_killed_helper_is_started_again(
    host: Host, tmp_path: Path, name: str, shows: str
) -> None:
    out = tmp_path / "out"
    scan = host.start("--duration", "14s", "--warmup", "10s", "--output", str(out))
    recording = out / RECORDING
    wait_until(lambda: recording.exists() and recording.stat().st_size > 10_000)
    [helper] = [entry for entry in Path("/proc").glob("[0-9]*") if is_child(entry, scan.pid, name)]
    os.kill(int(helper.name), signal.SIGKILL)
    _, warned = scan.communicate(timeout=40)
    assert scan.returncode == 0
    assert shows in warned
    assert assert_whole(out)["slices"]["received"] >= 9
    host.assert_clean()


@pytest.mark.slow
@pytest.mark.root
@pytest.mark.timeout(60)
def test_a_full_disk_is_reported_once_and_the_scan_continues(host: Host, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)]
    if os.getuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("needs root and the right to mount")
    try:
        scan = host.start("--duration", "14s", "--warmup", "10s", "--output", str(disk / "out"))
        recording = disk / "out" / RECORDING
        wait_until(lambda: recording.exists() and recording.stat().st_size > 10_000)
        with (
            pytest.raises(OSError, match="No space left"),
            (disk / "ballast").open("wb", 0) as file,
        ):
            while True:
                file.write(bytes(4096))
        output, warned = scan.communicate(timeout=40)
        assert scan.returncode == 1
        assert "No space left on device" in warned.splitlines()[0]
        assert (
            sum("cannot write" in line and RECORDING in line for line in warned.splitlines()) == 1
        )
        assert "slices of" in output
        slices = Slices(recording)
        assert 1 <= sum(1 for _ in slices) < 14
        assert not slices.truncated
    finally:
        subprocess.run(["umount", str(disk)], check=True)
    host.assert_clean()


def is_child(entry: Path, parent: int, name: str) -> bool:
    try:
        status, command = (entry / "stat").read_text(), (entry / "cmdline").read_bytes()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[1] == str(parent) and name.encode() in command
