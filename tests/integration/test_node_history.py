"""The history of nodes in a real Redis and in a folder: kept, bounded, and read by commands."""

from __future__ import annotations

import errno
import json
import os
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from reveal_analyzer.evidence.endpoint import application
from reveal_analyzer.evidence.factory import keep_samples
from reveal_analyzer.node_history import stores
from reveal_analyzer.node_history.keeper import HistoryKeeper
from reveal_analyzer.node_history.stores import FolderHistory, HistoryStore, RedisHistory
from reveal_analyzer.sinks.metrics import Metrics
from reveal_analyzer.worker import Worker
from reveal_cli.__main__ import main as reveal
from reveal_cli.errors import DONE, ERROR
from reveal_cli.kubectl import cluster, explain, node_history
from reveal_cli.kubectl.__main__ import main
from reveal_cli.ranking import explain_recording
from reveal_cli.time_spans import Span
from reveal_contract import names, wire
from reveal_contract.recording import RecordingBuffer
from reveal_contract.runtime.http_endpoints import serve_locally
from reveal_contract.settings import AnalyzerSettings
from reveal_contract.time_units import NS_PER_HOUR
from support.evidence_samples import FixedNodes
from support.polling import wait_until
from support.redis_streams import QUICK, Stream, message
from support.reports_api import ReportsApi
from support.stub_analyses import NodeStub
from support.synthetic_node import TABLE, Node

HOURS = 24
FAULT = {"cpu.pressure.some": 900_000.0, "cpu.procs_running": 30.0}


@pytest.fixture(params=["redis", "folder"])
def store(request: pytest.FixtureRequest, stream: Stream, tmp_path: Path) -> HistoryStore:
    if request.param == "redis":
        return RedisHistory(stream.client, "default", HOURS)
    return FolderHistory(tmp_path / "history", HOURS)


def test_hours_of_nodes_are_kept_apart(store: HistoryStore) -> None:
    assert store.read("n1", 7) == b""
    assert [store.append("n1", 7, part) for part in (b"one", b"two")] == [0, 3]
    store.append("n1", 8, b"three")
    store.append("../n1:7", 7, b"four")
    assert [store.read("n1", hour) for hour in (7, 8)] == [b"onetwo", b"three"]
    assert (store.read("../n1:7", 7), store.read("../n1", 7)) == (b"four", b"")


def test_an_hour_has_a_largest_size(store: HistoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "MOST_HOUR_BYTES", 10)
    store.append("n1", 7, b"x" * 10)
    with pytest.raises(OSError, match="an hour of n1 has over"):
        store.append("n1", 7, b"x")
    assert store.read("n1", 7) == b"x" * 10


def test_redis_forgets_after_the_hours(stream: Stream) -> None:
    RedisHistory(stream.client, "default", 2).append("n1", 7, b"x")
    assert 7100 < stream.client.ttl(names.history_key("default", "n1", 7)) <= 7200


def test_redis_with_little_memory_left_is_for_new_samples(stream: Stream) -> None:
    stream.client.config_set("maxmemory", "1mb")
    with pytest.raises(OSError, match="raise maxmemory"):
        RedisHistory(stream.client, "default", 2).append("n1", 7, b"x")


def test_a_folder_forgets_after_the_hours(tmp_path: Path) -> None:
    now = time.time()
    history = FolderHistory(tmp_path, 2, lambda: now)
    history.append("n1", 7, b"x")
    history.append("n2", 7, b"x")
    [old] = tmp_path.glob("node.n1/*")
    os.utime(old, (now - 7300, now - 7300))
    now += 3600.0
    history.append("n2", 8, b"x")
    assert (history.read("n1", 7), history.read("n2", 7)) == (b"", b"x")


