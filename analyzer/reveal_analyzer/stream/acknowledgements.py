"""What was read and is not processed yet, and what was processed and is not acknowledged yet."""

from __future__ import annotations

import time
from collections.abc import Iterable

from reveal_analyzer.stream.consumer import StreamConsumer


class Acknowledgements:
    """The entries of one analyzer, by shard; XACKs are sent together.

    Methods raise what redis-py raises when Redis is unavailable.
    """

    def __init__(self, consumer: StreamConsumer, seconds: float) -> None:
        self._consumer, self._seconds = consumer, seconds
        self._in_flight: dict[int, set[bytes]] = {}  # read and not processed yet
        self._processed: dict[int, dict[bytes, None]] = {}  # in order
        self._sent_s = 0.0

    def begin(self, shard: int, entry_id: bytes) -> bool:
        """Note an entry as read; return false if it is in flight or processed already."""
        in_flight = self._in_flight.setdefault(shard, set())
        if entry_id in in_flight or entry_id in self._processed.get(shard, ()):
            return False
        in_flight.add(entry_id)
        return True

    def end(self, shard: int, entry_id: bytes) -> None:
        """Note an entry as processed, to be acknowledged."""
        self._in_flight.get(shard, set()).discard(entry_id)
        self._processed.setdefault(shard, {})[entry_id] = None

    def idle(self, shard: int) -> bool:
        """Whether all entries of a shard are processed and acknowledged."""
        return not self._in_flight.get(shard) and shard not in self._processed

    def forget(self, shards: Iterable[int]) -> None:
        """Drop the entries of shards that another analyzer reads now."""
        for shard in shards:
            self._in_flight.pop(shard, None)
            self._processed.pop(shard, None)

    def send_when_due(self) -> None:
        """Send pending acknowledgements once per interval."""
        if time.monotonic() >= self._sent_s + self._seconds:
            self.send()

    def send(self) -> None:
        """Send pending acknowledgements."""
        self._sent_s = time.monotonic()
        if self._processed:
            self._consumer.acknowledge(self._processed)
            self._processed = {}
