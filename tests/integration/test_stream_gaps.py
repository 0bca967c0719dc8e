"""Slices that are not there: trimmed before they were read or processed, or never sent."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from reveal_analyzer.state.codec import Position, SavedState, encode
from reveal_contract import names, wire
from support.redis_streams import TABLE, Stream, count, message, read


def send_each_second(stream: Stream, start: int, end: int) -> None:
    """Add slices whose entries have the times at which a collector would have sent them.

    All times follow from one, as the machine may stand still between two calls.
    """
    with stream.client.pipeline(transaction=False) as pipe:
        for sequence in range(start, end):
            data = wire.encode(message("n", sequence), wire.gauges(TABLE))
            fields: dict[Any, Any] = {names.FIELD_NODE: "n", names.FIELD_DATA: data}
            key = names.samples_key("default", names.shard("n"))
            pipe.xadd(key, fields, f"{stream.began_ms + (sequence - 1000) * 1000}-0")
        pipe.execute()


def keep_two_minutes(stream: Stream) -> None:
    stream.client.xtrim(
        names.samples_key("default", names.shard("n")), maxlen=120, approximate=False
    )


def test_slices_that_were_trimmed_while_the_analyzer_was_away_are_counted(
    stream: Stream, monkeypatch: pytest.MonkeyPatch
) -> None:
    send_each_second(stream, 580, 600)
    reader = stream.reader()
    read(reader, count(20))
    monkeypatch.setattr("reveal_analyzer.stream.reader.time.monotonic", later(400))
    send_each_second(stream, 600, 1000)
    keep_two_minutes(stream)
    assert [item.gap for item in read(reader, count(120))] == [280, *[0] * 119]
    assert (reader.counts.trimmed, reader.counts.missing) == (280, 0)


def later(seconds: float) -> Callable[[], float]:
    """Return a clock that is ahead, as after a pause."""
    clock = time.monotonic
    return lambda: clock() + seconds


def test_slices_that_were_trimmed_before_a_new_analyzer_began_are_counted(stream: Stream) -> None:
    """What its predecessor processed is not lost, although no saved state covers it."""
    send_each_second(stream, 580, 600)
    first = stream.reader("first")
    received = read(first, count(20))
    position = Position(
        "n", received[9].message.boot, 589, received[9].message.start_ns, received[9].id.decode()
    )
    first.states.save({"n": encode(SavedState(position, int(time.time()), {}), ())})
    first.close()
    send_each_second(stream, 600, 1000)
    keep_two_minutes(stream)
    second = stream.reader("second")
    read(second, count(120))
    assert second.counts.trimmed == pytest.approx(280, abs=1)
    assert second.counts.missing == 0


def test_slices_that_were_read_and_trimmed_before_they_were_processed_count_once(
    stream: Stream,
) -> None:
    send_each_second(stream, 990, 1000)
    dead = stream.reader("dead")
    read(dead, count(10), ack=False)
    stream.client.xtrim(names.samples_key("default", names.shard("n")), maxlen=0)
    dead.connection.client.delete(*(names.owner_key("default", n) for n in range(names.SHARDS)))
    send_each_second(stream, 1000, 1001)
    heir = stream.reader("heir")
    read(heir, count(1))
    assert (heir.counts.trimmed, heir.counts.missing) == (10, 0)
