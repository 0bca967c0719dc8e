"""Slices of a node, read from a real stream by range."""

from __future__ import annotations

import pytest

from reveal_analyzer.evidence.stream_slices import PAGE, StreamSlices
from reveal_analyzer.stream import channel_tables
from reveal_contract import names, wire
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Kind
from support.redis_streams import T0, TABLE, Stream, message, nodes_of_same_shard

MINE, OTHER = nodes_of_same_shard()


def send(stream: Stream, node: str, sequence: int, table: ChannelTable = TABLE) -> None:
    slice_ = message(node, sequence, table)
    data = wire.encode(slice_, wire.gauges(table))
    stream.raw(node, {names.FIELD_NODE: node, names.FIELD_TIME: slice_.start_ns,
                      names.FIELD_DATA: data})  # fmt: skip


def sequences(stream: Stream, since: int, node: str = MINE) -> list[int]:
    slices = StreamSlices(stream.client, "default").since(node, T0 + since * 10**9)
    return [slice_.sequence for slice_, _ in slices]


def test_slices_of_the_node_after_a_moment_come_in_order(stream: Stream) -> None:
    for sequence in range(PAGE):  # more than a page, with those of the other node
        send(stream, MINE, sequence)
        send(stream, OTHER, sequence)
    assert sequences(stream, 99) == list(range(100, PAGE))
    assert sequences(stream, -1) == list(range(PAGE))
    assert sequences(stream, PAGE) == []
    assert sequences(stream, -1, "unknown") == []


def test_each_slice_is_read_with_its_table_however_many_there_are(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel_tables, "FETCH_SECONDS", 0.0)  # a few in each turn
    for sequence in range(60):
        added = Channel("cpu.subject.usage", f"pod-{sequence}", Kind.COUNTER)
        table = ChannelTable((*TABLE.fast, added), TABLE.slow)
        stream.announce(table)
        send(stream, MINE, sequence, table)
    assert sequences(stream, -1) == list(range(60))


def test_what_cannot_be_used_is_left_out(stream: Stream) -> None:
    send(stream, MINE, 0)
    stream.raw(MINE, {names.FIELD_NODE: MINE, names.FIELD_DATA: b"no message"})
    stream.raw(MINE, {names.FIELD_NODE: MINE})
    send(stream, MINE, 1, ChannelTable((Channel("cpu.nice"),), ()))  # never announced
    send(stream, MINE, 2)
    assert sequences(stream, -1) == [0, 2]


def test_entries_without_any_of_a_silent_node_are_read_once(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[int] = []
    slices = StreamSlices(stream.client, "default")
    read = stream.client.xrevrange

    def counted(*given: object, **named: object) -> list[object]:
        rows: list[object] = read(*given, **named)
        reads.append(len(rows))
        return rows

    monkeypatch.setattr(stream.client, "xrevrange", counted)
    send(stream, MINE, 0)
    for sequence in range(9):
        send(stream, OTHER, sequence)
    assert slices.since(MINE, T0) == []
    assert slices.since(MINE, T0) == []
    assert reads == [10, 0]
    assert [each.sequence for each, _ in slices.since(MINE, T0 - 1)] == [0]  # an earlier one
    send(stream, OTHER, 9)
    send(stream, MINE, 9)
    assert slices.since(MINE, T0 + 9 * 10**9) == []
    assert [each.sequence for each, _ in slices.since(MINE, T0)] == [9]


def test_reading_leaves_the_stream_as_it_was(stream: Stream) -> None:
    send(stream, MINE, 0)
    sequences(stream, -1)
    key = names.samples_key("default", names.shard(MINE))
    assert stream.client.xlen(key) == 1
    assert stream.client.xinfo_groups(key) == []
