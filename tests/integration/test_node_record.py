"""Channel tables of a node whose pods come and go: announced as changes, read by analyzers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from reveal_analyzer.stream.channel_tables import ChannelTables
from reveal_collector.shipping import node_record
from reveal_collector.shipping.node_record import NodeRecord
from reveal_collector.shipping.origin_proof import OriginProof
from reveal_collector.shipping.resp import RedisConnection
from reveal_contract import names
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.table_changes import TableChanges
from support.fake_clock import FakeClock
from support.redis_sinks import settings

HOST = tuple(Channel(f"host.metric{number}") for number in range(200))


def table_of(*pods: int) -> ChannelTable:
    own = [Channel(f"subject.{metric}", f"pod-{pod}") for pod in pods for metric in "abcde"]
    return ChannelTable((*HOST, *own), (Channel("memory.free"),))


FIRST, SECOND = table_of(1, 2, 3), table_of(2, 3, 4)


class Node:
    """The record of a node, and what of it an analyzer reads that knows nothing yet."""

    def __init__(self, path: Path, name: str = "n1") -> None:
        given = settings(path, node=name)
        self.name = name
        self.table_seconds = 2 * given.stream_seconds + given.buffer_seconds
        self.client = redis.Redis(unix_socket_path=str(path))
        self._connection = RedisConnection(given.redis_url, 5.0)
        self.record = NodeRecord(self._connection, given, OriginProof(""))

    def announce(self, *tables: ChannelTable) -> None:
        for table in tables:
            self.record.announce(table, dict)

    def read(self, table: ChannelTable, known: ChannelTables | None = None) -> ChannelTable | None:
        known = known or ChannelTables("default")
        known.fetch(self.client, {table.key: [self.name]})
        found = known.get(table.key)
        return found.table if found else None

    def whole(self, table: ChannelTable) -> bool:
        return bool(self.client.exists(names.table_key("default", table.key)))

    def changes_key(self, table: ChannelTable) -> str:
        return names.table_changes_key("default", table.key, self.name)

    def close(self) -> None:
        self._connection.close()
        self.client.close()


@pytest.fixture
def node(redis_server: Path) -> Iterator[Node]:
    result = Node(redis_server)
    yield result
    result.close()


def test_a_table_whose_pods_changed_is_announced_by_its_changes(node: Node) -> None:
    node.announce(FIRST, SECOND)
    assert node.whole(FIRST)
    assert not node.whole(SECOND)
    assert node.read(FIRST) == FIRST
    assert node.read(SECOND) == SECOND


def test_an_analyzer_that_knows_the_base_reads_only_the_changes(node: Node) -> None:
    node.announce(FIRST, SECOND)
    known = ChannelTables("default")
    assert node.read(FIRST, known) == FIRST
    node.client.delete(names.table_key("default", FIRST.key))
    assert node.read(SECOND, known) == SECOND


def test_any_of_many_tables_needs_no_more_than_two_announcements(node: Node) -> None:
    tables = [table_of(*range(first, first + 3)) for first in range(6)]
    node.announce(*tables)
    assert sum(map(node.whole, tables)) == 1
    assert [node.read(table) for table in tables] == tables


def test_a_table_that_returns_is_not_announced_again(node: Node) -> None:
    node.announce(FIRST, SECOND)
    before = set(node.client.keys())  # type: ignore[arg-type]
    node.announce(FIRST)
    assert set(node.client.keys()) == before  # type: ignore[arg-type]


def test_a_table_that_differs_much_is_announced_whole(node: Node) -> None:
    other = table_of(*range(100, 160))
    node.announce(FIRST, other)
    assert node.whole(other)
    node.announce(table_of(*range(101, 161)))
    assert not node.whole(table_of(*range(101, 161)))


def test_a_base_that_redis_lost_is_replaced_by_the_whole_table(node: Node) -> None:
    node.announce(FIRST)
    node.client.delete(names.table_key("default", FIRST.key))
    node.announce(SECOND)
    assert node.read(SECOND) == SECOND
    node.client.flushall()
    node.announce(FIRST)
    assert node.read(FIRST) == FIRST


@pytest.mark.parametrize("lost", [FIRST, SECOND])
def test_a_status_that_finds_an_announcement_gone_repeats_it(
    node: Node, lost: ChannelTable
) -> None:
    node.announce(FIRST, SECOND)
    node.client.delete(names.table_key("default", lost.key), node.changes_key(lost))
    node.record.publish({}, None)
    assert not node.record.announced
    node.announce(SECOND)
    assert node.read(SECOND) == SECOND


def test_the_base_of_the_table_in_use_does_not_end_before_it(node: Node) -> None:
    node.announce(FIRST, SECOND)
    keys = names.table_key("default", FIRST.key), node.changes_key(SECOND)
    for key in keys:
        node.client.expire(key, 10)
    node.record.publish({}, None)
    limits: list[Any] = [node.client.ttl(key) for key in keys]
    assert limits[0] == limits[1] > 10
    node.client.expire(keys[0], 10)
    node.announce(table_of(3, 4, 5))
    assert node.client.ttl(keys[0]) == limits[0]


def test_names_of_pods_that_are_gone_do_not_stay_in_a_base(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = FakeClock()
    monkeypatch.setattr(node_record.time, "monotonic", clock)
    clock.now += 1000
    node.announce(FIRST)
    clock.now += 1000
    node.announce(SECOND)
    node.record.publish({}, None)
    assert not node.whole(SECOND)
    clock.now += node.table_seconds
    node.record.publish({}, None)
    assert node.whole(SECOND)
    node.client.expire(names.table_key("default", FIRST.key), 10)
    node.announce(table_of(3, 4, 5))
    node.record.publish({}, None)
    assert node.client.ttl(names.table_key("default", FIRST.key)) <= 10
    assert node.read(table_of(3, 4, 5)) == table_of(3, 4, 5)


def test_nodes_with_equal_tables_have_bases_of_their_own(node: Node, redis_server: Path) -> None:
    other = Node(redis_server, "n2")
    node.announce(FIRST, SECOND)
    other.announce(table_of(3, 4, 5), SECOND)
    node.client.delete(names.table_key("default", FIRST.key))
    assert other.read(SECOND) == SECOND
    assert node.read(SECOND) is None
    known = ChannelTables("default")
    known.fetch(node.client, {SECOND.key: ["n1", "n2"]})
    assert known.get(SECOND.key) is not None
    other.close()


@pytest.mark.parametrize("data", [b"garbage", b'{"version": 1}'])
def test_changes_that_cannot_be_used_are_logged_once(
    node: Node, data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    node.client.set(node.changes_key(SECOND), data)
    known = ChannelTables("default")
    assert node.read(SECOND, known) is None
    known._asked.clear()
    assert node.read(SECOND, known) is None
    assert caplog.text.count("cannot be used") == 1


@pytest.mark.parametrize("by_changes", [False, True])
def test_a_table_that_somebody_overwrote_is_announced_again(node: Node, by_changes: bool) -> None:
    node.announce(FIRST, SECOND)
    overwritten = node.changes_key(SECOND) if by_changes else names.table_key("default", FIRST.key)
    others = TableChanges.between(FIRST, table_of(7)) if by_changes else table_of(7)
    node.client.set(overwritten, others.announcement())
    assert node.read(SECOND) is None
    node.record.publish({}, None)
    node.announce(SECOND)
    assert node.read(SECOND) == SECOND


def test_an_unusable_table_is_deleted_once_a_minute(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A collector of a later version may announce what an analyzer cannot read."""
    clock = FakeClock()
    monkeypatch.setattr("reveal_analyzer.stream.channel_tables.time.monotonic", clock)
    known, key = ChannelTables("default"), names.table_key("default", FIRST.key)

    def is_deleted() -> bool:
        node.client.set(key, b"unusable")
        assert node.read(FIRST, known) is None
        return not node.client.exists(key)

    assert is_deleted()
    clock.now += 59
    assert not is_deleted()
    clock.now += 2
    assert is_deleted()
