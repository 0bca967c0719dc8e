"""Channel tables stay in the cache while they are used."""

from __future__ import annotations

from typing import Any

import pytest

from reveal_analyzer.stream import channel_tables, kept_tables
from reveal_analyzer.stream.channel_tables import (
    FETCH_SECONDS,
    LONGEST_RETRY_SECONDS,
    PORTION,
    ChannelTables,
)
from reveal_analyzer.stream.kept_tables import UNUSED_SECONDS
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.names import table_key
from support.fake_clock import FakeClock

TABLES = [ChannelTable((Channel("cpu.user", str(cpu)),), ()) for cpu in range(20)]


class Announced:
    """A Redis with the tables that collectors announced, one in two of an earlier version."""

    def __init__(self) -> None:
        self.asked: list[int] = []  # tables of each request of several
        self.longest = 0  # reply, in bytes
        self.deleted: list[str] = []
        self._own = {table_key("p", table.key): table.announcement() for table in TABLES[::2]}
        self._earlier = {table.key.hex(): table.to_json() for table in TABLES[1::2]}

    def pipeline(self, *, transaction: bool) -> Requests:
        return Requests(self)

    def getrange(self, key: str, first: int, last: int) -> bytes:
        return self._sent(self._own.get(key, b"")[first : last + 1])

    def delete(self, key: str) -> None:
        self.deleted.append(key)

    def hstrlen(self, _: str, key: str) -> int:
        return len(self._earlier.get(key, b""))

    def eval(self, _: str, keys: int, key: str, most: int, *fields: str) -> list[Any]:
        found = [self._earlier.get(field) for field in fields]
        return [each if each is None or len(each) > most else self._sent(each) for each in found]

    def _sent(self, reply: bytes) -> bytes:
        self.longest = max(self.longest, len(reply))
        return reply


class Requests:
    """A pipeline of it."""

    def __init__(self, server: Announced) -> None:
        self._server, self._replies, self._tables = server, list[Any](), 0

    def __enter__(self) -> Requests:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def getrange(self, *arguments: Any) -> None:
        self._replies.append(self._server.getrange(*arguments))

    def hstrlen(self, *arguments: Any) -> None:
        self._tables += 1
        self._replies.append(self._server.hstrlen(*arguments))

    def eval(self, *arguments: Any) -> None:
        self._replies.append(self._server.eval(*arguments))

    def execute(self, *, raise_on_error: bool) -> list[Any]:
        if self._tables:
            self._server.asked.append(self._tables)
        return self._replies


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


def test_large_tables_are_fetched_by_themselves_in_portions_of_limited_size(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(channel_tables, "SMALL_BYTES", 10)
    monkeypatch.setattr(channel_tables, "PORTION_BYTES", 1)
    known, client = ChannelTables("p"), Announced()
    keys = [table.key for table in TABLES[:PORTION]]
    for count in range(1, PORTION + 1):
        missing = [key for key in keys if known.get(key) is None]
        known.fetch(client, {key: ["n1"] for key in missing})  # type: ignore[arg-type]
        assert sum(known.get(key) is not None for key in keys) == count
        clock.now += LONGEST_RETRY_SECONDS


def test_a_table_over_the_limit_is_not_transferred_and_logged_once(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(channel_tables, "SMALL_BYTES", 10)
    monkeypatch.setattr(channel_tables, "MAX_ANNOUNCEMENT", 20)
    known, client = ChannelTables("p"), Announced()
    for _ in range(3):
        known.fetch(client, {TABLES[0].key: ["n1"]})  # type: ignore[arg-type]
        clock.now += LONGEST_RETRY_SECONDS
    assert known.get(TABLES[0].key) is None
    assert client.longest == 21
    assert caplog.text.count("20 are the most") == 1


def test_a_node_that_announces_without_end_does_not_fill_the_memory(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_tables, "MOST_BYTES", 1000)
    known, client = ChannelTables("p"), Announced()
    for table in TABLES:
        known.fetch(client, {table.key: ["n1"]})  # type: ignore[arg-type]
    kept = [table for table in TABLES if known.get(table.key) is not None]
    assert kept == TABLES[-3:]
