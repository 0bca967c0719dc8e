"""Ships slices to Redis: one stream message each, in order, buffered while Redis is unavailable."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from typing import Any

from reveal_collector.kernel_interfaces.scheduling import prefer_real_time
from reveal_collector.shipping.node_record import NodeRecord
from reveal_collector.shipping.origin_proof import OriginProof
from reveal_collector.shipping.redis_cluster import connection_to
from reveal_collector.shipping.resp import Command, RedisError
from reveal_collector.shipping.sinks import EncodedSlice, SinkHealth, StatusProvider
from reveal_contract import names
from reveal_contract.runtime.backoff import HALF_JITTER, Backoff
from reveal_contract.settings import CollectorSettings

log = logging.getLogger(__name__)

SOCKET_TIMEOUT = 5.0
STATUS_SECONDS = 5.0
EXPIRY_SECONDS = 60.0  # between two renewals of the stream's time limit
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
        self._connection = connection_to(settings.redis_url, SOCKET_TIMEOUT)
        self._proof = OriginProof(settings.origin_token_file)
        self._record = NodeRecord(self._connection, settings, self._proof)
        self._buffer: deque[EncodedSlice] = deque()
        self._changed = threading.Condition()
        self._deadline: float | None = None  # of ``close``, on the monotonic clock
        self._delivered = self._dropped = 0
        self._error = ""
        self._status: StatusProvider = dict
        self._status_due = 0.0
        self._facts: bytes | None = None
        self._written_ms = 0  # of the last slice, on the clock of Redis; 0 is unknown
        self._expiry_due = 0.0
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
                self._proof.refresh()
                self._record.announce_token()
                self._deliver()
                self._publish_status()
            except (RedisError, OSError) as error:
                self._disconnect(f"Redis does not accept slices, they are buffered: {_text(error)}")
                self._pause(backoff.next())
                continue
            except Exception as error:  # it must not end the thread: the next attempt may succeed
                if not self._error:
                    log.exception("a defect holds up the delivery of slices")
                self._disconnect(f"slices are not delivered, by a defect: {_text(error)}")
                self._pause(backoff.next())
                continue
            if self._error:
                log.info("Redis accepts slices again")
                self._error = ""
                backoff.reset()
        if self._record.announced:  # connected, and not after an error
            self._record.withdraw()
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
                self._record.announce(encoded.table, self._status)
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
        commands, now = [self._xadd(encoded) for encoded in batch], time.monotonic()
        if now >= self._expiry_due:
            commands.append(("EXPIRE", self._stream, names.KEPT_SECONDS))
            self._expiry_due = now + EXPIRY_SECONDS
        answers = self._answers(commands)
        self._written_ms = int(answers[len(batch) - 1].partition(b"-")[0])

    def _answers(self, commands: list[Command]) -> list[Any]:
        if len(commands) == 1:
            return [self._connection.call(commands[0])]
        return self._connection.transaction(commands)

    def _xadd(self, encoded: EncodedSlice) -> Command:
        """Return the command that adds a slice and drops those that are too old.

        Their age counts on the clock of Redis, as those of nodes may be wrong.
        """
        oldest_ms = self._written_ms - self._settings.stream_seconds * 1000
        trim = ("MINID", "~", oldest_ms) if self._written_ms else ()
        return (
            "XADD", self._stream, *trim, "*",
            names.FIELD_NODE, encoded.node,
            names.FIELD_BOOT, encoded.boot,
            names.FIELD_SEQUENCE, encoded.sequence,
            names.FIELD_TABLE, encoded.table.key.hex(),
            names.FIELD_TIME, encoded.start_ns,
            names.FIELD_DATA, encoded.data,
            *self._proof.of_slice(encoded.data),
        )  # fmt: skip

    def _publish_status(self) -> None:
        """Publish the status every few seconds."""
        if time.monotonic() >= self._status_due:
            self._status_due = time.monotonic() + STATUS_SECONDS
            self._record.publish(self._status(), self._facts)

    def _disconnect(self, message: str) -> None:
        """Close the connection after an error; everything is written again on the next one."""
        if message != self._error:
            log.warning("%s", message)
        self._error = message
        self._record.reset()
        self._written_ms, self._expiry_due = 0, 0.0
        self._connection.close()

    def _pause(self, seconds: float) -> None:
        """Wait before the next attempt, but not beyond the deadline of ``close``."""
        with self._changed:
            if self._deadline is None:
                # a call of ``close`` ends the wait: then only the deadline limits the attempts
                self._changed.wait_for(lambda: self._deadline is not None, seconds)
                return
        time.sleep(max(0.0, min(seconds, self._deadline - time.monotonic())))


def _text(error: Exception) -> str:
    return str(error) or type(error).__name__