def test_an_incomplete_part_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full volume takes some of the bytes, and no more."""
    history = FolderHistory(tmp_path, 2)
    history.append("n1", 7, b"whole")
    opened = Path.open

    class Full:
        def __init__(self, file: Path) -> None:
            self.file = opened(file, "ab", buffering=0)

        def __enter__(self) -> Full:
            return self

        def __exit__(self, *_: object) -> None:
            self.file.close()

        def fileno(self) -> int:
            return self.file.fileno()

        def truncate(self, size: int) -> None:
            self.file.truncate(size)

        def write(self, data: bytes) -> int:
            return int(self.file.write(data[:2]) or 0)

    monkeypatch.setattr(Path, "open", lambda file, *_, **__: Full(file))
    with pytest.raises(OSError, match="no room") as error:
        history.append("n1", 7, b"other")
    monkeypatch.undo()
    assert error.value.errno in (None, errno.ENOSPC)
    assert history.read("n1", 7) == b"whole"


def test_the_loop_of_an_analyzer_keeps_its_nodes(stream: Stream) -> None:
    settings = AnalyzerSettings(
        redis_url=stream.url, evidence_history_hours=HOURS, evidence_store="redis"
    )
    keeper = keep_samples(settings).keeper
    assert keeper is not None
    reader = stream.reader("one", timing=QUICK)
    worker = Worker(reader, NodeStub, [], Metrics())
    worker.keep_history(keeper)
    first = message("n", 0)
    stream.send(first, *(message("n", sequence) for sequence in range(1, 5)))
    wait_until(lambda: worker.turn() or "n" in worker.nodes)
    worker.close()
    kept = RedisHistory(stream.client, "default", HOURS)
    assert kept.read("n", first.start_ns // NS_PER_HOUR)
    reader.close()


class Night:
    """Twenty minutes of a node some hours ago, with a fault of a minute, and a cluster to ask."""

    def __init__(self, stream: Stream) -> None:
        hour = time.time_ns() // NS_PER_HOUR - 5
        self.start_ns = hour * NS_PER_HOUR + 50 * 60 * 10**9  # over the end of an hour
        self.begin_ns, self.end_ns = (self.start_ns + each * 10**9 for each in (600, 660))
        store = RedisHistory(stream.client, "p", HOURS)
        keeper, node, self.exact = HistoryKeeper(store), Node(), RecordingBuffer()
        for second in range(1200):
            slice_ = node.slice(FAULT if 600 <= second < 660 else None)
            slice_ = replace(slice_, start_ns=self.start_ns + second * 10**9)
            keeper.add(slice_, TABLE)
            self.exact.message(wire.encode(slice_, wire.gauges(TABLE)), TABLE)
        keeper.close()
        while keeper.run_due():
            pass
        self.api = ReportsApi()
        app = application(None, FixedNodes(), RedisHistory(stream.client, "p", HOURS))
        self.api.pods["a"] = serve_locally(0, app)

    def span(self) -> str:
        """Return the span of the fault in RFC 3339."""
        return "/".join(
            datetime.fromtimestamp(each // 10**9, UTC).isoformat()
            for each in (self.begin_ns, self.end_ns)
        )

    def clock(self) -> str:
        """Return the same by the clock of this machine."""
        return "/".join(
            datetime.fromtimestamp(each // 10**9).astimezone().strftime("%H:%M:%S")
            for each in (self.begin_ns, self.end_ns)
        )


@pytest.fixture
def night(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> Night:
    found = Night(stream)
    for verb in (explain, node_history):
        monkeypatch.setattr(verb, "connect", lambda _: cluster.Cluster(found.api))
    return found


def test_a_span_of_last_night_is_explained(
    night: Night, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first metrics are those that the samples of 100 ms have."""
    rankings = []
    for text in (night.span(), night.clock()):
        assert main(["explain", "n1", "--span", text, "-o", "json"]) == DONE
        rankings.append(json.loads(capsys.readouterr().out)["ranking"])
    file = tmp_path / "exact.rvl"
    file.write_bytes(night.exact.to_bytes())
    [exact], _ = explain_recording(file, [Span(*night.span().split("/"))])
    assert {row.metric for row in exact.ranking[:2]} == set(FAULT)
    for ranking in rankings:
        assert {row["metric"] for row in ranking[:2]} == set(FAULT)
        assert [row["scorePercent"] for row in ranking[:2]] == pytest.approx(
            [row.percent for row in exact.ranking[:2]], rel=0.05
        )


def test_the_recording_of_a_span_is_written_and_read(
    night: Night, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, table = tmp_path / "night.rvl", tmp_path / "night.csv"
    assert main(["history", "n1", "--span", night.span(), "-f", str(file)]) == DONE
    assert reveal(["export", str(file), "-o", str(table)]) == DONE
    assert len(table.read_text().splitlines()) == 1 + 61
    assert main(["history", "n1", "--span", "0/10", "-f", str(file)]) == ERROR
    assert "has no time of day" in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["history", "explain"])
def test_what_is_not_kept_is_a_sentence(
    night: Night, verb: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(*words: str) -> str:
        assert main([verb, *words]) == ERROR
        [line] = capsys.readouterr().err.splitlines()
        return line

    assert "nothing is kept of node n2 in this hour" in refused("n2", "--span", night.span())
    night.api.pods["a"] = serve_locally(0, application(None, FixedNodes()))
    assert "set spec.evidence.historyHours" in refused("n1", "--span", night.span())
    old = "2001-01-01T00:00:00Z/2001-01-01T00:01:00Z"
    assert "is outside of the data" in refused("n1", "--span", old)
