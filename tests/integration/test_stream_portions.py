"""Much to do at once, as at the start: it is done in portions, and leases are renewed between."""

from __future__ import annotations

from typing import Any

import pytest

from reveal_analyzer.stream.channel_tables import PORTION
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Kind
from support.redis_streams import TABLE, Stream, count, message, node_sequences, read


def test_tables_of_many_nodes_are_taken_in_portions(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An analyzer that starts renews its leases with each poll, so between two portions."""
    monkeypatch.setattr("reveal_analyzer.stream.channel_tables.FETCH_SECONDS", 0.0)
    nodes = [f"n{number}" for number in range(30)]
    for node in nodes:
        own = ChannelTable((Channel("cpu.user", kind=Kind.COUNTER), Channel(f"x.{node}")), ())
        stream.announce(own)
        stream.send(message(node, 0, own))
    reader, sizes = stream.reader(), list[int]()
    while sum(sizes) < len(nodes):
        assert len(sizes) < 200
        sizes.append(len(reader.poll()))
    assert max(sizes) == PORTION
    assert reader.counts.refused == 0


def test_slices_that_waited_for_their_table_are_delivered_in_portions(stream: Stream) -> None:
    late = ChannelTable(TABLE.fast[:1], ())
    stream.send(*(message("n", sequence, late) for sequence in range(20)))
    reader = stream.reader()
    read(reader, lambda _: reader.status()["waiting"] == 20)
    stream.announce(late)
    got, sizes = list[tuple[str, int]](), list[int]()
    while len(got) < 20:
        assert len(sizes) < 200
        batch = node_sequences(reader.poll(4))
        sizes.append(len(batch))
        got += batch
    assert max(sizes) == 4
    assert got == [("n", sequence) for sequence in range(20)]


def test_slices_of_known_tables_are_never_refused_for_their_age(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where thousands of nodes start, the last table is parsed after more than a minute."""
    monkeypatch.setattr("reveal_analyzer.stream.waiting_slices.WAIT_SECONDS", 0.0)
    monkeypatch.setattr("reveal_analyzer.stream.waiting_slices.MAX_WAITING", 2)
    late = ChannelTable(TABLE.fast[:1], ())
    stream.announce(late)
    stream.send(*(message("n", sequence, late) for sequence in range(9)))
    reader = stream.reader()
    assert node_sequences(read(reader, count(9))) == [("n", sequence) for sequence in range(9)]
    assert reader.counts.refused == 0


def test_shards_are_taken_over_in_portions_of_limited_time(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reveal_analyzer.stream.reader.TAKE_OVER_SECONDS", 0.0)
    taken: list[int] = []
    reader = stream.reader()
    take_over = reader._consumer.take_over

    def noted(shard: int, *given: Any) -> Any:
        taken.append(shard)
        return take_over(shard, *given)

    monkeypatch.setattr(reader._consumer, "take_over", noted)
    for polls in range(1, 6):
        reader.poll()
        assert len(taken) == polls
