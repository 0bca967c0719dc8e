"""Feed of the facts that collectors write to Redis."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable, Sequence

from reveal_analyzer.stream.redis_connection import OUTAGE
from reveal_analyzer.telemetry.node_records import NodeRecords
from reveal_contract.facts import Facts, FactsError
from reveal_contract.names import FACTS

log = logging.getLogger(__name__)

REFRESH_SECONDS = 30.0  # collectors read facts once a minute
RETRY_SECONDS = 2.0  # while a node has none
BATCH = 64  # nodes per request: about 10 KB each


class FactsFeed:
    """Returns the facts of a node at first, and whenever they have changed."""

    def __init__(self, records: NodeRecords) -> None:
        self._records = records
        self._due: dict[str, float] = {}
        self._known: dict[str, bytes] = {}

    def poll(self, nodes: Iterable[str], now: float) -> list[Facts]:
        """Return the facts of these nodes that are new at ``now`` (monotonic s).

        There are none while Redis is unavailable.  Unusable facts are logged once and skipped.
        """
        due = [node for node in nodes if self._due.get(node, 0.0) <= now][:BATCH]
        if not due:
            return []
        changed = []
        for node, data in zip(due, self._read(due), strict=True):
            self._due[node] = now + (REFRESH_SECONDS if data else RETRY_SECONDS)
            if data and (facts := self._new(node, data)) is not None:
                changed.append(facts)
        return changed

    def drop(self, node: str) -> None:
        self._due.pop(node, None)
        self._known.pop(node, None)

    def _read(self, nodes: Sequence[str]) -> Sequence[bytes | None]:
        try:
            return self._records.get(FACTS, nodes)
        except OUTAGE as error:  # the reader of the slices logs the outage
            log.debug("no facts: %s", error)
            return [None] * len(nodes)

    def _new(self, node: str, data: bytes) -> Facts | None:
        digest = hashlib.blake2b(data, digest_size=8).digest()
        if digest == self._known.get(node):
            return None
        self._known[node] = digest
        try:
            return Facts.from_json(data)
        except FactsError as error:
            log.warning("facts of %s cannot be used: %s", node, error)
            return None
