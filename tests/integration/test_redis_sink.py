"""Slices into a real Redis: fields, announcements, outages, refusals, order."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import redis

from reveal_analyzer.telemetry.node_records import NodeRecords, node_shares
from reveal_collector.shipping import redis_sink, sinks
from reveal_collector.shipping.redis_sink import RedisSink
from reveal_collector.shipping.sinks import RecordingSink
from reveal_contract import names
from reveal_contract.channels import ChannelTable
from reveal_contract.cpu_shares import EQUAL_SHARES, CpuGroup, CpuMember, CpuShares
from reveal_contract.facts import Facts
from reveal_contract.recording import RecordingReader, RecordingWriter
from reveal_contract.redis_address import AddressError
from reveal_contract.settings import CollectorSettings
from support.polling import wait_until
from support.redis_sinks import (
    KEY,
    OTHER,
    TABLE,
    announced,
    facts_of,
    running,
    sequences,
    settings,
    shipment,
    status_of,
    subjects_of,
)


def test_a_slice_is_a_message_and_its_table_is_registered(redis_server: Path) -> None:
    client = redis.Redis(unix_socket_path=str(redis_server))
    with running(settings(redis_server)) as sink:
        sink.put(shipment(5))
        wait_until(lambda: sink.health().delivered == 1)
    [(_, fields)] = client.xrange(KEY)  # type: ignore[misc]
    assert fields == {
        b"n": b"n1", b"b": bytes(range(16)), b"q": b"5", b"s": TABLE.key.hex().encode(),
        b"t": b"7005", b"d": b"d" * 10,
    }  # fmt: skip
    assert announced(client) == {TABLE}


def test_a_new_table_is_announced_before_its_first_message(redis_server: Path) -> None:
    client = redis.Redis(unix_socket_path=str(redis_server))
    with running(settings(redis_server)) as sink:
        for sequence, table in enumerate((TABLE, OTHER, TABLE)):
            sink.put(shipment(sequence, table))
        wait_until(lambda: sink.health().delivered == 3)
    assert announced(client) == {TABLE, OTHER}


def test_the_status_of_the_node_is_published(redis_server: Path) -> None:
    client = redis.Redis(unix_socket_path=str(redis_server))
    with running(settings(redis_server)):
        wait_until(lambda: status_of(client))
        status: Any = status_of(client)
    assert json.loads(status) == {"table": TABLE.key.hex(), "sequence": 3}


def test_an_outage_loses_nothing_that_fits_the_buffer(redis_launcher: Any) -> None:
    server = redis_launcher()
    with running(settings(server.socket)) as sink:
        sink.put(shipment(0))
        wait_until(lambda: sink.health().delivered == 1)
        server.stop()
        for sequence in range(1, 50):
            sink.put(shipment(sequence))
        wait_until(lambda: sink.health().health_error)
        assert sink.health().buffered == 49
        server.start()  # empty: without persistence everything is forgotten
        wait_until(lambda: sink.health().delivered == 50)
        wait_until(lambda: not sink.health().health_error)
        client = redis.Redis(unix_socket_path=str(server.socket))
        assert sequences(client) == list(range(1, 50))
        assert announced(client) == {TABLE}
        assert sink.health().dropped == 0


def test_a_full_buffer_drops_and_counts_the_oldest_slices(redis_launcher: Any) -> None:
    server = redis_launcher()
    server.stop()
    with running(settings(server.socket, buffer_seconds=5)) as sink:
        for sequence in range(12):
            sink.put(shipment(sequence))
        assert (sink.health().buffered, sink.health().dropped) == (5, 7)
        server.start()
        wait_until(lambda: sink.health().delivered == 5)
        assert sequences(redis.Redis(unix_socket_path=str(server.socket))) == [7, 8, 9, 10, 11]


@pytest.mark.parametrize(
    ("break_it", "fix", "message"),
    [
        (("CONFIG", "SET", "maxmemory", "1"), ("CONFIG", "SET", "maxmemory", "0"), "OOM|maxmemory"),
        (("REPLICAOF", "127.0.0.1", "1"), ("REPLICAOF", "NO", "ONE"), "read only|READONLY"),
    ],
)
def test_refused_slices_are_retried_in_order(
    redis_server: Path,
    break_it: tuple[str, ...],
    fix: tuple[str, ...],
    message: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    client = redis.Redis(unix_socket_path=str(redis_server))
    client.execute_command(*break_it)
    with running(settings(redis_server)) as sink:
        for sequence in range(40):
            sink.put(shipment(sequence))
        wait_until(lambda: sink.health().health_error)
        assert any(word in sink.health().health_error for word in message.split("|"))
        assert sink.health().buffered == 40
        client.execute_command(*fix)
        wait_until(lambda: sink.health().delivered == 40)
    assert sequences(client) == list(range(40))
    own = (record for record in caplog.records if record.name == redis_sink.__name__)
    assert [record.levelname for record in own].count("WARNING") == 1


def test_a_wrong_password_is_reported_and_retried(redis_launcher: Any) -> None:
    server = redis_launcher("--requirepass", "right")
    with running(settings(server.socket)) as sink:
        sink.put(shipment(0))
        wait_until(lambda: sink.health().health_error)
        assert "uthentication" in sink.health().health_error
        assert sink.health().buffered == 1
    right = settings(server.socket, redis_url=f"unix://:right@{server.socket}")
    with running(right) as sink:
        sink.put(shipment(0))
        wait_until(lambda: sink.health().delivered == 1)


def test_a_table_that_redis_lost_is_registered_again(
    redis_server: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reveal_collector.shipping.redis_sink.STATUS_SECONDS", 0.0)
    client = redis.Redis(unix_socket_path=str(redis_server))
    with running(settings(redis_server)) as sink:
        sink.put(shipment(0))
        wait_until(lambda: sink.health().delivered == 1)
        client.delete(names.table_key("default", TABLE.key))

        def is_announced() -> bool:
            sink.put(shipment(1))  # the first after a status that found it gone
            return announced(client) == {TABLE}

        wait_until(is_announced)


@pytest.mark.parametrize("nodes", [3, 3000])
def test_the_stream_is_bounded_by_time_for_any_number_of_nodes(
    redis_server: Path, nodes: int
) -> None:
    """The other nodes of the shard have sent for 180 s; some macro nodes of Redis may stay."""
    client = redis.Redis(unix_socket_path=str(redis_server))
    per_second, now_ms = max(1, nodes // names.SHARDS), int(time.time() * 1000)
    with client.pipeline(transaction=False) as pipe:
        for age_s in range(180, 0, -1):
            for number in range(per_second):
                pipe.xadd(KEY, {"d": b"d" * 4096}, id=f"{now_ms - age_s * 1000}-{number}")
        pipe.execute()
    with running(settings(redis_server, stream_seconds=120)) as sink:
        for sequence in range(2):  # the first one shows the time of Redis
            sink.put(shipment(sequence))
            wait_until(lambda: sink.health().delivered == sequence + 1)  # noqa: B023
    entries: Any = client.xrange(KEY)
    ages_s = [(now_ms - int(entry_id.partition(b"-")[0])) / 1000 for entry_id, _ in entries]
    assert 118 <= max(ages_s) <= 122
    assert len(entries) == pytest.approx(120 * per_second, abs=2 * per_second + 2)


def test_a_node_with_a_wrong_clock_trims_nothing_of_others(redis_server: Path) -> None:
    client = redis.Redis(unix_socket_path=str(redis_server))
    client.xadd(KEY, {"d": "of another node"})
    with running(settings(redis_server)) as sink:
        for sequence in range(3):
            sink.put(replace(shipment(sequence), start_ns=2**62))
            wait_until(lambda: sink.health().delivered == sequence + 1)  # noqa: B023
    assert client.xlen(KEY) == 4


def test_buffered_slices_are_delivered_before_the_end_or_dropped_in_time(
    redis_launcher: Any,
) -> None:
    server = redis_launcher()
    sink = RedisSink(settings(server.socket))
    for sequence in range(20):
        sink.put(shipment(sequence))
    sink.start(dict)
    sink.close(5.0)
    assert len(sequences(redis.Redis(unix_socket_path=str(server.socket)))) == 20
    server.stop()
    sink = RedisSink(settings(server.socket))
    sink.start(dict)
    sink.put(shipment(0))
    began = time.monotonic()
    sink.close(0.3)
    assert time.monotonic() - began < 2


def test_a_bad_url_is_refused_immediately() -> None:
    with pytest.raises(AddressError, match="must begin with redis://"):
        RedisSink(CollectorSettings("n1", "nonsense"))


def test_a_recording_holds_what_was_shipped(tmp_path: Path) -> None:
    sink = RecordingSink(RecordingWriter(tmp_path / "r"))
    sink.start(dict)
    for sequence, table in enumerate((TABLE, OTHER)):
        sink.put(shipment(sequence, table))
    sink.close(1)
    assert [record.table for record in RecordingReader(tmp_path / "r")] == [TABLE, OTHER]
    assert sink.health().delivered == 2


def test_subjects_are_published_before_their_slices_and_only_on_change(
    redis_server: Path,
) -> None:
    client = redis.Redis(unix_socket_path=str(redis_server))
    status: dict[str, Any] = {"subjects": [{"instance": "ml/a", "kind": "Pod"}]}
    with running(settings(redis_server), lambda: status) as sink:
        sink.put(shipment(0))
        wait_until(lambda: sequences(client) == [0])
        assert json.loads(subjects_of(client)) == status["subjects"]
        client.hset(names.node_key("default", "n1"), names.SUBJECTS, "untouched")
        sink.put(shipment(1, OTHER))
        wait_until(lambda: sequences(client) == [0, 1])
        assert subjects_of(client) == b"untouched"
        status["subjects"] = [{"instance": "ml/b", "kind": "Pod"}]
        sink.put(shipment(2))
        wait_until(lambda: sequences(client) == [0, 1, 2])
        assert json.loads(subjects_of(client)) == status["subjects"]
        wait_until(lambda: status_of(client))
        assert "subjects" not in json.loads(status_of(client))


def test_cpu_shares_are_published_on_change_beside_the_status(redis_server: Path) -> None:
    client = redis.Redis(unix_socket_path=str(redis_server))
    shares = CpuShares((CpuGroup("/a", weight=4096.0),), (CpuMember("/a", "/a"),))
    status: dict[str, Any] = {names.CPU_SHARES: shares.to_rows()}
    assert node_shares(client, "default", "n1") == EQUAL_SHARES
    with running(settings(redis_server), lambda: status) as sink:
        sink.put(shipment(0))
        wait_until(lambda: sequences(client) == [0])
        assert node_shares(client, "default", "n1") == shares
        client.hset(names.node_key("default", "n1"), names.CPU_SHARES, "untouched")
        sink.put(shipment(1, OTHER))
        wait_until(lambda: sequences(client) == [0, 1])
        assert node_shares(client, "default", "n1") == EQUAL_SHARES
        status[names.CPU_SHARES] = EQUAL_SHARES.to_rows()
        sink.put(shipment(2))
        wait_until(lambda: sequences(client) == [0, 1, 2])
        stored: Any = client.hget(names.node_key("default", "n1"), names.CPU_SHARES)
        assert json.loads(stored) == EQUAL_SHARES.to_rows()
        wait_until(lambda: status_of(client))
        assert names.CPU_SHARES not in json.loads(status_of(client))


def test_two_profiles_on_a_node_have_subjects_and_status_of_their_own(redis_server: Path) -> None:
    client = redis.Redis(unix_socket_path=str(redis_server))
    pods = [{"instance": "ml/a", "kind": "Pod", "name": "a", "namespace": "ml", "uid": "u"}]

    def known(profile: str, part: str) -> Any:
        [record] = NodeRecords(client, profile).get(part, ["n1"])
        return None if record is None else json.loads(record)

    with (
        running(
            settings(redis_server, profile="a"), lambda: {"subjects": pods, "of": "a"}
        ) as first,
        running(settings(redis_server, profile="b"), lambda: {"subjects": [], "of": "b"}) as second,
    ):
        first.put(shipment(0))
        wait_until(lambda: first.health().delivered == 1)
        second.put(shipment(0))
        wait_until(lambda: second.health().delivered == 1)
        wait_until(lambda: known("a", names.STATUS) and known("b", names.STATUS))
        assert (known("a", names.SUBJECTS), known("b", names.SUBJECTS)) == (pods, [])
        assert (known("a", names.STATUS)["of"], known("b", names.STATUS)["of"]) == ("a", "b")
    assert not client.exists(names.node_key("a", "n1"))


def test_the_subjects_of_a_collector_of_an_earlier_version_are_known(redis_server: Path) -> None:
    client = redis.Redis(unix_socket_path=str(redis_server))
    client.hset(names.EARLIER_NODE_KEYS[names.SUBJECTS], "old", b"[]")
    client.hset(names.node_key("a", "new"), names.SUBJECTS, b"[1]")
    records = NodeRecords(client, "a")
    assert records.get(names.SUBJECTS, ["new", "old", "none"]) == [b"[1]", b"[]", None]
    fields = [names.STATUS, names.SUBJECTS, names.CPU_SHARES]
    assert records.fields("new", fields) == [None, b"[1]", None]
    assert records.fields("old", fields) == [None, b"[]", None]


def test_a_recording_has_the_subjects_when_they_change(tmp_path: Path) -> None:
    status: dict[str, Any] = {"subjects": [{"instance": "ml/a", "kind": "Pod"}]}
    sink = RecordingSink(RecordingWriter(tmp_path / "r"))
    sink.start(lambda: status)
    sink.put(shipment(1))
    sink.put(shipment(2))
    status["subjects"] = []
    sink.put(shipment(3))  # its table is the same, so it is looked at again in a while
    sink.put(shipment(5))
    sink.close(1)
    kinds = [record.note and record.note["subjects"] for record in RecordingReader(tmp_path / "r")]
    assert kinds == [[{"instance": "ml/a", "kind": "Pod"}], None, None, None, [], None]


def test_a_recording_has_the_cpu_shares_when_they_change(tmp_path: Path) -> None:
    shares = CpuShares((CpuGroup("/a"),))
    status: dict[str, Any] = {names.CPU_SHARES: shares.to_rows()}
    sink = RecordingSink(RecordingWriter(tmp_path / "r"))
    sink.start(lambda: status)
    for sequence, table in ((1, TABLE), (2, OTHER), (3, TABLE)):
        sink.put(shipment(sequence, table))
    sink.close(1)
    notes = [record.note for record in RecordingReader(tmp_path / "r") if record.note]
    assert notes == [{"node": "n1", names.CPU_SHARES: shares.to_rows()}]


def test_facts_are_published_immediately_when_they_change(redis_server: Path) -> None:
    client = redis.Redis(unix_socket_path=str(redis_server))
    with running(settings(redis_server)) as sink:
        for sequence, facts in enumerate((b"one", None, b"two")):
            sink.put(replace(shipment(sequence), facts=facts))
            wait_until(lambda: facts_of(client) == (facts or b"one"))  # noqa: B023


def test_facts_are_published_again_after_redis_lost_them(redis_server: Path) -> None:
    client = redis.Redis(unix_socket_path=str(redis_server))
    facts = b"the same"
    with running(settings(redis_server)) as sink:
        sink.put(replace(shipment(0), facts=facts))
        wait_until(lambda: facts_of(client) == facts)
        client.flushall()
        wait_until(lambda: facts_of(client) == facts)


def test_a_recording_holds_facts_once(tmp_path: Path) -> None:
    sink = RecordingSink(RecordingWriter(tmp_path / "r"))
    first, second = (Facts(node=name).to_json() for name in ("n", "m"))
    for sequence, facts in enumerate((None, first, first, second)):
        sink.put(replace(shipment(sequence), facts=facts))
    sink.close(1)
    found = [
        record.facts.node if record.facts else "" for record in RecordingReader(tmp_path / "r")
    ]
    assert found == ["", "n", "", "", "m", ""]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_is_reported_once_and_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    class Full(RecordingWriter):
        def message(self, data: bytes, table: ChannelTable) -> None:
            with Path("/dev/full").open("wb", buffering=0) as file:
                file.write(data)

    sink = RecordingSink(Full(Path("/dev/null")))
    for sequence in range(3):
        sink.put(shipment(sequence))
    assert sink.health().dropped == 3
    assert [record.name for record in caplog.records].count(sinks.__name__) == 1
    assert "No space left" in sink.health().health_error
