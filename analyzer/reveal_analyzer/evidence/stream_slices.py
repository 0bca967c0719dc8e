"""The last slices of a node, read from the stream by range.

Neither a consumer group nor a lease is involved: reading changes nothing for the owner of the node.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import redis

from reveal_analyzer.stream.channel_tables import ChannelTables
from reveal_analyzer.telemetry.node_records import IsProven, any_origin
from reveal_contract import wire
from reveal_contract.channels import ChannelTable
from reveal_contract.envelope import WireError
from reveal_contract.names import (
    FIELD_DATA,
    FIELD_NODE,
    FIELD_PROOF,
    FIELD_TIME,
    samples_key,
    shard,
)
from reveal_contract.wire import Message

PAGE = 128  # entries of all nodes of the shard, about half a megabyte
MOST_TURNS = 64  # a node whose pods come and go has a table for some seconds each
MOST_ENTRIES = 16_384  # those of two minutes of 128 nodes
_NODE, _TIME, _DATA, _PROOF = (
    name.encode() for name in (FIELD_NODE, FIELD_TIME, FIELD_DATA, FIELD_PROOF)
)

Slice = tuple[Message, ChannelTable]


class StreamSlices:
    """Reads slices that prove their origin; methods raise what redis-py raises."""

    def __init__(self, client: redis.Redis, profile: str, is_proven: IsProven = any_origin) -> None:
        self._client, self._profile, self._is_proven = client, profile, is_proven
        self._tables = ChannelTables(profile)
        # of nodes without a slice after a time: that time, and the newest entry of their shard then
        self._silent: dict[str, tuple[int, bytes]] = {}

    def since(self, node: str, since_ns: int) -> list[Slice]:
        """Return the slices of a node that begin after ``since_ns``, in the order of time.

        The time is that of the node.  Slices that cannot be used are left out: who analyzes the
        node counts them.
        """
        return [found for _, found in self._found_since(node, since_ns)]

    def messages_since(self, node: str, since_ns: int) -> list[tuple[bytes, ChannelTable]]:
        """Return the same slices as they were sent."""
        return [(data, table) for data, (_, table) in self._found_since(node, since_ns)]

    def _found_since(self, node: str, since_ns: int) -> list[tuple[bytes, Slice]]:
        """Return the messages that can be used, each with its slice."""
        messages = list(self._data_since(node, since_ns))
        self._fetch_tables(node, {_table(each) for each in messages})
        decoded = ((each, self._decoded(each)) for each in messages)
        found = [(data, each) for data, each in decoded if each is not None]
        return sorted(found, key=lambda pair: pair[1][0].start_ns)

    def _fetch_tables(self, node: str, keys: set[bytes]) -> None:
        """Request the tables that are not known, some of them in each turn."""
        for _ in range(MOST_TURNS):
            needed = {key: [node] for key in keys if self._tables.get(key) is None}
            if not needed or not self._tables.fetch(self._client, needed):
                return

    def _data_since(self, node: str, since_ns: int) -> Iterator[bytes]:
        """Yield the messages of the node from the newest on, until an earlier one.

        Entries without any of a silent node are not read again.
        """
        name, newest, is_silent = node.encode(), b"", True
        known_ns, known = self._silent.pop(node, (since_ns + 1, b""))
        begin = b"(" + known if known_ns <= since_ns else b"-"
        for entry, fields in self._newest_first(samples_key(self._profile, shard(node)), begin):
            newest = newest or entry
            if fields.get(_NODE) != name or _DATA not in fields:
                continue
            if int(fields.get(_TIME, since_ns + 1)) <= since_ns:
                break
            is_silent = False
            if self._is_proven(node, fields[_DATA], fields.get(_PROOF, b"")):
                yield fields[_DATA]
        if is_silent and (newest or begin != b"-"):
            self._silent[node] = since_ns, newest or known

    def _newest_first(self, key: str, begin: bytes) -> Iterator[tuple[bytes, dict[bytes, bytes]]]:
        end = b"+"
        for _ in range(MOST_ENTRIES // PAGE):
            rows: Any = self._client.xrevrange(key, max=end, min=begin, count=PAGE)
            yield from rows
            if len(rows) < PAGE:
                return
            end = b"(" + rows[-1][0]

    def _decoded(self, data: bytes) -> Slice | None:
        known = self._tables.get(_table(data))
        if known is None:
            return None
        try:
            return wire.decode(data, known.gauges), known.table
        except WireError:
            return None


def _table(data: bytes) -> bytes:
    """Return the key of the channel table; empty for what is no message."""
    try:
        return wire.peek(data)[1]
    except WireError:
        return b""
