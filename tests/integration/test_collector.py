"""The whole collector on the kernel it runs on: recordings, Redis, signals, a dead parent."""

from __future__ import annotations

import json
import logging
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import redis

from reveal_collector import registry
from reveal_collector.collector import Collector
from reveal_collector.command import main
from reveal_collector.readers.boot_id import boot_id
from reveal_collector.readers.source import Roots
from reveal_collector.registry import MissingSource, probe_all
from reveal_collector.shipping.node_record import NodeRecord
from reveal_collector.shipping.sinks import RecordingSink
from reveal_contract import names
from reveal_contract.catalogue import find
from reveal_contract.channels import ChannelTable
from reveal_contract.facts import Facts
from reveal_contract.metric import Kind
from reveal_contract.recording import RecordingReader, RecordingWriter
from reveal_contract.settings import CollectorSettings, SettingsError
from reveal_contract.wire import Message, decode
from reveal_contract.wire import gauges as gauges_of
from support.component_processes import is_running
from support.polling import wait_until

pytestmark = pytest.mark.skipif(not Path("/proc/stat").exists(), reason="no procfs")
SETTINGS = CollectorSettings("n1", "")


@pytest.fixture(autouse=True)
def put_back() -> Iterator[None]:
    """``main`` sets up the process it owns; this one is pytest's."""
    handlers, level = logging.root.handlers[:], logging.root.level
    signals = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    switch = sys.getswitchinterval()
    yield
    logging.root.handlers[:], logging.root.level = handlers, level
    for number, handler in signals.items():
        signal.signal(number, handler)
    sys.setswitchinterval(switch)


