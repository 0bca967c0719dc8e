"""Every key has an end: whatever becomes of its writer, nothing stays in Redis for ever."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import redis

from reveal_analyzer.fleet.exchange import Exchange
from reveal_analyzer.fleet.fleet import Fleet
from reveal_analyzer.stream.upkeep import EARLIER_KEPT_SECONDS, StreamUpkeep
from reveal_analyzer.telemetry.states import StateStore, TelemetryState
from reveal_collector.shipping.node_record import NodeRecord
from reveal_contract import names
from support.polling import wait_until
from support.redis_sinks import (
    KEY,
    OTHER,
    TABLE,
    facts_of,
    running,
    settings,
    shipment,
    status_of,
    subjects_of,
)
from support.redis_streams import Stream, count, message, read


def keys_of(client: redis.Redis) -> list[Any]:
    found: Any = client.keys()
    return list(found)


def test_every_key_ends_after_its_collector(
    redis_server: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However it ends: what an orderly end would remove is not even needed."""
    monkeypatch.setattr(NodeRecord, "withdraw", lambda _: None)
    client = redis.Redis(unix_socket_path=str(redis_server))
    with running(settings(redis_server), lambda: {"subjects": [{"instance": "a"}]}) as sink:
        for sequence, table in enumerate((TABLE, OTHER)):
            sink.put(replace(shipment(sequence, table), facts=b"{}"))
        wait_until(lambda: sink.health().delivered == 2 and facts_of(client) and status_of(client))
    limits = {key: client.ttl(key) for key in keys_of(client)}
    assert len(limits) == 4  # stream, node and two tables
    assert all(0 < limit <= names.KEPT_SECONDS for limit in limits.values()), limits


def test_time_limits_are_renewed_for_what_is_in_use(
    redis_server: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reveal_collector.shipping.redis_sink.STATUS_SECONDS", 0.0)
    monkeypatch.setattr("reveal_collector.shipping.redis_sink.EXPIRY_SECONDS", 0.0)
    client = redis.Redis(unix_socket_path=str(redis_server))
    used = [KEY, names.node_key("default", "n1"), names.table_key("default", OTHER.key)]
    with running(settings(redis_server)) as sink:
        sink.put(shipment(0))
        sink.put(shipment(1, OTHER))
        wait_until(lambda: sink.health().delivered == 2 and status_of(client))
        for key in keys_of(client):
            client.expire(key, 50)
        sink.put(shipment(2, OTHER))
        wait_until(lambda: all(client.ttl(key) > 50 for key in used))
        assert client.ttl(names.table_key("default", TABLE.key)) <= 50


def test_what_somebody_deleted_of_a_node_is_written_again(
    redis_server: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reveal_collector.shipping.redis_sink.STATUS_SECONDS", 0.0)
    client = redis.Redis(unix_socket_path=str(redis_server))
    with running(settings(redis_server), lambda: {"subjects": [1]}) as sink:
        sink.put(replace(shipment(0), facts=b"{}"))
        wait_until(lambda: facts_of(client) and status_of(client))
        client.delete(names.node_key("default", "n1"))
        sink.put(shipment(1))
        wait_until(lambda: status_of(client))
        sink.put(shipment(2))
        wait_until(lambda: facts_of(client) == b"{}" and subjects_of(client) == b"[1]")


def test_every_key_that_an_analyzer_writes_has_an_end(stream: Stream) -> None:
    """However it ends: nothing is left of a profile that was deleted."""
    tables = stream.client.keys(names.table_key("default", b"") + "*")  # those of collectors
    reader = stream.reader()
    stream.send(message("n", 0))
    read(reader, count(1))
    reader.states.save({"n": b"state"})
    fleet = Fleet(stream.client, "default", "one")
    fleet.advance(time.monotonic())
    assert fleet.leads
    Exchange(stream.client, "default").cases.save([])
    Exchange(stream.client, "default").groups.save([])
    StateStore(stream.client, "default", "one").put(TelemetryState(1, 0))
    keys = set(stream.client.keys()) - set(tables)
    assert len(keys) > 2 * names.SHARDS
    assert [key for key in keys if stream.client.ttl(key) < 0] == []


def test_keys_of_collectors_of_an_earlier_version_get_an_end_once(stream: Stream) -> None:
    keys = [names.EARLIER_TABLES_KEY, *names.EARLIER_NODE_KEYS.values()]
    for key in keys:
        stream.client.hset(key, "n", b"{}")
    StreamUpkeep(stream.client, "default").run([])
    assert [stream.client.ttl(key) for key in keys] == [EARLIER_KEPT_SECONDS] * len(keys)
    stream.client.expire(keys[0], 50)
    StreamUpkeep(stream.client, "default").run([])
    assert stream.client.ttl(keys[0]) <= 50


def test_a_stream_without_collectors_ends(stream: Stream) -> None:
    """Whatever its clock was: the ids of entries do not say whether somebody still adds."""
    shard = names.shard("n")
    key = names.samples_key("default", shard)
    upkeep = StreamUpkeep(stream.client, "default")

    def left_after_run() -> int:
        stream.client.expire(key, 50)
        upkeep.run([shard])
        return int(stream.client.ttl(key))

    stream.client.xadd(key, {"d": ""}, id="1-0")
    assert left_after_run() == names.KEPT_SECONDS
    assert left_after_run() <= 50
    stream.client.xadd(key, {"d": ""}, id="2-0")
    assert left_after_run() == names.KEPT_SECONDS
    stream.client.persist(key)
    upkeep.run([shard])
    assert stream.client.ttl(key) == names.KEPT_SECONDS


def test_an_empty_stream_waits_for_its_collectors(stream: Stream) -> None:
    key = names.samples_key("default", 5)
    stream.client.xgroup_create(key, names.GROUP, id="0", mkstream=True)
    stream.client.expire(key, 50)
    StreamUpkeep(stream.client, "default").run([5])
    assert stream.client.ttl(key) == names.KEPT_SECONDS


def test_what_is_not_a_stream_is_left_alone(stream: Stream) -> None:
    key = names.samples_key("default", 5)
    stream.client.set(key, "somebody else's")
    StreamUpkeep(stream.client, "default").run([5])
    assert stream.client.ttl(key) == -1
