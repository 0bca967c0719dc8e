"""Channel tables stay in the cache while they are used."""

from __future__ import annotations

from typing import Any

import pytest

from reveal_analyzer.stream import channel_tables
from reveal_analyzer.stream.channel_tables import (
    FETCH_SECONDS,
    LONGEST_RETRY_SECONDS,
    PORTION,
    UNUSED_SECONDS,
    ChannelTables,
)
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.names import table_key
from support.fake_clock import FakeClock

TABLES = [ChannelTable((Channel("cpu.user", str(cpu)),), ()) for cpu in range(20)]


class Announced:
    """A Redis with the tables that collectors announced, one in two of an earlier version."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self._own = {table_key("p", table.key): table.announcement() for table in TABLES[::2]}
        self._earlier = {table.key.hex(): table.to_json() for table in TABLES[1::2]}
        self._replies: list[bytes | None] = []

    def pipeline(self, *, transaction: bool) -> Announced:
        return self

    def __enter__(self) -> Announced:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def get(self, key: str) -> None:
        self._replies.append(self._own.get(key))

    def hget(self, _: str, key: str) -> None:
        self._replies.append(self._earlier.get(key))

    def execute(self, *, raise_on_error: bool) -> list[bytes | None]:
        replies, self._replies = self._replies, []
        self.asked.append(len(replies) // 2)
        return replies


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    result = FakeClock()
    monkeypatch.setattr(channel_tables.time, "monotonic", result)
    return result


def test_a_table_that_nobody_uses_is_forgotten_and_fetched_again(clock: FakeClock) -> None:
    known, client = ChannelTables("p"), Announced()
    first, second, third = (table.key for table in TABLES[:3])

    def fetch(key: bytes) -> Any:
        assert not known.fetch(client, {key: ["n1"]})  # type: ignore[arg-type]
        return known.get(key)

    assert fetch(first) and fetch(second)
    for _ in range(4):
        clock.now += UNUSED_SECONDS / 3
        assert known.get(second) is not None
    assert fetch(third)
    assert known.get(first) is None
    assert known.get(second) is not None
    assert fetch(first)
    assert known.get(first) is not None


def test_many_tables_are_fetched_in_portions_of_limited_time(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two calls the leases are renewed: parsing those of 1,300 nodes takes ten seconds."""
    known, client = ChannelTables("p"), Announced()
    parse = ChannelTable.from_announcement

    def slow(data: bytes) -> ChannelTable:
        clock.now += FETCH_SECONDS / 6
        return parse(data)

    monkeypatch.setattr(ChannelTable, "from_announcement", slow)
    keys = [table.key for table in TABLES]
    assert known.fetch(client, {key: ["n1"] for key in keys})  # type: ignore[arg-type]
    assert client.asked == [PORTION, PORTION]
    assert sum(known.get(key) is not None for key in keys) == 2 * PORTION
    missing = [key for key in keys if known.get(key) is None]
    while known.fetch(client, {key: ["n1"] for key in missing}):  # type: ignore[arg-type]
        missing = [key for key in keys if known.get(key) is None]
    assert all(known.get(key) is not None for key in keys)


def test_a_table_that_does_not_come_is_requested_less_and_less_often(clock: FakeClock) -> None:
    """Somebody may send slices of thousands of tables that nobody announces."""
    known, client = ChannelTables("p"), Announced()
    for _ in range(1200):  # a minute of polls
        assert not known.fetch(client, {b"unknown!": ["n1"]})  # type: ignore[arg-type]
        clock.now += 0.05
    requests = client.asked.count(1)
    assert 60 / LONGEST_RETRY_SECONDS <= requests <= 2 * 60 / LONGEST_RETRY_SECONDS
