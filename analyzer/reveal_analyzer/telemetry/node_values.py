"""What analyzers share through Redis: a value of each node, and rows for the next leader."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

import redis

from reveal_analyzer.telemetry.limited_values import get_fields, get_string, too_long
from reveal_contract import foreign_json

log = logging.getLogger(__name__)

_MOST_VALUE = 1 << 20  # bytes of a node; real ones are below 64 KiB
_MOST_ROWS = 64 << 20
Value = TypeVar("Value")


class NodeValues(Generic[Value]):
    """A hash, node -> its last value, which expires unless somebody writes to it.

    ``decode`` returns None for a value that is to be skipped and raises ``ValueError`` for one that
    cannot be used; ``name`` is what logs call a value.  Methods raise what redis-py raises when
    Redis is unavailable.
    """

    def __init__(
        self,
        client: redis.Redis,
        key: str,
        kept_seconds: int,
        decode: Callable[[str, bytes], Value | None],
        name: str,
    ) -> None:
        self._client, self._key, self._kept_seconds = client, key, kept_seconds
        self._decode, self._name = decode, name
        self._logged: set[str] = set()

    def put(self, values: Mapping[str, bytes]) -> None:
        """Write encoded values, each instead of the node's last one."""
        fields: Any = values
        if fields:
            with self._client.pipeline(transaction=False) as pipe:
                pipe.hset(self._key, mapping=fields)
                pipe.expire(self._key, self._kept_seconds)
                pipe.execute()

    def nodes(self) -> list[str]:
        """Return the nodes that have a value, sorted."""
        names: Any = self._client.hkeys(self._key)
        return sorted(name.decode(errors="replace") for name in names)

    def get(self, nodes: Sequence[str]) -> dict[str, Value]:
        """Return the last value of each node; log an unusable one once, and skip it."""
        if not nodes:
            return {}
        replies = get_fields(self._client, self._key, nodes, _MOST_VALUE)
        found = {}
        for node, data in zip(nodes, replies, strict=True):
            if data is not None and (value := self._decoded(node, data)) is not None:
                found[node] = value
        return found

    def drop(self, nodes: Sequence[str]) -> None:
        """Delete the values of nodes that have left."""
        if nodes:
            self._client.hdel(self._key, *nodes)

    def _decoded(self, node: str, data: bytes | int) -> Value | None:
        try:
            if isinstance(data, int):
                raise ValueError(too_long(data, _MOST_VALUE))
            return self._decode(node, data)
        except ValueError as error:
            if node not in self._logged:
                log.warning("%s of %s cannot be used: %s", self._name, node, error)
                self._logged.add(node)
            return None


class SavedRows:
    """Rows as JSON that a leader saves and the next one reads.

    Methods raise what redis-py raises when Redis is unavailable.
    """

    def __init__(self, client: redis.Redis, key: str, kept_seconds: int) -> None:
        self._client, self._key, self._kept_seconds = client, key, kept_seconds

    def save(self, rows: Sequence[Any]) -> None:
        """Write the rows instead of the last ones."""
        self._client.set(self._key, json.dumps(rows), ex=self._kept_seconds)

    def load(self) -> list[Any]:
        """Return the rows that were saved; none if they cannot be read."""
        data = get_string(self._client, self._key, _MOST_ROWS)
        try:
            rows = foreign_json.loads(data, _MOST_ROWS) if isinstance(data, bytes) else []
        except ValueError:
            return []
        return rows if isinstance(rows, list) else []
