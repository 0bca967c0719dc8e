"""The stream reader against a real Redis: leases, take-over, outages."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import redis

from reveal_analyzer.stream.leases import LeaseTiming, rank
from reveal_analyzer.stream.reader import StreamReader
from reveal_contract import names
from reveal_contract.settings import AnalyzerSettings
from support.polling import wait_until
from support.redis_streams import (
    QUICK,
    Stream,
    beats,
    count,
    message,
    node_sequences,
    read,
)


def test_a_single_analyzer_owns_all_shards_within_a_second(stream: Stream) -> None:
    reader = stream.reader(timing=LeaseTiming())
    began = time.monotonic()
    reader.poll()
    assert len(reader.shards) == names.SHARDS
    assert reader.connected
    assert time.monotonic() - began < 1


def test_two_analyzers_share_the_shards_by_rank(stream: Stream) -> None:
    first, two = stream.reader("one"), stream.reader("two")
    deadline = time.monotonic() + 45  # only ends a test that hangs
    while set(first.shards) & set(two.shards) or len(first.shards) + len(two.shards) < names.SHARDS:
        assert time.monotonic() < deadline
        first.poll()
        two.poll()
    expected = [shard for shard in range(names.SHARDS) if rank(shard, "one", ["two"]) == 0]
    while sorted(first.shards) != expected:
        assert time.monotonic() < deadline, (first.shards, expected)
        first.poll()
        two.poll()
    assert 20 <= len(expected) <= 44


@pytest.mark.slow
def test_default_timing_allows_takeover_within_ten_seconds(stream: Stream) -> None:
    dead, heir = (
        stream.reader("dead", timing=LeaseTiming()),
        stream.reader("heir", timing=LeaseTiming()),
    )
    dead.poll()
    heir.poll()
    assert len(dead.shards) == names.SHARDS
    died = time.monotonic()
    while len(heir.shards) < names.SHARDS:
        heir.poll()
        assert time.monotonic() - died < 10


def test_a_dead_analyzers_shards_and_unfinished_slices_are_taken_over(stream: Stream) -> None:
    nodes = [f"node-{i}" for i in range(20)]
    dead = stream.reader("dead")
    stream.send(*(message(node, sequence) for sequence in range(3) for node in nodes))
    got = read(dead, count(60), ack=False)
    dead.ack([item for item in got if item.message.sequence < 2])
    heir = stream.reader("heir")
    assert heir.poll() == []
    assert heir.shards == []
    began = time.monotonic()  # the first polls no more: as good as killed
    got = read(heir, lambda got: sum(not item.history for item in got) == 20)
    assert time.monotonic() - began < QUICK.lease + 2 * QUICK.patience + 1
    assert len(heir.shards) == names.SHARDS
    for node in nodes:
        mine = [item for item in got if item.node == node]
        assert [item.message.sequence for item in mine] == [0, 1, 2]
        assert [item.history for item in mine] == [True, True, False]
        assert [item.gap for item in mine] == [0, 0, 0]
    assert stream.client.xpending(names.samples_key("default", names.shard("node-0")), names.GROUP)[
        "consumers"
    ] in ([], None)
    stream.send(message("node-0", 3))
    assert node_sequences(read(heir, count(1))) == [("node-0", 3)]
    # the dead one wakes up: it must see that it owns nothing, and say whose state is stale
    assert dead.poll() == []
    assert dead.shards == []
    assert set(dead.lost_nodes()) == set(nodes)
    assert dead.lost_nodes() == []


def test_shards_of_a_closed_analyzer_are_taken_over_immediately(stream: Stream) -> None:
    never_expires = LeaseTiming(lease=600)
    first, two = stream.reader("one", timing=never_expires), stream.reader("two", timing=QUICK)
    first.poll()
    two.poll()
    assert len(first.shards) == names.SHARDS
    first.close()
    read(two, lambda _: len(two.shards) == names.SHARDS)


def test_a_lease_of_another_owner_is_never_renewed(stream: Stream) -> None:
    reader = stream.reader("one")
    reader.poll()
    key = names.owner_key("default", 5)
    stream.client.set(key, "other", px=5000)
    read(reader, lambda _: 5 not in reader.shards)
    assert stream.client.get(key) == b"other"
    assert stream.client.pttl(key) > 1000, "renewed although another holds it"
    reader.close()
    assert stream.client.get(key) == b"other"


def poll_until(reader: StreamReader, done: Callable[[], bool]) -> None:
    """Poll, so that leases are renewed, until something is true."""

    def polled() -> bool:
        reader.poll()
        return done()

    wait_until(polled, "the shard is taken")


@pytest.mark.parametrize("squat", ["endless", "long", "list", "ours"])
def test_a_key_that_is_no_lease_holds_a_shard_for_a_short_time_only(
    stream: Stream, squat: str
) -> None:
    reader, key = stream.reader("one"), names.owner_key("default", 5)
    if squat == "ours":  # a key of another type in the place of a lease that was held
        poll_until(reader, lambda: 5 in reader.shards)
        stream.client.delete(key)
    if squat in ("list", "ours"):
        stream.client.lpush(key, "nobody")
    else:
        stream.client.set(key, "nobody", px=None if squat == "endless" else 3_600_000)
    poll_until(reader, lambda: stream.client.type(key) == b"string" and 5 in reader.shards)
    assert stream.client.get(key) == b"one"
    assert len(reader.shards) == names.SHARDS


def test_trimmed_pending_entries_are_cleared(stream: Stream) -> None:
    stream.send(*(message("n", sequence) for sequence in range(3)))
    dead = stream.reader("dead")
    read(dead, count(3), ack=False)
    stream.client.xtrim(names.samples_key("default", names.shard("n")), maxlen=0)
    stream.send(message("n", 3))
    heir = stream.reader("heir")
    assert node_sequences(read(heir, count(1))) == [("n", 3)]
    own = stream.reader("dead")
    heir.close()
    read(own, lambda _: len(own.shards) == names.SHARDS)
    assert stream.pending("n") == 0


def test_trimmed_own_pending_entries_are_acknowledged(stream: Stream) -> None:
    stream.send(message("n", 0))
    reader = stream.reader("me")
    read(reader, count(1), ack=False)
    stream.client.xtrim(names.samples_key("default", names.shard("n")), maxlen=0)
    again = stream.reader("me")  # same name: nothing to claim, so the ids stay for us to clear
    reader.connection.client.delete(*(names.owner_key("default", s) for s in range(names.SHARDS)))
    read(again, lambda _: stream.pending("n") == 0)


def test_a_lost_consumer_group_is_recreated_without_repeats(stream: Stream) -> None:
    stream.send(message("n", 0), message("n", 1))
    reader = stream.reader()
    read(reader, count(2))
    stream.client.xgroup_destroy(names.samples_key("default", names.shard("n")), names.GROUP)
    stream.send(message("n", 2))
    assert node_sequences(read(reader, count(1))) == [("n", 2)]
    assert reader.counts.repeated == 2
    assert reader.status()["groups_recreated"] >= 1


def test_reading_resumes_after_an_outage_on_an_empty_redis(
    redis_launcher: Callable[..., Any], stack: ExitStack
) -> None:
    server = redis_launcher()
    stream = Stream(f"unix://{server.socket}", stack)
    stream.announce()
    stream.send(message("n", 0))
    reader = stream.reader()
    read(reader, count(1))
    server.stop()
    assert beats(reader, 5) == []
    assert not reader.connected
    assert abs(reader.since - time.time()) < 5
    assert reader.connection.reason
    server.start()  # empty: no groups, no leases, no announced table
    stream.send(message("n", 4))
    got = read(reader, count(1))
    assert node_sequences(got) == [("n", 4)]
    assert got[0].gap == 3
    assert not got[0].restarted
    assert reader.connected
    assert reader.status()["outages"] == 1
    assert len(reader.shards) == names.SHARDS


def lose_next_reply(reader: StreamReader, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next XREADGROUP is served, but its reply is lost on the way."""
    fresh = reader._consumer.fresh

    def lose(shards: Any) -> Any:
        fresh(shards)
        monkeypatch.undo()
        raise redis.ConnectionError("cut")

    monkeypatch.setattr(reader._consumer, "fresh", lose)


