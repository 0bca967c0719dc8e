"""Channel tables by their keys, and the room where slices wait for a table not announced yet."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import takewhile

import redis

from reveal_analyzer.stream.consumer import Entry
from reveal_contract import wire
from reveal_contract.channels import ChannelTable, TableError
from reveal_contract.names import CATALOGUE_KEY

log = logging.getLogger(__name__)

REMEMBERED = 512  # bad ones
# A table is half a megabyte, and each pod that starts or ends makes another one: who comes back to
# an old one later asks for it again.
UNUSED_SECONDS = 120.0
RETRY_SECONDS = 0.25
MAX_WAITING = 4096  # slices; at 5 KB each they hold 20 MB
WAIT_SECONDS = 60.0


@dataclass(frozen=True)
class Known:
    """A table with what decoding needs of it."""

    table: ChannelTable
    gauges: wire.Bools


class Tables:
    """The announced tables, fetched once each; unknown ones are asked for again and again."""

    def __init__(self) -> None:
        # and when each was used, the longest ago first
        self._known: dict[bytes, tuple[Known, float]] = {}
        self._asked: dict[bytes, float] = {}
        self._bad: set[bytes] = set()

    def get(self, key: bytes) -> Known | None:
        found = self._known.pop(key, None)
        return self._use(key, found[0]) if found is not None else None

    def fetch(self, client: redis.Redis, keys: Iterable[bytes]) -> bool:
        """Ask for those that are due; whether any is known now that was not."""
        now = time.monotonic()
        due = [key for key in keys if now - self._asked.get(key, -1e9) >= RETRY_SECONDS]
        if not due:
            return False
        announced = client.hmget(CATALOGUE_KEY, [key.hex() for key in due])
        self._asked = {key: at for key, at in self._asked.items() if now - at < WAIT_SECONDS}
        self._asked.update(dict.fromkeys(due, now))
        learned = [
            self._learn(key, text)
            for key, text in zip(due, announced, strict=True)
            if text is not None
        ]
        return any(learned)

    def _learn(self, key: bytes, text: bytes | str) -> bool:
        try:
            table = ChannelTable.from_json(text)
            if table.key != key:
                raise TableError(f"its key is {table.key.hex()}")
        except TableError as error:
            if key not in self._bad:
                log.warning("announced channel table %s cannot be used: %s", key.hex(), error)
            self._bad = {*self._bad, key} if len(self._bad) < REMEMBERED else {key}
            return False
        self._use(key, Known(table, wire.gauges(table)))
        self._forget()
        return True

    def _use(self, key: bytes, known: Known) -> Known:
        self._known[key] = known, time.monotonic()
        return known

    def _forget(self) -> None:
        """Tables that nobody has used for a while, when there is a new one."""
        due = time.monotonic() - UNUSED_SECONDS
        unused = takewhile(lambda one: one[1][1] < due, self._known.items())
        for key, _ in list(unused):
            del self._known[key]


@dataclass(frozen=True)
class Parked:
    """A message as it came (5 KB; decoded it would be ten times that)."""

    entry: Entry
    table: bytes
    since: float


class WaitingRoom:
    """Slices of nodes whose table is not known, in order; bounded in number and time.

    A node with one slice waiting waits with all that follow, so that their order stays.
    """

    def __init__(self) -> None:
        self._nodes: dict[str, deque[Parked]] = {}
        self._count = 0

    def __contains__(self, node: str) -> bool:
        return node in self._nodes

    def __len__(self) -> int:
        return self._count

    def add(self, entry: Entry, node: str, table: bytes) -> None:
        parked = Parked(entry, table, time.monotonic())
        self._nodes.setdefault(node, deque()).append(parked)
        self._count += 1

    def wanted(self) -> set[bytes]:
        """The tables that the first slice of each node waits for."""
        return {line[0].table for line in self._nodes.values()}

    def overdue(self) -> list[Parked]:
        """Take out those that waited too long, or are too many."""
        oldest = time.monotonic() - WAIT_SECONDS
        out: list[Parked] = []
        for node in list(self._nodes):
            while (first := self._first(node)) is not None and (
                first.since < oldest or self._count > MAX_WAITING
            ):
                out.append(self._pop(node))
        return out

    def ready(self, tables: Tables) -> list[tuple[Parked, Known]]:
        """Take out those whose table is known by now, each node's in order."""
        out: list[tuple[Parked, Known]] = []
        for node in list(self._nodes):
            while (first := self._first(node)) is not None and (
                known := tables.get(first.table)
            ) is not None:
                out.append((self._pop(node), known))
        return out

    def forget(self, shards: Iterable[int]) -> None:
        """Drop what belongs to shards that another analyzer reads now."""
        gone = set(shards)
        for node, line in list(self._nodes.items()):
            if line[0].entry.shard in gone:
                self._count -= len(line)
                del self._nodes[node]

    def _first(self, node: str) -> Parked | None:
        line = self._nodes.get(node)
        return line[0] if line else None

    def _pop(self, node: str) -> Parked:
        line = self._nodes[node]
        parked = line.popleft()
        self._count -= 1
        if not line:
            del self._nodes[node]
        return parked
