"""Facts of nodes as their collectors told Redis."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterable
from typing import Any

import redis

from reveal_analyzer.stream.connection import OUTAGE
from reveal_contract.facts import Facts, FactsError
from reveal_contract.names import FACTS_KEY

log = logging.getLogger(__name__)

AGAIN_SECONDS = 30.0  # collectors look once a minute
SOON_SECONDS = 2.0  # where none were there yet
BATCH = 64  # nodes a question: some 10 KB each


class FactsFeed:
    """Gives the facts of a node when they are others than before, and at first."""

    def __init__(self, client: redis.Redis) -> None:
        self._client = client
        self._due: dict[str, float] = {}
        self._known: dict[str, bytes] = {}

    def poll(self, nodes: Iterable[str], now: float) -> list[Facts]:
        """News of these nodes at ``now`` (monotonic s); none while Redis is away.

        Facts that cannot be used are said once and passed over.
        """
        due = [node for node in nodes if self._due.get(node, 0.0) <= now][:BATCH]
        if not due:
            return []
        try:
            told: Any = self._client.hmget(FACTS_KEY, due)
        except OUTAGE as error:  # whoever reads the slices says so
            log.debug("no facts: %s", error)
            told = [None] * len(due)
        news = []
        for node, data in zip(due, told, strict=True):
            self._due[node] = now + (AGAIN_SECONDS if data else SOON_SECONDS)
            if data and (facts := self._new(node, data)) is not None:
                news.append(facts)
        return news

    def forget(self, node: str) -> None:
        self._due.pop(node, None)
        self._known.pop(node, None)

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
