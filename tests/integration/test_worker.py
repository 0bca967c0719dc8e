"""The analyzer's loop on a real Redis, and the process around it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from reveal_analyzer import worker
from reveal_analyzer.configuration import feed
from reveal_analyzer.sinks.jsonl import JsonlSink
from reveal_analyzer.sinks.metrics import Metrics
from reveal_analyzer.state.tree import StateTree, integer
from reveal_analyzer.worker import Worker
from reveal_contract.channels import ChannelTable
from reveal_contract.facts import Cpu, Facts, Kernel
from reveal_contract.finding import (
    Finding,
    FindingChange,
    FindingUpdate,
    Severity,
    State,
    finding_id,
)
from reveal_contract.metric import Subsystem
from reveal_contract.names import FACTS, node_key, node_states_key, shard
from reveal_contract.wire import Message
from support.polling import wait_until
from support.redis_streams import QUICK, Stream, message

SLOW_CLOCK = Facts(
    node="n",
    cpu=Cpu(clock_flags=("constant_tsc",)),
    kernel=Kernel(clocksource="hpet", clocksources=("hpet",)),
)


@dataclass
class Recorder:
    """An analysis that remembers, fails at sequence 13 and opens a finding at 5."""

    node: str
    analyzed: list[tuple[int, bool]] = field(default_factory=list)
    open: Finding | None = None
    restored: int | None = None
    learning: bool = False
    changes: list[str] = field(default_factory=list)

    def analyze(
        self, message: Message, table: ChannelTable, *, data: bytes = b"", silent: bool = False
    ) -> Sequence[FindingUpdate]:
        if message.sequence == 13:
            raise ZeroDivisionError("thirteen")
        self.analyzed.append((message.sequence, silent))
        if message.sequence != 5:
            return ()
        begin, end = message.start_ns, message.start_ns + 1
        self.open = Finding(
            finding_id(self.node, Subsystem.CPU, begin), self.node, Subsystem.CPU, Severity.HIGH,
            State.OPEN, begin, end, "it is slow",
        )  # fmt: skip
        return () if silent else [FindingUpdate(FindingChange.OPENED, self.open)]

    def note_changes(self, changes: Sequence[str]) -> None:
        self.changes += changes

    def finish(self) -> Sequence[FindingUpdate]:
        return [FindingUpdate(FindingChange.CHANGED, self.open)] if self.open else ()

    def save(self) -> StateTree:
        return {"last": self.analyzed[-1][0]}

    def restore(self, tree: StateTree) -> None:
        self.restored = integer(tree, "last")


class Bench:
    """A worker on the stream, with what its analyses saw."""

    def __init__(self, stream: Stream, path: Path, owner: str = "one") -> None:
        self.recorders: list[Recorder] = []
        self.metrics = Metrics()
        self.reader = stream.reader(owner, timing=QUICK)
        self.sink = JsonlSink(path)
        self.worker = Worker(self.reader, self._make, [self.sink], self.metrics)

    def _make(self, node: str) -> Recorder:
        self.recorders.append(Recorder(node))
        return self.recorders[-1]

    def turn_until(self, done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 45  # only ends a test that hangs
        while not done():
            assert time.monotonic() < deadline, (self.recorders, self.reader.status())
            self.worker.turn()

    def metric(self, name: str) -> float:
        value = self.metrics.registry.get_sample_value(name)
        assert value is not None
        return value


def test_findings_are_written_before_slices_are_acknowledged(
    stream: Stream, tmp_path: Path
) -> None:
    stream.send(*(message("n", sequence) for sequence in range(7)))
    bench = Bench(stream, tmp_path / "f.jsonl")
    pending_before: list[int] = []
    write = bench.sink.write

    def spy(update: FindingUpdate) -> None:
        pending_before.append(stream.pending("n"))
        write(update)

    bench.sink.write = spy  # type: ignore[method-assign]
    bench.turn_until(lambda: len(bench.recorders) == 1 and len(bench.recorders[0].analyzed) == 7)
    assert pending_before == [7]
    assert stream.pending("n") == 0
    rows = [json.loads(line) for line in (tmp_path / "f.jsonl").read_text().splitlines()]
    assert [row["nodeName"] for row in rows] == ["n"]
    assert bench.metric("reveal_slices_total") == 7
    assert bench.metric("reveal_verdict_seconds_count") == 7
    bench.worker.close()


def test_a_bad_configuration_opens_a_finding_and_its_fix_resolves_it(
    stream: Stream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "REFRESH_SECONDS", 0.0)
    monkeypatch.setattr(worker, "_FACTS_SECONDS", 0.0)
    stream.send(message("n", 1))
    bench = Bench(stream, tmp_path / "f.jsonl")

    def rows() -> list[list[str]]:
        findings = [json.loads(line) for line in (tmp_path / "f.jsonl").read_text().splitlines()]
        return [[row["kind"], row["state"], row["hypothesis"]["name"]] for row in findings]

    stream.client.hset(node_key("default", "n"), FACTS, SLOW_CLOCK.to_json())
    stream.client.hset(node_key("default", "elsewhere"), FACTS, SLOW_CLOCK.to_json())
    bench.turn_until(lambda: len(rows()) == 1)
    stream.client.hset(node_key("default", "n"), FACTS, b"nonsense")
    bench.worker.turn()
    fixed = replace(SLOW_CLOCK, kernel=replace(SLOW_CLOCK.kernel, clocksource="tsc"))
    stream.client.hset(node_key("default", "n"), FACTS, fixed.to_json())
    bench.turn_until(lambda: len(rows()) == 2)
    kind = ["Configuration", "Open", "SlowClocksource"]
    assert rows() == [kind, ["Configuration", "Resolved", "SlowClocksource"]]
    [change] = bench.recorders[0].changes
    assert change.startswith("kernel clocksource: ") and change.endswith(" -> tsc")
    bench.worker.close()


def test_a_verdict_is_timed_from_the_last_tick(stream: Stream, tmp_path: Path) -> None:
    bench = Bench(stream, tmp_path / "f.jsonl")
    bench.worker.turn()
    began = time.time()
    last_tick_ns = int((began - 100) * 1e9)
    stream.send(message("n", 0, start_ns=last_tick_ns - 900_000_000))
    bench.turn_until(lambda: bench.metric("reveal_verdict_seconds_count") == 1)
    assert 100 <= bench.metric("reveal_verdict_seconds_sum") <= 100 + time.time() - began


def test_a_failed_analysis_is_reset_and_other_nodes_continue(
    stream: Stream, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stream.send(*(message("bad", sequence) for sequence in range(11, 16)))
    stream.send(*(message("good", sequence) for sequence in range(3)))
    bench = Bench(stream, tmp_path / "f.jsonl")
    bench.turn_until(lambda: sum(len(item.analyzed) for item in bench.recorders) == 7)
    observed = {(item.node, *item.analyzed) for item in bench.recorders}
    assert observed == {
        ("bad", (11, False), (12, False)),
        ("bad", (14, False), (15, False)),
        ("good", (0, False), (1, False), (2, False)),
    }
    assert bench.metric("reveal_node_failures_total") == 1
    assert "ZeroDivisionError: thirteen" in caplog.text
    assert stream.pending("bad") == 0


def test_findings_are_not_open_for_ever_after_their_analysis_failed(
    stream: Stream, tmp_path: Path
) -> None:
    stream.send(*(message("n", sequence) for sequence in (4, 5, 6, 13, 14)))
    bench = Bench(stream, tmp_path / "f.jsonl")
    bench.turn_until(lambda: bench.metric("reveal_node_failures_total") == 1)
    labels = {"node": "n", "subsystem": "CPU", "severity": "High", "kind": "Anomaly"}
    assert bench.metrics.registry.get_sample_value("reveal_findings_open", labels) is None
    rows = [json.loads(line) for line in (tmp_path / "f.jsonl").read_text().splitlines()]
    assert [(row["state"], row.get("resolution")) for row in rows] == [
        ("Open", None), ("Resolved", "Unobserved"),
    ]  # fmt: skip
    assert "the analysis of its node failed" in rows[-1]["notes"][-1]


def test_findings_of_a_node_that_fell_silent_are_given_up(
    stream: Stream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "SILENT_SECONDS", 0.3)
    monkeypatch.setattr(worker, "_SILENT_SECONDS", 0.0)
    stream.send(*(message("n", sequence) for sequence in (4, 5)))
    bench = Bench(stream, tmp_path / "f.jsonl")

    def states() -> list[str]:
        return [
            json.loads(line)["state"] for line in (tmp_path / "f.jsonl").read_text().splitlines()
        ]

    bench.turn_until(lambda: states() == ["Open", "Resolved"])
    for _ in range(5):
        bench.worker.turn()
    assert states() == ["Open", "Resolved"], "once"
    assert bench.worker.nodes == ["n"], "it may come back"


def test_a_failing_sink_stops_neither_slices_nor_the_other_sinks(
    stream: Stream, tmp_path: Path
) -> None:
    stream.send(*(message("n", sequence) for sequence in range(7)))
    bench = Bench(stream, tmp_path / "f.jsonl")
    bench.sink.write = lambda change: 1 / 0  # type: ignore[method-assign, assignment]
    bench.turn_until(lambda: len(bench.recorders) == 1 and len(bench.recorders[0].analyzed) == 7)
    assert bench.metric("reveal_slices_total") == 7
    labels = {"sink": "JsonlSink"}
    assert bench.metrics.registry.get_sample_value("reveal_sink_failures_total", labels) == 1
    labels = {"subsystem": "CPU", "severity": "High"}
    assert bench.metrics.registry.get_sample_value("reveal_findings_total", labels) == 1


def test_a_new_owner_without_a_saved_state_fills_its_windows_and_opens_nothing_twice(
    stream: Stream, tmp_path: Path
) -> None:
    stream.send(*(message("n", sequence) for sequence in range(7)))
    first = Bench(stream, tmp_path / "f.jsonl", "first")
    first.turn_until(lambda: len(first.recorders) == 1 and len(first.recorders[0].analyzed) == 7)
    stream.client.delete(node_states_key("default", shard("n")))  # it was saved as it opened
    heir = Bench(stream, tmp_path / "f.jsonl", "heir")
    stream.send(message("n", 7))
    heir.turn_until(lambda: len(heir.recorders) == 1 and len(heir.recorders[0].analyzed) == 8)
    assert heir.recorders[0].analyzed == [*((sequence, True) for sequence in range(7)), (7, False)]
    rows = [json.loads(line) for line in (tmp_path / "f.jsonl").read_text().splitlines()]
    assert [row["state"] for row in rows] == ["Open", "Open"]  # it goes on, says the heir
    assert len({row["id"] for row in rows}) == 1
    labels = {"subsystem": "CPU", "severity": "High"}
    assert heir.metrics.registry.get_sample_value("reveal_findings_total", labels) is None
    assert heir.metric("reveal_verdict_seconds_count") == 1
    # the first wakes up and drops what it knew of the node
    assert first.worker.nodes == ["n"]
    first.turn_until(lambda: first.worker.nodes == [])


def _analyzer(*flags: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "reveal_analyzer", *flags],
        stderr=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip


@pytest.mark.parametrize(
    ("flags", "code", "logged"),
    [
        ([], 2, "redisUrl: is required"),
        (["--redis", "ftp://x"], 2, "redisUrl: must begin with"),
        (["--redis", "unix:///x", "--profile", "a{b}"], 2, "profile: must be"),
        (["--settings", "/nonexistent/s.json"], 1, "/nonexistent/s.json: No such file"),
        (["--settings", "bad.json"], 2, "none.yaml"),
        (["--redis", "unix:///x", "--sensitivity", "Huge"], 2, "invalid choice"),
    ],
)
def test_wrong_flags_give_a_single_sentence(
    flags: list[str], code: int, logged: str, tmp_path: Path
) -> None:
    settings = {"redisUrl": "unix:///x", "hypotheses": [str(tmp_path / "none.yaml")]}
    (tmp_path / "bad.json").write_text(json.dumps(settings))
    with _analyzer(
        *(flag.replace("bad.json", f"{tmp_path}/bad.json") for flag in flags)
    ) as process:
        _, text = process.communicate(timeout=20)
    assert process.returncode == code
    assert logged in text
    assert "Traceback" not in text


@pytest.mark.parametrize("hung", [False, True])
def test_sigterm_ends_the_process_within_a_second(
    stream: Stream, tmp_path: Path, hung: bool
) -> None:
    pytest.importorskip("reveal_analyzer.node")
    with _analyzer(
        "--redis", stream.url, "--jsonl", str(tmp_path / "f.jsonl"), "--drain-seconds", "0.7"
    ) as process:  # fmt: skip
        wait_until(lambda: stream.client.keys("reveal:*:owner"), "the analyzer owns a shard")
        server = int(stream.client.info("server")["process_id"])
        try:
            if hung:
                os.kill(server, signal.SIGSTOP)
            began = time.monotonic()
            process.send_signal(signal.SIGTERM)
            _, text = process.communicate(timeout=5)
            assert time.monotonic() - began < 1.5  # a second, and the interpreter's own end
        finally:
            os.kill(server, signal.SIGCONT)
    assert process.returncode == 0, text
    assert "Traceback" not in text
    if not hung:
        assert stream.client.keys("reveal:*:owner") == []
