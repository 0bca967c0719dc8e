"""Channel tables by their keys: each is fetched once, from what the nodes announced."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import redis

from reveal_analyzer.stream.kept_tables import DecodableTable, KeptTables
from reveal_analyzer.telemetry.limited_values import (
    Limited,
    get_fields,
    get_string,
    request_string,
    string_of,
    too_long,
)
from reveal_contract.channels import MAX_ANNOUNCEMENT, ChannelTable, TableError
from reveal_contract.names import EARLIER_TABLES_KEY, table_changes_key, table_key
from reveal_contract.runtime.backoff import delay
from reveal_contract.skipped_channels import log_skipped
from reveal_contract.table_changes import TableChanges

log = logging.getLogger(__name__)

MAX_BAD = 512  # keys of unusable tables, which are logged once
# What was overwritten is deleted, and collectors announce it again with their next status.  This is
# the least pause: collectors of a later version may announce what this one cannot read.
_DELETE_SECONDS = 60.0
RETRY_SECONDS = 0.25  # until the second request; each later pause is twice as long
LONGEST_RETRY_SECONDS = 4.0
# Large tables take tens of milliseconds each.  When an analyzer starts, those of all nodes are new,
# and the leases must be renewed meanwhile.
FETCH_SECONDS = 0.1
PORTION = 4  # tables fetched together
SMALL_BYTES = 1 << 20  # as announced: a larger table is fetched by itself; most have 10 KB
PORTION_BYTES = 16 << 20  # of large tables; what is left is requested again
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


class _Announced(NamedTuple):
    """Changes that a node announced of a table: their key in Redis and what they are."""

    key: bytes  # of the table
    where: str
    changes: TableChanges


class ChannelTables:
    """The announced tables; each is fetched once, unknown ones are requested again and again.

    A table is announced whole, or by a node as its changes of one that was announced whole.  Keys
    are digests, so what somebody else wrote in the place of a table is noticed here.
    """

    def __init__(self, profile: str) -> None:
        self._profile = profile
        self._known = KeptTables()
        self._asked: dict[bytes, _Asked] = {}
        self._bad: set[bytes] = set()
        self._unusable: set[str] = set()  # keys in Redis
        self._deleted: dict[str, float] = {}  # keys in Redis, and when

    def get(self, key: bytes) -> DecodableTable | None:
        return self._known.get(key)

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
        bases = {each.base for _, _, each in changes}
        self._request_whole(client, [key for key in bases if self.get(key) is None])
        based = self._apply(changes)
        self._delete_unusable(client)
        for key, nodes in needed.items():
            if self.get(key) is not None:
                self._known.note_newest(nodes, key, based.get(key, b""))
        self._known.forget()

    def _apply(self, changes: Iterable[_Announced]) -> dict[bytes, bytes]:
        """Learn tables by their changes; return the base of each."""
        based: dict[bytes, bytes] = {}
        for key, where, each in changes:
            # a base that Redis lost is announced again: then it is requested with the changes
            if self.get(key) is None and (base := self.get(each.base)) is not None:
                self._learn(key, where, partial(each.applied, base.table))
                based[key] = each.base
        return based

    def _request_whole(self, client: redis.Redis, keys: Iterable[bytes]) -> None:
        """Request whole tables: small tables together, then each large table by itself."""
        asked = list(keys)
        if not asked:
            return
        with client.pipeline(transaction=False) as pipe:
            for key in asked:
                request_string(pipe, table_key(self._profile, key), SMALL_BYTES)
                pipe.hstrlen(EARLIER_TABLES_KEY, key.hex())
            found: list[Any] = pipe.execute(raise_on_error=False)
        larger: list[bytes] = []
        for key, own, earlier in zip(asked, found[::2], found[1::2], strict=True):
            whole = string_of(own, SMALL_BYTES)
            if isinstance(whole, bytes):
                self._learn_whole(key, whole)
            elif whole is not None or _is_there(earlier):
                larger.append(key)
        self._request_larger(client, larger)

    def _request_larger(self, client: redis.Redis, keys: Iterable[bytes]) -> None:
        """Request large tables, and those of earlier collectors, each by itself."""
        left = PORTION_BYTES
        for key in keys:
            if left <= 0:
                return
            whole = self._larger(client, key)
            if isinstance(whole, bytes):
                self._learn_whole(key, whole)
            elif whole is not None:
                error = TableError(too_long(whole, MAX_ANNOUNCEMENT))
                self._refuse(key, table_key(self._profile, key), error)
            left -= len(whole) if isinstance(whole, bytes) else whole or 0

    def _larger(self, client: redis.Redis, key: bytes) -> Limited:
        """Return a table as announced; collectors of an earlier version did so in a hash."""
        own = get_string(client, table_key(self._profile, key), MAX_ANNOUNCEMENT)
        if own is not None:
            return own
        return get_fields(client, EARLIER_TABLES_KEY, [key.hex()], MAX_ANNOUNCEMENT)[0]

    def _request_changes(
        self, client: redis.Redis, asked: Sequence[tuple[bytes, str]]
    ) -> list[_Announced]:
        """Return the changes that these nodes announced of these tables."""
        if not asked:
            return []
        keys = [table_changes_key(self._profile, key, node) for key, node in asked]
        with client.pipeline(transaction=False) as pipe:
            for where in keys:
                request_string(pipe, where, SMALL_BYTES)
            found: list[Any] = pipe.execute(raise_on_error=False)
        result: list[_Announced] = []
        for (key, _), where, reply in zip(asked, keys, found, strict=True):
            data = string_of(reply, SMALL_BYTES)
            if data is None:
                continue
            try:
                result.append(_Announced(key, where, _changes(data)))
            except TableError as error:
                self._refuse(key, where, error)
        return result

    def _learn_whole(self, key: bytes, data: bytes) -> None:
        where = table_key(self._profile, key)
        self._learn(key, where, partial(ChannelTable.from_announcement, data))

    def _learn(self, key: bytes, where: str, parse: Callable[[], ChannelTable]) -> None:
        try:
            table = parse()
            if table.key != key:
                raise TableError(f"its key is {table.key.hex()}")
        except TableError as error:
            self._refuse(key, where, error)
            return
        log_skipped(table)
        self._known.add(table)

    def _refuse(self, key: bytes, where: str, error: TableError) -> None:
        if key not in self._bad:
            log.warning("announced channel table %s cannot be used: %s", key.hex(), error)
        self._bad = {*self._bad, key} if len(self._bad) < MAX_BAD else {key}
        self._unusable.add(where)

    def _delete_unusable(self, client: redis.Redis) -> None:
        """Delete what was announced and cannot be used, so that collectors announce it again."""
        unusable, self._unusable = self._unusable, set()
        now = time.monotonic()
        self._deleted = {
            where: since for where, since in self._deleted.items() if now - since < _DELETE_SECONDS
        }
        for where in sorted(unusable - self._deleted.keys()):
            client.delete(where)
            self._deleted[where] = now


def _changes(data: bytes | int) -> TableChanges:
    """Parse announced changes, an int for those over the limit; raise ``TableError``."""
    if isinstance(data, int):
        raise TableError(f"its changes have {too_long(data, SMALL_BYTES)}")
    return TableChanges.from_announcement(data)


def _is_there(reply: object) -> bool:
    """Return whether a field has a length; a key of another type answers with an error."""
    return isinstance(reply, int) and reply > 0
