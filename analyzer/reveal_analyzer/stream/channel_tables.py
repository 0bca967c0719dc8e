"""Channel tables by their keys: each is fetched once, from what the nodes announced."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from typing import Any

import redis

from reveal_contract import wire
from reveal_contract.channels import ChannelTable, TableError
from reveal_contract.names import EARLIER_TABLES_KEY, table_changes_key, table_key
from reveal_contract.runtime.backoff import delay
from reveal_contract.skipped_channels import log_skipped
from reveal_contract.table_changes import TableChanges

log = logging.getLogger(__name__)

MAX_BAD = 512  # keys of unusable tables, which are logged once
# A table is half a megabyte, and each start or end of a pod makes a new one.  If a node returns to
# an old table, that is fetched again.
UNUSED_SECONDS = 120.0
RETRY_SECONDS = 0.25  # until the second request; each later pause is twice as long
LONGEST_RETRY_SECONDS = 4.0
# Large tables take tens of milliseconds each.  When an analyzer starts, those of all nodes are new,
# and the leases must be renewed meanwhile.
FETCH_SECONDS = 0.1
PORTION = 4  # tables fetched together
MOST_ASKED = 4  # nodes whose changes may give the same table
_ASKED_SECONDS = 60.0  # without need of it, a table counts as one that was never asked for


@dataclass(frozen=True)
class _Asked:
    """When a table was requested last, and how often before that."""

    last_s: float
    earlier: int = 0

    def is_due(self, now: float) -> bool:
        pause = delay(self.earlier, RETRY_SECONDS, LONGEST_RETRY_SECONDS)
        return now - self.last_s >= pause


@dataclass(frozen=True)
class DecodableTable:
    """A channel table and which of its channels are gauges, which decoding needs."""

    table: ChannelTable
    gauges: wire.Bools


class ChannelTables:
    """The announced tables; each is fetched once, unknown ones are requested again and again.

    A table is announced whole, or by a node as its changes of one that was announced whole.
    """

    def __init__(self, profile: str) -> None:
        self._profile = profile
        # with the time of its last use; the longest unused comes first
        self._known: dict[bytes, tuple[DecodableTable, float]] = {}
        self._asked: dict[bytes, _Asked] = {}
        self._bad: set[bytes] = set()

    def get(self, key: bytes) -> DecodableTable | None:
        found = self._known.pop(key, None)
        return self._use(key, found[0]) if found is not None else None

    def fetch(self, client: redis.Redis, needed: Mapping[bytes, Sequence[str]]) -> bool:
        """Request the tables that are due, for a limited time; return whether some are left.

        ``needed`` has the nodes that use each table.
        """
        now = time.monotonic()
        self._asked = {
            key: asked for key, asked in self._asked.items() if now - asked.last_s < _ASKED_SECONDS
        }
        due = [key for key in needed if key not in self._asked or self._asked[key].is_due(now)]
        for start in range(0, len(due), PORTION):
            if start and time.monotonic() - now >= FETCH_SECONDS:
                return True
            keys = due[start : start + PORTION]
            self._note_asked(keys, now)
            self._request(client, {key: needed[key] for key in keys})
        return False

    def _note_asked(self, keys: Iterable[bytes], now: float) -> None:
        for key in keys:
            before = self._asked.get(key)
            self._asked[key] = _Asked(now, 0 if before is None else before.earlier + 1)

    def _request(self, client: redis.Redis, needed: Mapping[bytes, Sequence[str]]) -> None:
        """Request some tables: whole, else as changes, and whole the bases of these."""
        self._request_whole(client, needed)
        unknown = [key for key in needed if self.get(key) is None]
        changes = self._request_changes(
            client, [(key, node) for key in unknown for node in needed[key][:MOST_ASKED]]
        )
        bases = {each.base for _, each in changes}
        self._request_whole(client, [key for key in bases if self.get(key) is None])
        for key, each in changes:
            # a base that Redis lost is announced again: then it is requested with the changes
            if self.get(key) is None and (base := self.get(each.base)) is not None:
                self._learn(key, partial(each.applied, base.table))

    def _request_whole(self, client: redis.Redis, keys: Iterable[bytes]) -> None:
        """Request whole tables; collectors of an earlier version announce them in a hash."""
        asked = list(keys)
        if not asked:
            return
        with client.pipeline(transaction=False) as pipe:
            for key in asked:
                pipe.get(table_key(self._profile, key))
                pipe.hget(EARLIER_TABLES_KEY, key.hex())
            found: list[Any] = pipe.execute(raise_on_error=False)
        for key, own, earlier in zip(asked, found[::2], found[1::2], strict=True):
            if (whole := _announced(own, earlier)) is not None:
                self._learn(key, partial(ChannelTable.from_announcement, whole))

    def _request_changes(
        self, client: redis.Redis, asked: Sequence[tuple[bytes, str]]
    ) -> list[tuple[bytes, TableChanges]]:
        """Return the changes that these nodes announced of these tables."""
        if not asked:
            return []
        with client.pipeline(transaction=False) as pipe:
            for key, node in asked:
                pipe.get(table_changes_key(self._profile, key, node))
            found: list[Any] = pipe.execute(raise_on_error=False)
        result: list[tuple[bytes, TableChanges]] = []
        for (key, _), data in zip(asked, found, strict=True):
            if not isinstance(data, bytes):
                continue
            try:
                result.append((key, TableChanges.from_announcement(data)))
            except TableError as error:
                self._refuse(key, error)
        return result

    def _learn(self, key: bytes, parse: Callable[[], ChannelTable]) -> None:
        try:
            table = parse()
            if table.key != key:
                raise TableError(f"its key is {table.key.hex()}")
        except TableError as error:
            self._refuse(key, error)
            return
        log_skipped(table)
        self._use(key, DecodableTable(table, wire.gauges(table)))
        self._forget()

    def _refuse(self, key: bytes, error: TableError) -> None:
        if key not in self._bad:
            log.warning("announced channel table %s cannot be used: %s", key.hex(), error)
        self._bad = {*self._bad, key} if len(self._bad) < MAX_BAD else {key}

    def _use(self, key: bytes, known: DecodableTable) -> DecodableTable:
        self._known[key] = known, time.monotonic()
        return known

    def _forget(self) -> None:
        """Drop tables that were not used for a while; called when there is a new one."""
        due = time.monotonic() - UNUSED_SECONDS
        unused = takewhile(lambda item: item[1][1] < due, self._known.items())
        for key, _ in list(unused):
            del self._known[key]


def _announced(own: object, earlier: object) -> bytes | None:
    """Return the answer that is an announcement; a key of another type answers with an error."""
    for answer in (own, earlier):
        if isinstance(answer, bytes):
            return answer
    return None
