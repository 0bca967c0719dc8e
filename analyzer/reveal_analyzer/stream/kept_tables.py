"""The channel tables that are kept: those in use, in a limited memory."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, takewhile

from reveal_contract import wire
from reveal_contract.channels import Channel, ChannelTable

# A table is half a megabyte, and each start or end of a pod makes a new one.  If a node returns to
# an old table, that is fetched again.
UNUSED_SECONDS = 120.0
# Beyond this, only the newest table of each node is kept, and the one that it is a change of.  A
# node that is compromised can announce 65,536 channels each second.
MOST_BYTES = 128 << 20
_CHANNEL_BYTES = 300  # in memory, without its names


@dataclass(frozen=True)
class DecodableTable:
    """A channel table and which of its channels are gauges, which decoding needs."""

    table: ChannelTable
    gauges: wire.Bools


@dataclass(slots=True)
class _Kept:
    """A table, when it was used last, and its size in memory."""

    known: DecodableTable
    used_s: float
    size: int


class KeptTables:
    """Tables by their keys; what is unused for ``UNUSED_SECONDS`` or over the limit is dropped."""

    def __init__(self) -> None:
        self._tables: dict[bytes, _Kept] = {}  # the longest unused comes first
        self._newest: dict[str, tuple[bytes, ...]] = {}  # of nodes: their table, and its base
        self._size = 0

    def get(self, key: bytes) -> DecodableTable | None:
        """Return a table, which counts as a use of it."""
        kept = self._tables.pop(key, None)
        if kept is None:
            return None
        kept.used_s = time.monotonic()
        self._tables[key] = kept
        return kept.known

    def add(self, table: ChannelTable) -> None:
        """Keep a table until the next ``forget``, which may drop it."""
        self._drop(table.key)
        known = DecodableTable(table, wire.gauges(table))
        kept = _Kept(known, time.monotonic(), _size(chain(table.fast, table.slow)))
        self._tables[table.key] = kept
        self._size += kept.size

    def note_newest(self, nodes: Iterable[str], key: bytes, base: bytes = b"") -> None:
        """Note the table that these nodes use now, and the base that it is a change of."""
        self._newest.update(dict.fromkeys(nodes, (key, base)))

    def forget(self) -> None:
        """Drop what was not used for a while, then what is over the limit, the oldest first."""
        due = time.monotonic() - UNUSED_SECONDS
        old = takewhile(lambda item: item[1].used_s < due, self._tables.items())
        for key in [key for key, _ in old]:
            self._drop(key)
        if self._size > MOST_BYTES:
            self._drop_excess()
        self._newest = {
            node: keys for node, keys in self._newest.items() if keys[0] in self._tables
        }

    def _drop_excess(self) -> None:
        needed = set(chain.from_iterable(self._newest.values()))
        for key in [key for key in self._tables if key not in needed]:
            if self._size <= MOST_BYTES:
                return
            self._drop(key)

    def _drop(self, key: bytes) -> None:
        if (kept := self._tables.pop(key, None)) is not None:
            self._size -= kept.size


def _size(channels: Iterable[Channel]) -> int:
    """Return the bytes of channels that no other table shares."""
    return sum(
        _CHANNEL_BYTES + len(each.metric) + len(each.instance) + len(each.later)
        for each in channels
    )
