"""Exchange of ranks through Redis: a hash of each profile, node -> its last window."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

import redis

from reveal_analyzer.gangs.rank import Rank, RankError, decode, encode
from reveal_contract import foreign_json
from reveal_contract.names import fleet_key

log = logging.getLogger(__name__)

_KEPT_SECONDS = 120
_SAVED_SECONDS = 3600


class RankExchange:
    """Ranks and cases that analyzers share; methods raise what redis-py raises."""

    def __init__(self, client: redis.Redis, profile: str) -> None:
        self._client = client
        self._ranks, self._cases = fleet_key(profile, "ranks"), fleet_key(profile, "rank-cases")
        self._logged: set[str] = set()

    def put(self, ranks: Mapping[str, Sequence[Rank]]) -> None:
        """Write the ranks of nodes, each in place of the node's last window."""
        packed: Any = {node: encode(own) for node, own in ranks.items() if own}
        if packed:
            with self._client.pipeline(transaction=False) as pipe:
                pipe.hset(self._ranks, mapping=packed)
                pipe.expire(self._ranks, _KEPT_SECONDS)
                pipe.execute()

    def nodes(self) -> list[str]:
        """Return the nodes that have ranks, sorted."""
        names: Any = self._client.hkeys(self._ranks)
        return sorted(name.decode(errors="replace") for name in names)

    def get(self, nodes: Sequence[str]) -> dict[str, list[Rank]]:
        """Return the last window of each node; log an unusable one once, and skip it."""
        if not nodes:
            return {}
        rows: Any = self._client.hmget(self._ranks, list(nodes))
        found = {}
        for node, data in zip(nodes, rows, strict=True):
            if data is not None and (ranks := self._read(node, data)) is not None:
                # what others say of a node does not count
                found[node] = [rank for rank in ranks if rank.node == node]
        return found

    def _read(self, node: str, data: bytes) -> list[Rank] | None:
        try:
            return decode(data)
        except RankError as error:
            if node not in self._logged:
                log.warning("the ranks of %s cannot be used: %s", node, error)
                self._logged.add(node)
            return None

    def drop(self, nodes: Sequence[str]) -> None:
        """Delete the ranks of nodes that have left."""
        if nodes:
            self._client.hdel(self._ranks, *nodes)

    def save_cases(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Save the cases for the next leader."""
        self._client.set(self._cases, json.dumps(rows), ex=_SAVED_SECONDS)

    def load_cases(self) -> list[Any]:
        """Return the cases that the last leader saved; none if they cannot be read."""
        data: Any = self._client.get(self._cases)
        try:
            rows = foreign_json.loads(data) if data else []
        except ValueError:
            return []
        return rows if isinstance(rows, list) else []