def messages(path: Path) -> Iterator[tuple[Message, ChannelTable]]:
    for record in RecordingReader(path):
        if record.table is None:
            continue
        gauges = np.array([c.kind is not Kind.COUNTER for c in record.table.fast], np.bool_)
        yield decode(record.data, gauges), record.table


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three seconds of this host."""
    path = tmp_path_factory.mktemp("recorded") / "r"
    assert main(["--node", "n1", "--record", str(path), "--duration", "3.6"]) == 0
    return path


def test_slices_are_complete_consecutive_seconds(recorded: Path) -> None:
    read = list(messages(recorded))
    assert len(read) >= 3
    first = read[0][0]
    assert [m.sequence for m, _ in read] == [first.sequence + n for n in range(len(read))]
    assert first.boot == boot_id(Roots())
    for message, _ in read[:-1]:
        assert message.fast.shape[0] == 10
    assert abs(first.start_ns - time.time_ns()) < 60e9


def test_every_channel_is_in_the_catalogue_and_has_its_kind(recorded: Path) -> None:
    _, table = list(messages(recorded))[-1]
    assert len(table.fast) + len(table.slow) > 300
    for channel in (*table.fast, *table.slow):
        assert find(channel.metric).kind is channel.kind


def test_cpu_time_follows_the_clock(recorded: Path) -> None:
    read = list(messages(recorded))
    message, table = read[1]
    columns = [
        n for n, channel in enumerate(table.fast)
        if channel.metric in ("cpu.user", "cpu.system", "cpu.idle", "cpu.iowait", "cpu.softirq",
                              "cpu.nice", "cpu.irq", "cpu.steal") and channel.instance == ""
    ]  # fmt: skip
    spent = sum(float(message.fast[:, n].sum()) * table.fast[n].scale for n in columns)
    cpus = os.cpu_count() or 1
    assert 0.5 * cpus <= spent / 1e9 <= 1.5 * cpus


def test_the_collector_meters_itself(recorded: Path) -> None:
    # A second that the host delays has no values of the collector itself: take those of any second.
    own = {
        channel.label: int(value)
        for message, table in messages(recorded)
        for channel, value, gone in zip(table.slow, message.slow, message.slow_missing, strict=True)
        if channel.metric.startswith("own.") and not gone
    }
    assert 0 < own["own.cpu_time"] < 4e9
    assert own["own.dropped_slices"] == own["own.buffered_slices"] == 0
    assert own["own.read_time{stat}"] > 1000


def test_include_and_exclude_select_sources_and_an_unknown_name_is_an_error() -> None:
    given = replace(SETTINGS, include=("stat", "meminfo"), exclude=("meminfo",))
    assert [source.name for source in registry.build(Roots(), given)] == ["stat"]
    with pytest.raises(SettingsError, match=r"no such source: bad, worse; known are .*meminfo"):
        registry.build(Roots(), replace(SETTINGS, include=("bad",), exclude=("worse",)))


def test_every_source_of_an_empty_host_has_a_reason(tmp_path: Path) -> None:
    roots = Roots(tmp_path / "proc", tmp_path / "sys", tmp_path / "cgroup")
    opened, missing, *_ = probe_all(roots, SETTINGS)
    assert opened == []
    assert len(missing) > 10
    assert all(isinstance(each, MissingSource) and each.reason for each in missing)


def test_source_names_are_unique() -> None:
    found = [source.name for source in registry.build(Roots(), SETTINGS)]
    assert len(found) == len(set(found))


def test_slices_reach_redis_and_the_node_reports(
    redis_server: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(NodeRecord, "withdraw", lambda _: None)  # it would remove the status
    client = redis.Redis(unix_socket_path=str(redis_server))
    code = main([
        "--node", "n1", "--redis-url", f"unix://{redis_server}", "--record", str(tmp_path / "r"),
        "--duration", "2.6", "--include", "stat", "psi",
    ])  # fmt: skip
    assert code == 0
    entries: Any = client.xrange(names.samples_key("default", names.shard("n1")))
    sent = [fields[b"d"] for _, fields in entries]
    records = list(RecordingReader(tmp_path / "r"))
    assert sent == [record.data for record in records if record.table]
    facts = [record.facts for record in records if record.facts]
    assert facts
    assert facts[0].node == "n1"
    kept: Any = client.hget(names.node_key("default", "n1"), names.FACTS)
    assert Facts.from_json(kept) == facts[-1]
    status: Any = client.hget(names.node_key("default", "n1"), names.STATUS)
    report = json.loads(status)
    assert {"boot", "table", "sequence", "version", "time", "missing", "degraded"} <= set(report)
    announced: Any = client.get(names.table_key("default", bytes.fromhex(report["table"])))
    assert ChannelTable.from_announcement(announced).key.hex() == report["table"]


def test_samples_are_as_far_apart_as_they_are_set(tmp_path: Path) -> None:
    file = tmp_path / "r"
    flags = ["--sample-period-milliseconds", "200", "--include", "stat"]
    assert main(["--node", "n1", "--record", str(file), "--duration", "2.2", *flags]) == 0
    tables = {}
    for record in RecordingReader(file):
        if record.table:
            tables[record.table.key] = record.table
            message = decode(record.data, gauges_of(record.table))
            assert message.tick_us == 200_000
            assert len(message.fast) <= 5
    assert tables


def test_a_status_before_the_start_is_refused() -> None:
    with pytest.raises(RuntimeError, match="not been started"):
        Collector(SETTINGS, []).status()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no destination"),
        (["--redis-url", "nonsense"], "redisUrl"),
        (["--record", "r", "--sample-period-milliseconds", "7"], "samplePeriodMilliseconds"),
        (["--record", "r", "--include", "nope"], "no such source: nope"),
        (["--settings", "none.json"], "none.json"),
        (["--record", "missing/folder/r"], "missing/folder/r"),
    ],
)
def test_bad_input_gives_a_single_sentence(
    arguments: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(arguments) in (1, 2)
    error = capsys.readouterr().err.splitlines()
    assert message in error[-1]
    assert "Traceback" not in "".join(error)


def test_settings_come_from_a_file_and_flags_win(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "s.json"
    file.write_text(CollectorSettings("from-file", "", include=("stat",)).to_json())
    command = ["--settings", str(file), "--record", str(tmp_path / "r"), "--duration", "1.7"]
    assert main([*command, "--node", "flag"]) == 0
    message, table = next(messages(tmp_path / "r"))
    assert message.node == "flag"
    assert {find(channel.metric).source for channel in table.fast} == {"stat"}
    file.write_text('{"nodes": 1}')
    assert main(["--settings", str(file)]) == 2
    assert "nodes: no such setting" in capsys.readouterr().err


def launch(tmp_path: Path, *flags: str) -> subprocess.Popen[bytes]:
    command = [
        sys.executable, "-m", "reveal_collector", "--node", "n1", "--record", str(tmp_path / "r"),
        "--include", "stat", "--log-format", "json", *flags,
    ]  # fmt: skip
    return subprocess.Popen(command, stderr=subprocess.PIPE, preexec_fn=_take_signals)  # noqa: PLW1509


def _take_signals() -> None:
    """Take SIGINT, which is ignored where the tests run in the background of a script."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def wait_for_slices(path: Path, size: int = 200) -> None:
    wait_until(lambda: path.exists() and path.stat().st_size >= size, "a slice is recorded")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_drains_the_slice_and_ends_cleanly(tmp_path: Path, number: int) -> None:
    with launch(tmp_path) as process:
        wait_for_slices(tmp_path / "r", 1500)
        time.sleep(0.3)  # into the next slice
        began = time.monotonic()
        process.send_signal(number)
        assert process.wait(5) == 0
        assert time.monotonic() - began < 1.5
        assert process.stderr is not None
        lines = [json.loads(line) for line in process.stderr.read().splitlines()]
    assert all({"time", "severity", "message"} <= set(line) for line in lines)
    reader = RecordingReader(tmp_path / "r")
    assert list(reader)
    assert not reader.truncated


