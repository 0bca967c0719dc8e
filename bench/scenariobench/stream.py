"""The stream of one node in one profile: adds slices, waits until they are read.

Slices are added faster than they were recorded, under the ids that they would have had in real
time: an analyzer that takes a shard over reads the entries of the last minute by their ids.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import redis

from reveal_contract import names

KEPT_S = 120  # seconds of a node that its collector keeps in the stream
_POLL_S = 0.008
_STUCK_S = 60.0

Fields = dict[str | bytes, str | bytes | int]


class StreamError(RuntimeError):
    """The analyzer does not read; the text says what is left."""


@dataclass
class NodeStream:
    """One stream; ids are milliseconds of the node's own clock, as it was never set."""

    client: redis.Redis
    profile: str
    node: str
    _last: bytes = b""

    @property
    def key(self) -> str:
        return names.samples_key(self.profile, names.shard(self.node))

    def add(self, entries: list[tuple[int, Fields]]) -> None:
        """Append slices, each with its time in milliseconds."""
        with self.client.pipeline(transaction=False) as pipe:
            for milliseconds, fields in entries:
                pipe.xadd(self.key, fields, id=f"{milliseconds}-0")
            ids: list[bytes] = pipe.execute()
        self._last = ids[-1]

    def wait_delivered(self) -> None:
        """Wait until the last slice has been read; all before the last read are processed then."""
        self._wait(lambda group: group["last-delivered-id"] == self._last)

    def wait_processed(self) -> None:
        """Wait until all slices are acknowledged: their findings are written."""
        self._wait(lambda group: group["last-delivered-id"] == self._last and not group["pending"])

    def trim(self, length: int = KEPT_S) -> None:
        """Remove entries that a collector would have removed."""
        self.client.xtrim(self.key, maxlen=length, approximate=False)

    def _group(self) -> dict[str, Any] | None:
        try:
            groups: Any = self.client.xinfo_groups(self.key)
        except redis.ResponseError:
            return None
        return next((g for g in groups if g["name"] == names.GROUP.encode()), None)

    def _wait(self, done: Callable[[dict[str, Any]], bool]) -> None:
        deadline = time.monotonic() + _STUCK_S
        while (group := self._group()) is None or not done(group):
            if time.monotonic() > deadline:
                raise StreamError(f"node {self.node} of {self.profile} is not read: {group}")
            time.sleep(_POLL_S)
