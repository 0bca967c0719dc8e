"""Whatever somebody puts into a key of Reveal: nothing else stops, and it is named."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest
import redis

from reveal_analyzer.evidence.store import RedisEvidence
from reveal_analyzer.fleet.fleet import Fleet, FleetTiming
from reveal_analyzer.fleet.leader import Leader, LeaseTiming
from reveal_analyzer.node import NodeAnalyzer
from reveal_analyzer.node_history.stores import RedisHistory
from reveal_analyzer.sinks.jsonl import JsonlSink
from reveal_analyzer.sinks.metrics import Metrics
from reveal_analyzer.stream.redis_connection import connect
from reveal_analyzer.telemetry.states import StateStore, TelemetryState
from reveal_analyzer.worker import Worker
from reveal_contract import names
from reveal_contract.recording import MAGIC
from reveal_contract.settings import AnalyzerSettings
from support.polling import wait_until
from support.redis_streams import QUICK, Stream, count, message, node_sequences, read

PROFILE, NODE = "default", "n"
SHARD = names.shard(NODE)
OTHER = next(f"m{i}" for i in range(99) if names.shard(f"m{i}") != SHARD)

SAMPLES = MAGIC  # a recording without an entry
KEYS = {
    "saved states": names.node_states_key(PROFILE, SHARD),
    "node": names.node_key(PROFILE, NODE),
    "summaries": names.fleet_key(PROFILE),
    "states of analyzers": names.fleet_key(PROFILE, "states"),
    "ranks": names.fleet_key(PROFILE, "ranks"),
    "unfinished evidence": names.evidence_unfinished_key(PROFILE),
    "stream": names.samples_key(PROFILE, SHARD),
    "analyzers": names.analyzers_key(PROFILE),
    "leader": names.fleet_key(PROFILE, "leader"),
    "cases": names.fleet_key(PROFILE, "cases"),
    "groups": names.fleet_key(PROFILE, "groups"),
    "cases of ranks": names.fleet_key(PROFILE, "rank-cases"),
    "index of evidence": names.evidence_index_key(PROFILE),
    "evidence": names.evidence_key(PROFILE, "cpu-1"),
    "history": names.history_key(PROFILE, NODE, 1),
}


def put(client: redis.Redis, key: str) -> None:
    """Put a list, which Reveal has nowhere."""
    client.delete(key)
    client.lpush(key, "a")


def used(client: redis.Redis) -> None:
    """Use each key that is not of the stream, as the parts of an analyzer do."""
    StateStore(client, PROFILE, "one").put(TelemetryState(1, 0))
    StateStore(client, PROFILE, "one").get()
    StateStore(client, PROFILE, "one").degraded([NODE, OTHER])
    evidence = RedisEvidence(client, PROFILE, 60)
    evidence.put("cpu-2", evidence.encoded(SAMPLES), {"id": "cpu-2"})
    assert evidence.get("cpu-2") is not None
    evidence.get("cpu-1")
    evidence.unfinished()
    history = RedisHistory(client, PROFILE, 1)
    history.append(NODE, 1, b"part")
    history.append(NODE, 2, b"part")
    assert history.read(NODE, 2) == b"part"
    history.read(NODE, 1)


@pytest.mark.parametrize("key", KEYS.values(), ids=KEYS)
def test_the_other_nodes_are_analyzed_and_a_condition_names_the_key(
    stream: Stream, tmp_path: Path, key: str
) -> None:
    stream.send(message(NODE, 0))
    put(stream.client, key)
    stream.send(message(OTHER, 0))
    reader = stream.reader(timing=QUICK)
    client = reader.connection.client
    fleet = Fleet(client, PROFILE, "one", FleetTiming(step=0.0))
    metrics, sinks = Metrics(), [JsonlSink(tmp_path / "f.jsonl")]

    def analysis(node: str) -> NodeAnalyzer:
        return NodeAnalyzer(node, AnalyzerSettings())

    worker = Worker(reader, analysis, sinks, metrics, fleet)
    wait_until(_turns(worker, lambda: OTHER in worker.nodes), "the other node is analyzed")
    used(client)
    named = reader.connection.degradations
    wait_until(_turns(worker, lambda: _is_named(named, key)), "the key is named")
    assert reader.connected
    assert reader.connection.outages == 0
    before = _slices(metrics)
    stream.send(message(OTHER, 1))
    wait_until(_turns(worker, lambda: _slices(metrics) > before), "the next slice is analyzed")
    worker.close()


def _turns(worker: Worker, condition: Callable[[], bool]) -> Callable[[], bool]:
    def turn() -> bool:
        worker.turn()
        return condition()

    return turn


def _slices(metrics: Metrics) -> float:
    found = metrics.registry.get_sample_value("reveal_slices_total")
    assert found is not None
    return found


def _is_named(degradations: Callable[[], list[tuple[str, int, str]]], key: str) -> bool:
    return any(key in message for _, _, message in degradations())


def test_a_shard_is_read_again_when_the_key_is_deleted(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reveal_analyzer.stream.consumer._RETRY_SECONDS", 0.1)
    key = names.samples_key(PROFILE, SHARD)
    stream.client.set(key, "text")
    stream.send(message(OTHER, 0))
    reader = stream.reader()
    read(reader, count(1))
    stream.client.delete(key)
    stream.send(message(NODE, 0))
    assert node_sequences(read(reader, count(1))) == [(NODE, 0)]


def test_a_key_instead_of_the_leaders_lease_ends(stream: Stream) -> None:
    key = names.fleet_key(PROFILE, "leader")
    stream.client.lpush(key, "a")
    client = connect(stream.url)
    leader = Leader(client, PROFILE, "one", LeaseTiming(lease=0.2, renewal=0.0))
    assert not leader.renew()
    wait_until(leader.renew, "the key has ended")
    stream.client.set(key, "squatted")
    second = Leader(client, PROFILE, "two", LeaseTiming(lease=0.2, renewal=0.0))
    assert not second.renew()
    wait_until(second.renew, "the key has ended")
    client.close()


def test_the_lease_of_another_leader_stays(stream: Stream) -> None:
    client = connect(stream.url)
    timing = LeaseTiming(lease=5.0, renewal=0.0)
    assert Leader(client, PROFILE, "one", timing).renew()
    before = time.monotonic()
    assert not Leader(client, PROFILE, "two", timing).renew()
    left: int = stream.client.pttl(names.fleet_key(PROFILE, "leader"))
    assert left > 5000 - (time.monotonic() - before) * 1000 - 1000
    client.close()


def test_a_name_of_an_analyzer_that_is_no_text_stops_nobody(stream: Stream) -> None:
    later_ms = (time.time() + 60) * 1000
    stream.client.zadd(names.analyzers_key(PROFILE), {b"\xff\xfe": later_ms})
    stream.send(message(OTHER, 0))
    assert node_sequences(read(stream.reader(), count(1))) == [(OTHER, 0)]