def test_a_killed_parent_leaves_no_collector(tmp_path: Path) -> None:
    script = (
        "import subprocess, sys\n"
        "child = subprocess.Popen([sys.executable, '-m', 'reveal_collector', *sys.argv[1:]])\n"
        "print(child.pid, flush=True)\n"
        "child.wait()\n"
    )
    flags = ["--record", str(tmp_path / "r"), "--include", "stat", "--die-with-parent"]
    with subprocess.Popen(
        [sys.executable, "-c", script, *flags], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        wait_for_slices(tmp_path / "r")
        parent.kill()
    wait_until(lambda: not is_running(child), "the collector ended with its parent")


def test_own_health_is_scraped(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with launch(tmp_path, "--metrics-port", str(port)) as process:
        wait_for_slices(tmp_path / "r")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            text = answer.read().decode()
        process.terminate()
        assert process.wait(5) == 0
    assert 'reveal_collector_source_up{source="stat"} 1.0' in text
    assert "reveal_collector_slices_delivered_total" in text


def test_a_taken_port_is_a_warning_and_sampling_continues(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        port = taken.getsockname()[1]
        flags = ["--metrics-port", str(port), "--record", str(tmp_path / "r"), "--duration", "1.7"]
        assert main([*flags, "--include", "stat"]) == 0
    message = f"metrics are not served: port {port} for metrics: Address already in use"
    assert capsys.readouterr().err.count(message) == 1
    assert list(RecordingReader(tmp_path / "r"))


def test_a_collector_runs_with_a_recording_alone(tmp_path: Path) -> None:
    sink = RecordingSink(RecordingWriter(tmp_path / "r"))
    collector = Collector(replace(SETTINGS, include=("stat",)), [sink])
    collector.start()
    wait_for_slices(tmp_path / "r")
    status = collector.status()
    collector.stop()
    assert (status.dropped, status.missing) == (0, ())
    assert status.sources == ("stat", "own")
