"""Ships slices to Redis: one stream message each, in order, buffered while Redis is unavailable."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from reveal_collector.kernel.scheduling import prefer_real_time
from reveal_collector.shipping.resp import Command, RedisConnection, RedisError
from reveal_collector.shipping.sinks import EncodedSlice, SinkHealth, StatusProvider
from reveal_contract import names
from reveal_contract.runtime.backoff import HALF_JITTER, Backoff
from reveal_contract.settings import CollectorSettings

log = logging.getLogger(__name__)

SOCKET_TIMEOUT = 5.0
STATUS_SECONDS = 5.0
FACTS_SECONDS = 600.0
FIRST_WAIT, LAST_WAIT = 0.2, 5.0
BATCH = 32


class RedisSink:
    """Delivers from a thread of its own; buffers the newest ``buffer_seconds`` slices.

    A slice leaves the buffer when Redis has acknowledged it.  After a lost reply it is sent
    twice: the analyzer deduplicates by (node, boot, sequence).
    """

    nonblocking = True

    def __init__(self, settings: CollectorSettings) -> None:
        self._settings = settings
        self._stream = names.samples_key(settings.profile, names.shard(settings.node))
        # written twice: for this profile, and for analyzers of earlier versions
        self._status_keys = names.node_key(settings.profile, names.NODES), names.NODES_KEY
        self._subjects_keys = names.node_key(settings.profile, names.SUBJECTS), names.SUBJECTS_KEY
        self._connection = RedisConnection(settings.redis_url, SOCKET_TIMEOUT)
        self._buffer: deque[EncodedSlice] = deque()
        self._changed = threading.Condition()
        self._deadline: float | None = None  # of ``close``, on the monotonic clock
        self._delivered = self._dropped = 0
        self._error = ""
        self._registered: bytes = b""  # key of the table that Redis knows
        self._retired: dict[bytes, float] = {}  # earlier tables -> when they were replaced
        self._table_seconds = 2.0 * settings.stream_seconds + settings.buffer_seconds
        self._status: StatusProvider = dict
        self._status_due = 0.0
        self._subjects = ""
        self._facts: bytes | None = None
        self._published_facts: tuple[bytes, float] | None = None
        self._shard_nodes = 1
        self._thread = threading.Thread(target=self._run, name="reveal-redis", daemon=True)

    def start(self, status: StatusProvider) -> None:
        """Start the thread; ``status`` returns the status of this node to publish."""
        self._status = status
        self._thread.start()

    def put(self, encoded: EncodedSlice) -> None:
        """Append a slice to the buffer; drop the oldest one if it is full."""
        with self._changed:
            if len(self._buffer) >= self._settings.buffer_seconds:
                self._buffer.popleft()
                self._dropped += 1
            self._buffer.append(encoded)
            if encoded.facts is not None and encoded.facts is not self._facts:
                self._facts, self._status_due = encoded.facts, 0.0
            self._changed.notify()

    def health(self) -> SinkHealth:
        """Return the counts and the current error."""
        return SinkHealth(self._delivered, len(self._buffer), self._dropped, self._error)

    def close(self, timeout: float) -> None:
        """Deliver the buffered slices for at most ``timeout`` seconds, then stop the thread."""
        with self._changed:
            self._deadline = time.monotonic() + timeout
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join(timeout)
        if self._buffer:
            log.warning("%d slices could not be delivered before the end", len(self._buffer))

    def _run(self) -> None:
        prefer_real_time()
        # jitter: all collectors of a cluster lose the same Redis at the same time
        backoff = Backoff(FIRST_WAIT, LAST_WAIT, HALF_JITTER)
        while self._await_work():
            try:
                self._deliver()
                self._publish_status()
            except (RedisError, OSError) as error:
                self._disconnect(error)
                self._pause(backoff.next())
                continue
            if self._error:
                log.info("Redis accepts slices again")
                self._error = ""
                backoff.reset()
        if self._registered:  # connected, and not after an error
            self._withdraw()
        self._connection.close()

    def _await_work(self) -> bool:
        """Wait until a slice or the status is due; return False when the thread must end."""
        with self._changed:
            while not self._buffer:
                # closing, and everything is delivered: the status needs no last update
                if self._deadline is not None:
                    return False
                left = self._status_due - time.monotonic()
                if left <= 0:
                    return True
                self._changed.wait(left)
            # slices are left: continue until the deadline of ``close``, if there is one
            return self._deadline is None or time.monotonic() < self._deadline

    def _deliver(self) -> None:
        while batch := self._batch():
            for encoded in batch:
                self._register_table(encoded)
            self._add(batch)
            with self._changed:
                # ``put`` may have dropped the oldest slices of the batch meanwhile
                for encoded in batch:
                    if self._buffer and self._buffer[0] is encoded:
                        self._buffer.popleft()
            self._delivered += len(batch)

    def _batch(self) -> list[EncodedSlice]:
        with self._changed:
            return [self._buffer[index] for index in range(min(BATCH, len(self._buffer)))]

    def _add(self, batch: list[EncodedSlice]) -> None:
        """Add all slices or none (MULTI): no slice may overtake an earlier one that failed."""
        commands = [self._xadd(encoded) for encoded in batch]
        if len(commands) == 1:
            self._connection.call(commands[0])
        else:
            self._connection.transaction(commands)

    def _xadd(self, encoded: EncodedSlice) -> Command:
        length = self._settings.stream_seconds * self._shard_nodes
        return (
            "XADD", self._stream, "MAXLEN", "~", length, "*",
            names.FIELD_NODE, encoded.node,
            names.FIELD_BOOT, encoded.boot,
            names.FIELD_SEQUENCE, encoded.sequence,
            names.FIELD_TABLE, encoded.table.key.hex(),
            names.FIELD_TIME, encoded.start_ns,
            names.FIELD_DATA, encoded.data,
        )  # fmt: skip

    def _register_table(self, encoded: EncodedSlice) -> None:
        """Write the channel table before the first slice that refers to it."""
        key = encoded.table.key
        if key == self._registered:
            return
        # After a reconnect, Redis may be another server or may have lost its data: the subjects
        # are written again as well.
        if not self._registered:
            self._subjects = ""
        self._publish_subjects(self._status())
        self._connection.call(("HSET", names.CATALOGUE_KEY, key.hex(), encoded.table.to_json()))
        if self._registered:
            self._retired[self._registered] = time.monotonic()
        self._retired.pop(key, None)
        self._registered = key

    def _publish_status(self) -> None:
        """Publish the status every few seconds; check whether Redis still has the table."""
        if time.monotonic() < self._status_due:
            return
        self._status_due = time.monotonic() + STATUS_SECONDS
        status = dict(self._status())
        self._publish_subjects(status)
        status.pop("subjects", None)
        text = json.dumps(status)
        _, _, nodes, known, *_ = self._connection.pipeline([
            *(("HSET", key, self._settings.node, text) for key in self._status_keys),
            ("HLEN", names.NODES_KEY),
            ("HEXISTS", names.CATALOGUE_KEY, self._registered.hex()),
            *(("HDEL", names.CATALOGUE_KEY, key.hex()) for key in self._expire_tables()),
            *self._facts_commands(),
        ])  # fmt: skip
        # A shard has the slices of several nodes.  They are distributed by a hash: a shard
        # rarely has more than twice the mean.
        self._shard_nodes = 1 + 2 * (int(nodes) // names.SHARDS)
        # Redis lost its data: write the table and the facts again.
        if not known:
            self._registered, self._published_facts = b"", None

    def _facts_commands(self) -> list[Command]:
        """Return the command to publish the facts if they changed, or every ten minutes.

        They are repeated because Redis may lose its data.
        """
        facts, published, now = self._facts, self._published_facts, time.monotonic()
        if facts is None:
            return []
        if published and published[0] is facts and now - published[1] < FACTS_SECONDS:
            return []
        self._published_facts = (facts, now)
        return [("HSET", names.FACTS_KEY, self._settings.node, facts)]

    def _publish_subjects(self, status: Mapping[str, Any]) -> None:
        """Publish the subjects if they changed."""
        subjects = status.get("subjects", [])
        text = json.dumps(subjects, separators=(",", ":"), ensure_ascii=False)
        if text != self._subjects:
            node = self._settings.node
            self._connection.pipeline([("HSET", key, node, text) for key in self._subjects_keys])
            self._subjects = text

    def _withdraw(self) -> None:
        """Remove what this profile says of the node: an earlier version may run here next."""
        node = self._settings.node
        keys = (self._status_keys[0], self._subjects_keys[0])
        with suppress(RedisError, OSError):
            self._connection.pipeline([("HDEL", key, node) for key in keys])

    def _expire_tables(self) -> list[bytes]:
        """Forget and return this node's tables that no message in the stream refers to any more.

        If another node uses the same table, it finds it missing and registers it again.
        """
        now = time.monotonic()
        expired = [key for key, since in self._retired.items() if now - since > self._table_seconds]
        for key in expired:
            del self._retired[key]
        return expired

    def _disconnect(self, error: Exception) -> None:
        """Close the connection after an error; everything is registered again on the next one."""
        message = (
            f"Redis does not accept slices, they are buffered: {error or type(error).__name__}"
        )
        if message != self._error:
            log.warning("%s", message)
        self._error = message
        self._registered, self._published_facts = b"", None
        self._connection.close()

    def _pause(self, seconds: float) -> None:
        """Wait before the next attempt, but not beyond the deadline of ``close``."""
        with self._changed:
            if self._deadline is None:
                # a call of ``close`` ends the wait: then only the deadline limits the attempts
                self._changed.wait_for(lambda: self._deadline is not None, seconds)
                return
        time.sleep(max(0.0, min(seconds, self._deadline - time.monotonic())))
