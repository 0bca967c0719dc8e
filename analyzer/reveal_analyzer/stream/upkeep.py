"""The ends of the keys of the stream: time limits, which no key is without."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import redis

from reveal_contract.names import (
    EARLIER_NODE_KEYS,
    EARLIER_TABLES_KEY,
    KEPT_SECONDS,
    samples_key,
)

PERIOD_SECONDS = 60.0
# collectors of an earlier version set no limits, and write what they miss again
EARLIER_KEPT_SECONDS = 86_400
_EARLIER = (EARLIER_TABLES_KEY, *EARLIER_NODE_KEYS.values())


class StreamUpkeep:
    """What the owner of shards does once a minute; raises what redis-py raises."""

    def __init__(self, client: redis.Redis, profile: str) -> None:
        self._client, self._profile = client, profile
        self._newest: dict[str, bytes] = {}  # last entry of each stream at the last run
        self._due = 0.0

    def due(self) -> bool:
        """Whether ``run`` should be called."""
        return time.monotonic() >= self._due

    def run(self, shards: Iterable[int]) -> None:
        """Renew the time limits of those streams of these shards that are in use.

        A stream to which nobody adds ends as a whole, with the slices of nodes that have gone.
        Collectors trim what they write to, and those of an earlier version set no time limit.
        """
        self._due = time.monotonic() + PERIOD_SECONDS
        keys = [samples_key(self._profile, shard) for shard in shards]
        replies = self._together(keys)
        with self._client.pipeline(transaction=False) as pipe:
            for key, (rows, left) in replies.items():
                if isinstance(rows, Exception):  # something other than a stream
                    continue
                if self._in_use(key, rows) or left == -1:
                    pipe.expire(key, KEPT_SECONDS)
            pipe.execute()
        self._limit_earlier()

    def _together(self, keys: list[str]) -> dict[str, tuple[Any, Any]]:
        """Return the last entry and the time limit of each key; an error of one is its reply."""
        with self._client.pipeline(transaction=False) as pipe:
            for key in keys:
                pipe.xrevrange(key, count=1)
                pipe.ttl(key)
            replies = iter(pipe.execute(raise_on_error=False))
        return dict(zip(keys, zip(replies, replies, strict=True), strict=True))

    def _in_use(self, key: str, rows: Any) -> bool:
        """Return whether entries were added since the last run; an empty stream waits for some."""
        if not rows:
            return True
        before, self._newest[key] = self._newest.get(key), rows[0][0]
        return bool(before != rows[0][0])

    def _limit_earlier(self) -> None:
        with self._client.pipeline(transaction=False) as pipe:
            for key in _EARLIER:
                pipe.ttl(key)
            for key, left in zip(_EARLIER, pipe.execute(), strict=True):
                if left == -1:
                    pipe.expire(key, EARLIER_KEPT_SECONDS)
            pipe.execute()