def test_acknowledgements_during_an_outage_are_sent_after_it(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream.send(message("n", 0))
    reader = stream.reader()
    got = read(reader, count(1), ack=False)
    lose_next_reply(reader, monkeypatch)
    assert reader.poll() == []
    assert not reader.connected
    reader.ack(got)
    assert stream.pending("n") == 1
    assert read(reader, lambda _: stream.pending("n") == 0) == []
    assert reader.connected


def test_entries_of_a_lost_reply_come_with_the_next_read(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream.send(message("n", 0))
    reader = stream.reader()
    read(reader, count(1))
    stream.send(message("n", 1))
    lose_next_reply(reader, monkeypatch)
    assert reader.poll() == []
    stream.send(message("n", 2))
    assert node_sequences(read(reader, count(2))) == [("n", 1), ("n", 2)]
    assert stream.pending("n") == 0


def test_an_unreachable_redis_is_a_state_not_an_error(tmp_path: Path) -> None:
    reader = StreamReader(AnalyzerSettings(redis_url=f"unix://{tmp_path}/none.sock"), "one")
    assert reader.poll() == []
    assert not reader.connected
    assert "none.sock" in reader.connection.reason
    reader.close()


def test_unprocessed_slices_are_neither_repeated_nor_acknowledged_after_an_error(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream.send(message("n", 0), message("n", 1))
    reader = stream.reader()
    got = read(reader, count(2), ack=False)
    lose_next_reply(reader, monkeypatch)
    again = read(reader, lambda _: reader.status()["outages"] == 1 and reader.connected, ack=False)
    assert again == []
    assert stream.pending("n") == 2
    reader.ack(got)
    assert stream.pending("n") == 0


def test_a_full_redis_still_serves_stored_slices(
    redis_launcher: Callable[..., Any], stack: ExitStack
) -> None:
    server = redis_launcher()
    stream = Stream(f"unix://{server.socket}", stack)
    stream.announce()
    reader = stream.reader()
    reader.poll()
    stream.send(message("n", 0))
    stream.client.config_set("maxmemory", "1")
    assert node_sequences(read(reader, count(1))) == [("n", 0)]
    beats(reader, 5)
    assert reader.connected
    assert len(reader.shards) == names.SHARDS
