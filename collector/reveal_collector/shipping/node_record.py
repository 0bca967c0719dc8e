"""What a collector says of its node in Redis: status, subjects, facts, token and channel tables.

Each key has a time limit that is renewed with the status.  So what a node wrote ends by itself,
however its collector ends.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from reveal_collector.shipping.origin_proof import OriginProof
from reveal_collector.shipping.redis_cluster import Connection
from reveal_collector.shipping.resp import Command, RedisError
from reveal_collector.shipping.sinks import StatusProvider
from reveal_contract.channels import ChannelTable
from reveal_contract.names import (
    CPU_SHARES,
    FACTS,
    KEPT_SECONDS,
    PROOF_OF,
    STATUS,
    SUBJECTS,
    TOKENS,
    node_key,
    table_changes_key,
    table_key,
)
from reveal_contract.settings import CollectorSettings
from reveal_contract.table_changes import TableChanges

# Changes add up while pods come and go.  Beyond this share of the whole table, that is announced.
_MAX_CHANGES = 0.25
# until something is written again that did not change: the collector of another node, which has the
# same login, could have overwritten it
_TOKEN_SECONDS = 60.0
_FIELDS_SECONDS = 300.0
_LEAST_SECONDS = 20  # of a table: each status renews it, every five seconds
_OWN_FIELDS = (SUBJECTS, CPU_SHARES)  # parts of the status with a field of their own


class NodeRecord:
    """The keys of one node; methods raise ``RedisError`` and ``OSError``."""

    def __init__(
        self, connection: Connection, settings: CollectorSettings, proof: OriginProof
    ) -> None:
        self._connection, self._profile = connection, settings.profile
        self._proof = proof
        self._node = settings.node
        self._key = node_key(settings.profile, settings.node)
        # a table is not renewed after its last slice, which stays in the stream for a while
        seconds = 2 * settings.stream_seconds + settings.buffer_seconds
        self._table_seconds = max(seconds, _LEAST_SECONDS)
        self._table: ChannelTable | None = None  # that Redis knows
        self._whole: ChannelTable | None = None  # announced last as a whole
        self._whole_bytes = 0  # of its announcement
        self._changed_s: float | None = None  # since when the table differs from it
        self._written: dict[str, str] = {}  # fields as Redis knows them
        self._facts: bytes | None = None  # published last
        self._token: bytes | None = None  # that Redis knows
        self._token_due_s = 0.0
        self._fields_due_s = time.monotonic() + _FIELDS_SECONDS
        self._published = False  # a status

    @property
    def announced(self) -> bool:
        """Whether Redis knows the table of the last slice."""
        return self._table is not None

    def reset(self) -> None:
        """Write everything again, as after an error: Redis may be another server."""
        self._table, self._written, self._facts, self._token = None, {}, None, None
        self._whole, self._published = None, False

    def announce(self, table: ChannelTable, status: StatusProvider) -> None:
        """Write subjects and channel table before the first slice that refers to them."""
        if self._table is not None and table.key == self._table.key:
            return
        self._publish_fields(status())
        if not self._announce_changes(table):
            self._announce_whole(table)
        self._table = table

    def announce_token(self) -> None:
        """Write the token of which slices and fields are proven, before the first of them."""
        token, now = self._proof.token, time.monotonic()
        if token is None or (token == self._token and now < self._token_due_s):
            return
        self._set(TOKENS[int(time.time() / 60) % len(TOKENS)], token)
        self._token_due_s = now + _TOKEN_SECONDS
        if token != self._token:
            self._token = token
            self._written, self._facts = {}, None  # their proofs name the token before

    def publish(self, status: Mapping[str, Any], facts: bytes | None) -> None:
        """Write the status, and what changed; renew the time limits."""
        if (now := time.monotonic()) >= self._fields_due_s:
            self._fields_due_s = now + _FIELDS_SECONDS
            self._written, self._facts = {}, None
        self._publish_fields(status)
        row = json.dumps({key: value for key, value in status.items() if key not in _OWN_FIELDS})
        added, _ = self._write(STATUS, row.encode())
        renewed = self._renewed()
        if facts is not None and facts is not self._facts:
            self._write(FACTS, facts)
            self._facts = facts
        if not all(renewed):  # Redis lost its data
            self.reset()
        elif added and self._published:  # somebody deleted the hash
            self._written, self._facts, self._token = {}, None, None
        self._replace_outdated()
        self._published = True

    def withdraw(self) -> None:
        """Remove status and subjects: a collector of an earlier version may run here next."""
        with suppress(RedisError, OSError):
            fields = (STATUS, *_OWN_FIELDS)
            proofs = (PROOF_OF + field for field in fields)
            self._connection.call(("HDEL", self._key, *fields, *proofs))

    def _publish_fields(self, status: Mapping[str, Any]) -> None:
        """Publish subjects and CPU shares if they changed."""
        for field in _OWN_FIELDS:
            if field not in status:
                continue
            text = json.dumps(status[field], separators=(",", ":"), ensure_ascii=False)
            if text != self._written.get(field):
                # a lone surrogate is written as the escape that JSON has for it
                self._write(field, text.encode(errors="backslashreplace"))
                self._written[field] = text

    def _write(self, field: str, value: bytes) -> list[Any]:
        """Write a field with the proof of its origin."""
        return self._set(field, value, *self._proof.of_field(field, value))

    def _set(self, *fields: str | bytes | int) -> list[Any]:
        """Write fields; no end of this process leaves a key without a time limit (MULTI)."""
        return self._connection.transaction(
            [("HSET", self._key, *fields), ("EXPIRE", self._key, KEPT_SECONDS)]
        )

    def _announce_whole(self, table: ChannelTable) -> None:
        announcement = table.announcement()
        key = table_key(self._profile, table.key)
        self._connection.call(("SET", key, announcement, "EX", self._table_seconds))
        self._whole, self._whole_bytes = table, len(announcement)
        self._changed_s = None

    def _replace_outdated(self) -> None:
        """Announce the table whole if its base has had names of what is gone for long enough."""
        if self._table is None or self._changed_s is None:
            return
        if time.monotonic() - self._changed_s >= self._table_seconds:
            self._announce_whole(self._table)

    def _announce_changes(self, table: ChannelTable) -> bool:
        """Announce the table by its changes; return False if it must be announced whole."""
        if self._whole is None:
            return False
        renewal = self._renewal(table_key(self._profile, self._whole.key))
        if table.key == self._whole.key:
            return bool(self._connection.call(renewal))
        announcement = TableChanges.between(self._whole, table).announcement()
        if len(announcement) > _MAX_CHANGES * self._whole_bytes:
            return False
        key = table_changes_key(self._profile, table.key, self._node)
        answers = self._connection.transaction(
            [("SET", key, announcement, "EX", self._table_seconds), renewal]
        )
        if self._changed_s is None:
            self._changed_s = time.monotonic()
        return bool(answers[-1])  # changes without their base are of no use

    def _renewed(self) -> list[Any]:
        """Renew the table in use: its base, and its changes; 0 stands for one that is gone.

        Tables are in another slot of a Redis Cluster than what else is known of the node.
        """
        if self._whole is None or self._table is None:
            return []
        keys = [table_key(self._profile, self._whole.key)]
        if self._table.key != self._whole.key:
            keys.append(table_changes_key(self._profile, self._table.key, self._node))
        return self._connection.transaction([self._renewal(key) for key in keys])

    def _renewal(self, key: str) -> Command:
        return "EXPIRE", key, self._table_seconds
