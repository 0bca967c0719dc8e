"""Samples of findings on a real Redis: kept, bounded, continued by the next analyzer, and read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reveal_analyzer.evidence import follows
from reveal_analyzer.evidence.factory import keep_samples, store_of
from reveal_analyzer.evidence.piece import EvidenceWriter
from reveal_analyzer.evidence.recorder import EvidenceRecorder, RedisSource
from reveal_analyzer.evidence.samples import Samples
from reveal_analyzer.evidence.store import (
    MOST_FINDINGS,
    FolderEvidence,
    RedisEvidence,
    load_evidence,
)
from reveal_analyzer.node import NodeAnalyzer
from reveal_analyzer.sinks.jsonl import JsonlSink
from reveal_analyzer.sinks.metrics import Metrics
from reveal_analyzer.telemetry.snapshot import Snapshot
from reveal_analyzer.worker import Worker
from reveal_cli.__main__ import main
from reveal_cli.recordings import Slices
from reveal_cli.replay import replay
from reveal_contract import names, wire
from reveal_contract.finding import Evidence, Finding, FindingChange, FindingUpdate, State
from reveal_contract.settings import AnalyzerSettings
from reveal_operator.settings import analyzer_settings
from reveal_operator.spec import parse
from support.evidence_samples import FIRST_NS
from support.fake_clock import FakeClock
from support.polling import wait_until
from support.profile_factory import profile
from support.redis_streams import QUICK, T0, Stream, message
from support.stub_analyses import OPENING, NodeStub
from support.synthetic_node import TABLE, Node

NODE = "n1"
KEPT_S = 120  # as the collector trims the stream
FAULT = {
    "cpu.pressure.some": 900_000.0,
    "cpu.procs_running": 30.0,
    "cpu.context_switches": 90_000.0,
}
MOST_BYTES = 98_304


class Analyzer:
    """The analysis of the node with a recorder; each second of the node is a second of both."""

    def __init__(self, stream: Stream, clock: FakeClock, before: Analyzer | None = None) -> None:
        self.analysis = NodeAnalyzer(NODE, AnalyzerSettings())
        self.store = RedisEvidence(stream.client, "default", 86_400)
        source = RedisSource.of(stream.client, "default")
        self.recorder = EvidenceRecorder(EvidenceWriter(source, self.store, MOST_BYTES), clock)
        self.recorder.watch([names.shard(NODE)])
        self.findings: dict[str, Finding] = {}
        if before is not None:
            self.analysis.restore(before.analysis.save())
            self._take(self.analysis.finish())

    def second(self, slice_: wire.Message) -> None:
        self._take(self.analysis.analyze(slice_, TABLE))
        self.recorder.run_due()

    def _take(self, updates: list[FindingUpdate]) -> None:
        for update in updates:
            if update.change is not FindingChange.SUSPECTED:
                self.findings[update.finding.id] = update.finding
            self.recorder.write(update)


class Watched:
    """A node whose slices go to the stream and to an analyzer."""

    def __init__(self, stream: Stream) -> None:
        self.stream, self.clock, self.node = stream, FakeClock(), Node()
        stream.announce(TABLE)
        self.analyzer = Analyzer(stream, self.clock)

    def run_to(self, second: int, changed: dict[str, float] | None = None) -> None:
        key = names.samples_key("default", names.shard(NODE))
        while self.node.second < second:
            slice_ = self.node.slice(changed)
            fields = {
                names.FIELD_NODE: NODE, names.FIELD_TIME: slice_.start_ns,
                names.FIELD_DATA: wire.encode(slice_, wire.gauges(TABLE)),
            }  # fmt: skip
            self.stream.raw(NODE, fields)
            self.stream.client.xtrim(key, maxlen=KEPT_S, approximate=False)
            self.clock.now += 1
            self.analyzer.second(slice_)

    def restart(self) -> None:
        """Let another analyzer continue with what was saved."""
        self.analyzer = Analyzer(self.stream, self.clock, self.analyzer)

    def kept_or_none(self, of: Finding) -> bytes | None:
        """Return the recording."""
        return self.analyzer.store.get(of.id)

    def kept(self, of: Finding) -> dict[int, int]:
        """Return the ticks of each second that is kept."""
        samples = Samples.from_recording(load_evidence(self.analyzer.store, of.id))
        return {(each.start_ns - FIRST_NS) // 10**9: each.ticks for each in samples.slices}


def seconds_of(of: Finding) -> tuple[int, int]:
    onset, end = of.first_observed_ns, of.last_observed_ns
    return (onset - FIRST_NS) // 10**9, (end - FIRST_NS) // 10**9


@pytest.fixture
def watched(stream: Stream) -> Watched:
    return Watched(stream)


def only_finding(watched: Watched) -> Finding:
    [found] = watched.analyzer.findings.values()
    return found


def test_a_finding_is_kept_across_restarts_and_read_after_its_node_has_gone(
    watched: Watched, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    watched.run_to(100)
    watched.run_to(120, FAULT)
    watched.restart()
    watched.run_to(240, FAULT)
    watched.run_to(255)
    over = only_finding(watched)
    assert over.state is State.RESOLVED
    watched.restart()  # its samples after the end are still to come
    watched.run_to(330)
    assert watched.analyzer.store.unfinished() == {}
    for key in (names.samples_key("default", names.shard(NODE)), names.node_key("default", NODE)):
        watched.stream.client.delete(key)
    onset, end = seconds_of(over)
    kept = watched.kept(over)
    assert set(kept) == set(range(onset - 60, end + 61))
    assert {second for second, ticks in kept.items() if ticks == 1} == set(
        range(onset + 61, end - 60)
    )
    file = tmp_path / "evidence.rvl"
    file.write_bytes(load_evidence(watched.analyzer.store, over.id))
    replayed = replay(Slices(file), AnalyzerSettings(warmup_seconds=50))
    assert [found.claim for found in replayed.finding_log.findings][:1] == [over.claim]
    assert main(["explain", str(file), "--span", "60/90", "--json"]) == 0
    ranking = json.loads(capsys.readouterr().out)["ranking"]
    assert ranking[0]["metric"] in FAULT


def test_the_newest_findings_are_kept_for_a_limited_time(stream: Stream) -> None:
    clock = FakeClock()
    store = RedisEvidence(stream.client, "default", 600, clock)
    for number in range(MOST_FINDINGS + 3):
        clock.now += 0.1
        store.put(f"cpu-{number}", store.encoded(Samples().to_recording()), {"finding": {}})
    keys = stream.client.keys("*:evidence:*")
    assert len(keys) == MOST_FINDINGS + 2
    assert set(store.unfinished()) == {f"cpu-{number}" for number in range(3, MOST_FINDINGS + 3)}
    assert all(0 < stream.client.ttl(key) <= 600 for key in keys)
    clock.now += 601
    store.put("memory-1", store.encoded(Samples().to_recording()), None)
    assert stream.client.zrange(names.evidence_index_key("default"), 0, -1) == [b"memory-1"]
    with pytest.raises(KeyError):
        load_evidence(store, "cpu-3")


def test_a_long_finding_stays_within_its_bytes(watched: Watched) -> None:
    watched.analyzer.recorder._writer = EvidenceWriter(
        RedisSource.of(watched.stream.client, "default"), watched.analyzer.store, 4_500
    )
    watched.run_to(100)
    watched.run_to(240, FAULT)
    size = watched.stream.client.strlen(names.evidence_key("default", only_finding(watched).id))
    assert 2_000 < size <= 4_500
    kept = watched.kept(only_finding(watched))
    assert {100, 239 - 18} <= set(kept)


def test_a_full_redis_loses_samples_for_a_while_and_no_finding(watched: Watched) -> None:
    client, recorder = watched.stream.client, watched.analyzer.recorder
    watched.run_to(100)
    watched.run_to(106, FAULT)
    used = int(client.info("memory")["used_memory"])
    client.config_set("maxmemory", used * 10 // 9)
    watched.clock.now += follows.FIRST_S
    assert recorder.run_due()
    [lost] = recorder.degradations()
    assert lost.reason == "EvidenceNotKept"
    assert "raise maxmemory" in lost.message
    assert watched.kept_or_none(only_finding(watched)) is None
    client.config_set("maxmemory", "0")
    watched.run_to(130, FAULT)
    assert recorder.degradations() == []
    onset, _ = seconds_of(only_finding(watched))
    assert min(watched.kept(only_finding(watched))) == onset - 60


class Slow(NodeStub):
    """An analysis whose finding has evidence."""

    def _finding(self) -> Finding:
        begin = T0 + OPENING * 10**9
        evidence = (Evidence("cpu.user", "mean", "", "9", "1", "ns/s", "up"),)
        return replace(
            super()._finding(), evidence=evidence, first_observed_ns=begin, last_observed_ns=begin
        )


def test_the_loop_of_an_analyzer_reports_where_the_samples_are(
    stream: Stream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follows, "FIRST_S", 0.0)
    settings = AnalyzerSettings(redis_url=stream.url)
    recorder = keep_samples(settings).recorder
    assert recorder is not None
    file = tmp_path / "f.jsonl"
    reader = stream.reader("one", timing=QUICK)
    snapshots: list[Snapshot] = []
    worker = Worker(reader, Slow, [JsonlSink(file)], Metrics(), observe=snapshots.append)
    worker.keep_evidence(recorder)
    stream.send(*(message("n", sequence) for sequence in range(OPENING + 1)))

    def rows() -> list[dict[str, Any]]:
        worker.turn()
        return [json.loads(line) for line in file.read_text().splitlines()]

    wait_until(lambda: any("evidenceRef" in row for row in rows()))
    first, *_, last = rows()
    assert "evidenceRef" not in first
    assert last["evidenceRef"] == {"store": "Redis", "name": last["id"]}
    assert Samples.from_recording(load_evidence(store_of(settings), last["id"])).slices
    assert snapshots[-1].degraded == ()
    worker.close()
    reader.close()


@pytest.mark.parametrize(
    ("spec", "kind"),
    [
        ({}, "Redis"),
        ({"evidence": {"store": "Folder", "claimName": "samples"}}, "Folder"),
        ({"evidence": {"store": "None"}}, ""),
    ],
)
def test_the_store_is_that_of_the_profile(stream: Stream, spec: dict[str, Any], kind: str) -> None:
    settings = replace(analyzer_settings(parse(profile(spec)), stream.url), samples_port=0)
    recorder = keep_samples(settings).recorder
    assert (recorder.kind if recorder else "") == kind
    if recorder is not None:
        recorder.close()


def test_the_command_reads_what_is_kept(
    stream: Stream,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(names.REDIS_VARIABLE, raising=False)
    recording = Samples().to_recording()
    stores = (
        RedisEvidence(stream.client, "mine", 600), FolderEvidence(tmp_path / "samples", 600),
    )  # fmt: skip
    for store in stores:
        store.put("cpu-1", store.encoded(recording), None)
    file = tmp_path / "out.rvl"
    redis_flags = ["--redis", stream.url, "--profile", "mine"]
    for flags in (redis_flags, ["--folder", str(tmp_path / "samples")]):
        file.unlink(missing_ok=True)
        assert main(["evidence", "cpu-1", "-o", str(file), *flags]) == 0
        assert file.read_bytes() == recording
        assert main(["evidence", "cpu-2", "--output", str(file), *flags]) == 1
        assert "there are no samples of cpu-2" in capsys.readouterr().err
    stream.client.set(names.evidence_key("mine", "cpu-1"), b"damaged")
    assert main(["evidence", "cpu-1", "-o", str(file), *redis_flags]) == 1
    assert "damaged" in capsys.readouterr().err
    gone = ["--redis", f"unix://{tmp_path}/none"]
    assert main(["evidence", "cpu-1", "-o", str(file), *gone]) == 1
    assert main(["evidence", "cpu-1", "-o", str(file), "--redis", "http://x"]) == 2
    assert main(["evidence", "cpu-1", "-o", str(file)]) == 2
    assert main(["evidence", "cpu-1", "-o", str(file), *gone, "--folder", str(tmp_path)]) == 2
