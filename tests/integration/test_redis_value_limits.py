"""Values of Redis over their limits: they are not transferred, and everything else is read."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import redis

from reveal_analyzer.evidence.store import RedisEvidence
from reveal_analyzer.node_history.stores import MOST_HOUR_BYTES, RedisHistory
from reveal_analyzer.state.codec import MAX_BYTES
from reveal_analyzer.state.store import NodeStateStore
from reveal_analyzer.stream.redis_connection import connect
from reveal_analyzer.telemetry import node_values
from reveal_analyzer.telemetry.limited_values import get_all_fields, get_fields, get_string
from reveal_analyzer.telemetry.node_records import NodeRecords, node_shares, node_subjects
from reveal_analyzer.telemetry.node_values import NodeValues, SavedRows
from reveal_analyzer.telemetry.states import StateStore, TelemetryState
from reveal_contract import names
from reveal_contract.cpu_shares import EQUAL_SHARES

PROFILE, NODE = "p", "n1"
RECORD = names.node_key(PROFILE, NODE)
LONG = bytes(8 << 20)


@pytest.fixture
def client(redis_server: Path) -> Iterator[redis.Redis]:
    with closing(connect(f"unix://{redis_server}")) as client:
        yield client


def transferred(client: redis.Redis, read: Callable[[], object]) -> int:
    """Return the bytes that Redis sent for a read, and some thousands for the count itself."""

    def sent() -> int:
        stats: Any = client.info("stats")
        return int(stats["total_net_output_bytes"])

    before = sent()
    read()
    return sent() - before


def test_strings_and_fields_are_read_up_to_their_limit(client: redis.Redis) -> None:
    client.set("reveal:s", b"12345")
    client.hset("reveal:h", mapping={"a": b"12345", "b": b"123456", "empty": b""})
    assert [get_string(client, "reveal:s", most) for most in (4, 5, 6)] == [5, b"12345", b"12345"]
    assert get_string(client, "reveal:none", 5) is None
    fields = ["a", "b", "none", "empty"]
    assert get_fields(client, "reveal:h", fields, 5) == [b"12345", 6, None, b""]
    assert get_fields(client, "reveal:none", fields, 5) == [None] * 4
    assert get_all_fields(client, "reveal:h", 5) == {b"a": b"12345", b"b": 6, b"empty": b""}
    assert get_all_fields(client, "reveal:none", 5) == {}


def test_a_key_of_another_type_is_not_there(client: redis.Redis) -> None:
    client.lpush("reveal:l", "a")
    assert get_string(client, "reveal:l", 5) is None
    assert get_fields(client, "reveal:l", ["a", "b"], 5) == [None, None]
    assert get_all_fields(client, "reveal:l", 5) == {}


def test_what_is_over_the_limit_is_not_transferred(client: redis.Redis) -> None:
    client.set("reveal:s", LONG)
    client.hset("reveal:h", "f", LONG)
    reads: list[Callable[[], object]] = [
        lambda: get_string(client, "reveal:s", 1000),
        lambda: get_fields(client, "reveal:h", ["f"], 1000),
        lambda: get_all_fields(client, "reveal:h", 1000),
    ]
    assert all(transferred(client, read) < 100_000 for read in reads)


@pytest.mark.parametrize(
    ("field", "most"),
    [(names.SUBJECTS, 4 << 20), (names.CPU_SHARES, 4 << 20), (names.STATUS, 1 << 20)],
)
def test_what_a_node_announced_is_used_up_to_its_limit(
    client: redis.Redis, field: str, most: int, caplog: pytest.LogCaptureFixture
) -> None:
    records = NodeRecords(client, PROFILE)
    client.hset(RECORD, field, b" " * most)
    assert records.get(field, [NODE]) == [b" " * most]
    client.hset(RECORD, field, b" " * (most + 1))
    client.hset(names.node_key(PROFILE, "n2"), field, b"[]")
    for _ in range(2):
        assert records.get(field, [NODE, "n2"]) == [None, b"[]"]
    assert caplog.text.count(f"{field} of node {NODE} are not used") == 1
    assert transferred(client, lambda: records.get(field, [NODE])) < 100_000


def test_subjects_shares_and_states_over_the_limit_count_as_none(client: redis.Redis) -> None:
    for field in (names.SUBJECTS, names.CPU_SHARES):
        client.hset(RECORD, field, LONG)
    client.hset(RECORD, names.STATUS, b'{"degraded": ["%s"]}' % (b"x" * (1 << 20)))
    assert node_subjects(client, PROFILE, [NODE]) == {NODE: ()}
    assert node_shares(client, PROFILE, NODE) == EQUAL_SHARES
    assert StateStore(client, PROFILE, "one").degraded([NODE]) == []


def test_the_state_of_an_analyzer_over_a_mebibyte_is_removed(client: redis.Redis) -> None:
    key, store = names.fleet_key(PROFILE, "states"), StateStore(client, PROFILE, "one")
    store.put(TelemetryState(3, 1))
    client.hset(key, "forged", json.dumps([1.0, 1, 1, [], ["x" * (1 << 20)]]))
    assert store.get() == TelemetryState(3, 1)
    assert client.hkeys(key) == [b"one"]


def test_a_saved_state_over_its_limit_is_left_out(client: redis.Redis) -> None:
    store = NodeStateStore(client, PROFILE)
    store.save({NODE: b"x" * MAX_BYTES})
    assert store.of_node(NODE) == b"x" * MAX_BYTES
    assert store.of_shard(names.shard(NODE)) == {NODE: b"x" * MAX_BYTES}
    store.save({NODE: b"x" * (MAX_BYTES + 1)})
    assert store.of_node(NODE) is None
    assert store.of_shard(names.shard(NODE)) == {}


def test_a_shared_value_over_its_limit_is_logged_once(
    client: redis.Redis, caplog: pytest.LogCaptureFixture
) -> None:
    values = NodeValues(client, "reveal:h", 60, lambda _, data: data, "summary")
    values.put({NODE: LONG, "n2": b"2"})
    for _ in range(2):
        assert values.get([NODE, "n2"]) == {"n2": b"2"}
    assert caplog.text.count("summary of n1 cannot be used") == 1


def test_saved_rows_over_their_limit_are_none(
    client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = SavedRows(client, "reveal:s", 60)
    rows.save([1] * 1000)
    assert rows.load() == [1] * 1000
    monkeypatch.setattr(node_values, "_MOST_ROWS", 2999)
    assert rows.load() == []


def test_samples_of_a_finding_over_their_limit_are_not_there(client: redis.Redis) -> None:
    evidence = RedisEvidence(client, PROFILE, 60)
    client.set(names.evidence_key(PROFILE, "cpu-1"), LONG)
    assert evidence.get("cpu-1") is None


def test_of_an_hour_over_its_limit_the_beginning_is_read(client: redis.Redis) -> None:
    client.set(names.history_key(PROFILE, NODE, 1), b"x" * (MOST_HOUR_BYTES + 9))
    history = RedisHistory(client, PROFILE, 1)
    assert history.read(NODE, 1) == b"x" * MOST_HOUR_BYTES
    assert history.read(NODE, 2) == b""
