"""The ends of the keys of the stream: time limits, and slices of nodes that send no more."""

from __future__ import annotations

import time
from collections.abc import Iterable

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
        self._due = 0.0

    def due(self) -> bool:
        """Whether ``run`` should be called."""
        return time.monotonic() >= self._due

    def run(self, shards: Iterable[int]) -> None:
        """Renew the time limits of the streams of these shards, and drop very old slices.

        Collectors trim what they write to: slices in a stream without collectors end here.
        """
        self._due = time.monotonic() + PERIOD_SECONDS
        seconds, micros = self._client.time()
        oldest_ms = seconds * 1000 + micros // 1000 - KEPT_SECONDS * 1000
        with self._client.pipeline(transaction=False) as pipe:
            for key in (samples_key(self._profile, shard) for shard in shards):
                pipe.xtrim(key, minid=str(max(0, oldest_ms)), approximate=False)
                pipe.expire(key, KEPT_SECONDS)
            pipe.execute(raise_on_error=False)  # a key may hold something other than a stream
        self._limit_earlier()

    def _limit_earlier(self) -> None:
        with self._client.pipeline(transaction=False) as pipe:
            for key in _EARLIER:
                pipe.ttl(key)
            for key, left in zip(_EARLIER, pipe.execute(), strict=True):
                if left == -1:
                    pipe.expire(key, EARLIER_KEPT_SECONDS)
            pipe.execute()
