"""The stream reader against a real Redis: order, repeats, gaps and messages that cannot be used."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest

from reveal_analyzer.stream.leases import LeaseTiming
from reveal_analyzer.stream.node_admission import NodeAdmission
from reveal_analyzer.stream.slice_admission import SliceAdmission
from reveal_contract import names, wire
from reveal_contract.channels import ChannelTable
from support.component_processes import free_port
from support.polling import wait_until
from support.redis_streams import (
    T0,
    TABLE,
    Stream,
    beats,
    count,
    message,
    node_sequences,
    nodes_of_same_shard,
    read,
)

RARELY = LeaseTiming(lease=600.0, beat=600.0)  # each renewal also acknowledges processed slices


def test_slices_come_once_in_order_with_levels_restored(stream: Stream) -> None:
    sent = [message("n", sequence) for sequence in range(5)]
    stream.send(*sent)
    reader = stream.reader()
    got = read(reader, count(5))
    assert node_sequences(got) == [("n", sequence) for sequence in range(5)]
    for item, original in zip(got, sent, strict=True):
        np.testing.assert_array_equal(item.message.fast, original.fast)
        np.testing.assert_array_equal(item.message.slow, original.slow)
        assert item.table == TABLE
        assert wire.decode(item.data).sequence == original.sequence
        assert (item.gap, item.restarted, item.history) == (0, False, False)
    assert stream.pending("n") == 0
    assert beats(reader) == []


def test_unacknowledged_slices_stay_pending_and_go_to_the_next_owner(stream: Stream) -> None:
    stream.send(*(message("n", sequence) for sequence in range(4)))
    reader = stream.reader("same")
    got = read(reader, count(4), ack=False)
    reader.ack(got[:2])
    reader.close()
    again = read(stream.reader("same"), count(4))
    assert node_sequences(again) == [("n", sequence) for sequence in range(4)]
    assert [item.history for item in again] == [True, True, False, False]
    assert stream.pending("n") == 0


def test_a_batch_is_returned_in_portions_and_acknowledged_together(
    stream: Stream,
) -> None:
    stream.send(*(message("n", sequence) for sequence in range(7)))
    reader = stream.reader(timing=RARELY)
    portions, pending = list[list[tuple[str, int]]](), list[int]()
    while sum(map(len, portions)) < 7:
        if portion := reader.poll(3):
            portions.append(node_sequences(portion))
            pending.append(stream.pending("n"))
        reader.ack(portion)
    assert portions == [
        [("n", sequence) for sequence in range(first, min(first + 3, 7))] for first in (0, 3, 6)
    ]
    assert pending == [7, 7, 1]  # with the last portion goes what was done with before
    assert stream.pending("n") == 0


def test_acknowledgements_are_batched(stream: Stream) -> None:
    reader = stream.reader(ack_seconds=1e9, timing=RARELY)
    for sequence in range(3):
        stream.send(message("n", sequence))
        read(reader, count(1))
    assert stream.pending("n") == 3
    reader.close()
    assert stream.pending("n") == 0


def test_repeats_are_dropped_and_acknowledged(stream: Stream) -> None:
    slices = [message("n", sequence) for sequence in range(3)]
    stream.send(*slices, *slices, message("n", 3))
    reader = stream.reader()
    assert node_sequences(read(reader, count(4))) == [("n", sequence) for sequence in range(4)]
    assert reader.counts.repeated == 3
    assert stream.pending("n") == 0


def test_gaps_are_reported_and_counted(stream: Stream) -> None:
    stream.send(message("n", 10), message("n", 11), message("n", 15))
    reader = stream.reader()
    assert [item.gap for item in read(reader, count(3))] == [0, 0, 3]
    assert reader.counts.missing == 3


def test_restarts_are_distinguished_from_repeats(stream: Stream) -> None:
    later = T0 + 900 * 10**9
    stream.send(
        message("n", 800),
        message("n", 0, start_ns=later),  # collector restarted
        message("n", 1, start_ns=later + 10**9),
        message("n", 0, boot=b"c" * 16, start_ns=later + 60 * 10**9),  # node booted
        message("n", 1, boot=b"c" * 16, start_ns=later + 61 * 10**9),
    )
    reader = stream.reader()
    assert [item.restarted for item in read(reader, count(5))] == [False, True, False, True, False]
    assert reader.counts.missing == 0


def test_invalid_messages_are_counted_and_skipped(
    stream: Stream, caplog: pytest.LogCaptureFixture
) -> None:
    stream.send(message("n", 0))
    good = wire.encode(message("n", 1), wire.gauges(TABLE))
    entry_id = stream.raw("n", {names.FIELD_NODE: "n", names.FIELD_DATA: b"garbage"})
    stream.raw("n", {names.FIELD_DATA: good[:-1]})
    stream.raw("n", {"other": "field"})
    stranger = wire.encode(message("wrong-shard", 0), wire.gauges(TABLE))
    stream.raw("n", {names.FIELD_DATA: stranger})
    stream.send(message("n", 1))
    reader = stream.reader()
    assert node_sequences(read(reader, count(2))) == [("n", 0), ("n", 1)]
    assert reader.counts.refused == 4
    assert entry_id.decode() in caplog.text
    assert "belongs to shard" in caplog.text
    assert stream.pending("n") == 0


def test_a_message_that_disagrees_with_its_table_is_refused(stream: Stream) -> None:
    other = ChannelTable(TABLE.fast, ())
    wrong = message("n", 0, other)
    object.__setattr__(wrong, "table", TABLE.key)
    stream.send(wrong, message("n", 1))
    reader = stream.reader()
    assert node_sequences(read(reader, count(1))) == [("n", 1)]
    assert reader.counts.refused == 1


def test_slices_wait_in_order_for_their_table(stream: Stream) -> None:
    late = ChannelTable(TABLE.fast[:1], ())
    stream.send(message("n", 0), message("n", 1, late), message("n", 2))
    neighbour = nodes_of_same_shard()
    stream.send(message(neighbour[0], 7), message(neighbour[1], 7))
    reader = stream.reader()
    got = read(reader, count(3))
    assert ("n", 1) not in node_sequences(got)
    assert ("n", 2) not in node_sequences(got), "overtook a slice that waits"
    assert stream.pending("n") == 2
    stream.announce(late)
    assert node_sequences(read(reader, count(2))) == [("n", 1), ("n", 2)]
    assert stream.pending("n") == 0


def test_slices_are_dropped_if_their_table_never_comes(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reveal_analyzer.stream.waiting_slices.WAIT_SECONDS", 0.0)
    lost = ChannelTable(TABLE.fast[:1], ())
    stream.client.set(names.table_key("default", lost.key), b'{"version": 1}')
    stream.send(message("n", 0, lost))
    reader = stream.reader()
    assert read(reader, lambda _: reader.counts.refused == 1) == []
    stream.send(message("n", 1))
    assert node_sequences(read(reader, count(1))) == [("n", 1)]
    assert stream.pending("n") == 0


def test_a_full_waiting_queue_drops_the_oldest(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reveal_analyzer.stream.waiting_slices.MAX_WAITING", 3)
    late = ChannelTable(TABLE.fast[:1], ())
    stream.send(*(message("n", sequence, late) for sequence in range(5)))
    reader = stream.reader()
    read(reader, lambda _: reader.counts.refused == 2)
    stream.announce(late)
    assert node_sequences(read(reader, count(3))) == [("n", 2), ("n", 3), ("n", 4)]


def test_a_key_of_a_wrong_type_affects_only_its_shard(
    stream: Stream, caplog: pytest.LogCaptureFixture
) -> None:
    other = next(f"m{i}" for i in range(99) if names.shard(f"m{i}") != names.shard("n"))
    key = names.samples_key("default", names.shard("n"))
    stream.client.set(key, "text")
    stream.send(message(other, 0))
    reader = stream.reader()
    assert node_sequences(read(reader, count(1))) == [(other, 0)]
    assert f"{key} has another type" in caplog.text


def test_a_backlog_of_many_batches_is_read_completely(stream: Stream) -> None:
    first, second = nodes_of_same_shard()
    with stream.client.pipeline(transaction=False) as pipe:
        for sequence in range(700):
            for node in (first, second):
                data = wire.encode(message(node, sequence), wire.gauges(TABLE))
                key = names.samples_key("default", names.shard(node))
                pipe.xadd(key, {names.FIELD_DATA: data})
        pipe.execute()
    dead = stream.reader("dead")
    got = read(dead, count(1400), ack=False)
    for node in (first, second):
        mine = [item.message.sequence for item in got if item.node == node]
        assert mine == list(range(700))
    heir = read(stream.reader("heir"), count(1400))  # 1,400 pending: over two pages
    assert sorted(node_sequences(heir)) == sorted(node_sequences(got))
    assert [item for item in node_sequences(heir) if item[0] == first] == [
        (first, s) for s in range(700)
    ]
    assert not any(item.history for item in heir)
    assert stream.pending(first) == 0


def test_a_redis_cluster_is_read_stream_by_stream(
    redis_launcher: Callable[..., Any], stack: ExitStack
) -> None:
    """As a managed Redis of one shard in cluster mode is, or a proxy."""
    flags = ["--port", str(free_port()), "--cluster-enabled", "yes"]
    server = redis_launcher(*flags, "--cluster-port", str(free_port()), needs="cluster-port")
    stream = Stream(f"unix://{server.socket}", stack)
    stream.client.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
    wait_until(
        lambda: stream.client.cluster("INFO")["cluster_state"] == "ok", "the slots are served"
    )
    stream.announce()
    nodes = [f"n{number}" for number in range(20)]
    stream.send(*(message(node, 0) for node in nodes))
    reader = stream.reader()
    assert sorted(item.node for item in read(reader, count(20))) == sorted(nodes)
    refused = _refused(stream)
    stream.send(*(message(node, 1) for node in nodes))
    assert len(read(reader, count(20))) == 20
    assert _refused(stream) == refused  # not asked again
    assert reader.status()["outages"] == 0


def _refused(stream: Stream) -> object:
    """How many commands named keys of several slots."""
    return stream.client.info("errorstats")["errorstat_CROSSSLOT"]


def test_a_forged_slice_without_a_table_does_not_silence_its_node(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reveal_analyzer.stream.waiting_slices.HOLD_SECONDS", 0.3)
    never = ChannelTable(TABLE.fast[:1], ())
    stream.send(message("n", 0), message("n", 1, never), message("n", 1), message("n", 2))
    reader = stream.reader()
    assert node_sequences(read(reader, count(3))) == [("n", 0), ("n", 1), ("n", 2)]
    stream.send(message("n", 3))
    assert node_sequences(read(reader, count(1))) == [("n", 3)]
    assert stream.pending("n") == 1, "only the forged one waits"


def test_slices_of_names_that_are_not_taken_are_acknowledged(stream: Stream) -> None:
    stream.send(message("n", 0), message("forged", 0), message("n", 1))
    admission = SliceAdmission(NodeAdmission(is_node=lambda name: name == "n"))
    reader = stream.reader(admission=admission)
    assert node_sequences(read(reader, count(2))) == [("n", 0), ("n", 1)]
    read(reader, lambda _: reader.counts.refused == 1)
    assert stream.pending("forged") == 0
