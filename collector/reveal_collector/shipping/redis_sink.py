"""Ships slices to Redis: one stream message each, kept while Redis is away, always in order."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

from reveal_collector.kernel.scheduling import prefer_real_time
from reveal_collector.shipping.resp import Command, RedisConnection, RedisError
from reveal_collector.shipping.sinks import EncodedSlice, SinkHealth, StatusProvider
from reveal_contract import names
from reveal_contract.runtime.backoff import HALF_JITTER, Backoff
from reveal_contract.settings import CollectorSettings

log = logging.getLogger(__name__)

SOCKET_TIMEOUT = 5.0
REPORT_SECONDS = 5.0
FACTS_SECONDS = 600.0
FIRST_WAIT, LAST_WAIT = 0.2, 5.0
BATCH = 32


class RedisSink:
    """Delivers from its own thread; the newest ``buffer_seconds`` slices wait for Redis.

    A slice leaves the buffer when Redis has acknowledged it.  A reply that got lost makes it
    go twice: the analyzer takes (node, boot, sequence) once.
    """

    nonblocking = True

    def __init__(self, settings: CollectorSettings) -> None:
        self._settings = settings
        self._stream = names.samples_key(settings.profile, names.shard(settings.node))
        self._link = RedisConnection(settings.redis_url, SOCKET_TIMEOUT)
        self._waiting: deque[EncodedSlice] = deque()
        self._changed = threading.Condition()
        self._closing_at: float | None = None
        self._delivered = self._dropped = 0
        self._health_error = ""
        self._announced: bytes = b""
        self._retired: dict[bytes, float] = {}
        self._kept_seconds = 2.0 * settings.stream_seconds + settings.buffer_seconds
        self._report: StatusProvider = dict
        self._report_due = 0.0
        self._subjects = ""
        self._facts: bytes | None = None
        self._facts_told: tuple[bytes, float] | None = None
        self._shard_nodes = 1
        self._thread = threading.Thread(target=self._run, name="reveal-redis", daemon=True)

    def start(self, report: StatusProvider) -> None:
        self._report = report
        self._thread.start()

    def put(self, shipment: EncodedSlice) -> None:
        with self._changed:
            if len(self._waiting) >= self._settings.buffer_seconds:
                self._waiting.popleft()
                self._dropped += 1
            self._waiting.append(shipment)
            if shipment.facts is not None and shipment.facts is not self._facts:
                self._facts, self._report_due = shipment.facts, 0.0
            self._changed.notify()

    def health(self) -> SinkHealth:
        return SinkHealth(self._delivered, len(self._waiting), self._dropped, self._health_error)

    def close(self, timeout: float) -> None:
        with self._changed:
            self._closing_at = time.monotonic() + timeout
            self._changed.notify()
        if self._thread.is_alive():
            self._thread.join(timeout)
        if self._waiting:
            log.warning("%d slices could not be delivered before the end", len(self._waiting))

    def _run(self) -> None:
        prefer_real_time()
        retry = Backoff(FIRST_WAIT, LAST_WAIT, HALF_JITTER)
        while self._await_work():
            try:
                self._deliver()
                self._tell()
            except (RedisError, OSError) as error:
                self._lost(error)
                # jitter: the collectors of a whole cluster lose the same Redis together
                self._pause(retry.next())
                continue
            if self._health_error:
                log.info("Redis takes slices again")
                self._health_error = ""
                retry.reset()
        self._link.close()

    def _await_work(self) -> bool:
        """Until there is something to deliver or report; false when all is done."""
        with self._changed:
            while not self._waiting:
                if self._closing_at is not None:
                    return False
                left = self._report_due - time.monotonic()
                if left <= 0:
                    return True
                self._changed.wait(left)
            return self._closing_at is None or time.monotonic() < self._closing_at

    def _deliver(self) -> None:
        while batch := self._batch():
            for shipment in batch:
                self._announce(shipment)
            self._add(batch)
            with self._changed:
                for shipment in batch:  # the oldest may have been dropped meanwhile
                    if self._waiting and self._waiting[0] is shipment:
                        self._waiting.popleft()
            self._delivered += len(batch)

    def _batch(self) -> list[EncodedSlice]:
        with self._changed:
            return [self._waiting[at] for at in range(min(BATCH, len(self._waiting)))]

    def _add(self, batch: list[EncodedSlice]) -> None:
        """All of them or none (MULTI), so that a refused one is not overtaken by the next."""
        commands = [self._xadd(shipment) for shipment in batch]
        if len(commands) == 1:
            self._link.call(commands[0])
        else:
            self._link.transaction(commands)

    def _xadd(self, shipment: EncodedSlice) -> Command:
        length = self._settings.stream_seconds * self._shard_nodes
        return (
            "XADD", self._stream, "MAXLEN", "~", length, "*",
            names.FIELD_NODE, shipment.node,
            names.FIELD_BOOT, shipment.boot,
            names.FIELD_SEQUENCE, shipment.sequence,
            names.FIELD_TABLE, shipment.table.key.hex(),
            names.FIELD_TIME, shipment.start_ns,
            names.FIELD_DATA, shipment.data,
        )  # fmt: skip

    def _announce(self, shipment: EncodedSlice) -> None:
        """Before the first message that needs it, the table: on each connection anew."""
        key = shipment.table.key
        if key != self._announced:
            if not self._announced:  # Redis is another one, or forgot
                self._subjects = ""
            self._tell_subjects(self._report())
            self._link.call(("HSET", names.CATALOGUE_KEY, key.hex(), shipment.table.to_json()))
            if self._announced:
                self._retired[self._announced] = time.monotonic()
            self._retired.pop(key, None)
            self._announced = key

    def _tell(self) -> None:
        """Say how this node is, every few seconds; see whether Redis forgot the table."""
        if time.monotonic() < self._report_due:
            return
        self._report_due = time.monotonic() + REPORT_SECONDS
        report = dict(self._report())
        self._tell_subjects(report)
        report.pop("subjects", None)
        _, nodes, known, *_ = self._link.pipeline([
            ("HSET", names.NODES_KEY, self._settings.node, json.dumps(report)),
            ("HLEN", names.NODES_KEY),
            ("HEXISTS", names.CATALOGUE_KEY, self._announced.hex()),
            *(("HDEL", names.CATALOGUE_KEY, key.hex()) for key in self._outlived()),
            *self._news_of_facts(),
        ])  # fmt: skip
        # a shard holds the slices of several nodes: hashed evenly, rarely over twice the mean
        self._shard_nodes = 1 + 2 * (int(nodes) // names.SHARDS)
        if not known:
            self._announced, self._facts_told = b"", None

    def _news_of_facts(self) -> list[Command]:
        """The facts where they changed, and now and then all the same: a Redis may forget."""
        facts, told, now = self._facts, self._facts_told, time.monotonic()
        if facts is None or (told and told[0] is facts and now - told[1] < FACTS_SECONDS):
            return []
        self._facts_told = (facts, now)
        return [("HSET", names.FACTS_KEY, self._settings.node, facts)]

    def _tell_subjects(self, report: Mapping[str, Any]) -> None:
        """Who the subjects are, when they are others than said last."""
        subjects = report.get("subjects", [])
        text = json.dumps(subjects, separators=(",", ":"), ensure_ascii=False)
        if text != self._subjects:
            self._link.call(("HSET", names.SUBJECTS_KEY, self._settings.node, text))
            self._subjects = text

    def _outlived(self) -> list[bytes]:
        """Own tables that no message of the stream can need any more, taken off the list.

        Should another node have the same one, it finds it gone and announces it anew.
        """
        now = time.monotonic()
        kept = self._kept_seconds
        gone = [key for key, since in self._retired.items() if now - since > kept]
        for key in gone:
            del self._retired[key]
        return gone

    def _lost(self, error: Exception) -> None:
        health_error = f"Redis does not take slices, they are kept: {error or type(error).__name__}"
        if health_error != self._health_error:
            log.warning("%s", health_error)
        self._health_error = health_error
        self._announced, self._facts_told = b"", None
        self._link.close()

    def _pause(self, seconds: float) -> None:
        """Wait, but not beyond the end of the time that closing has."""
        with self._changed:
            if self._closing_at is None:
                self._changed.wait_for(lambda: self._closing_at is not None, seconds)
                return
        time.sleep(max(0.0, min(seconds, self._closing_at - time.monotonic())))
