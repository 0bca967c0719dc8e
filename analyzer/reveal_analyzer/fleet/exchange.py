"""Exchange of summaries through Redis: one hash per profile, which expires unless written to."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import redis

from reveal_analyzer.fleet.summary import Summary, SummaryError, decode, encode
from reveal_analyzer.telemetry.node_records import node_subjects
from reveal_contract.names import fleet_key
from reveal_contract.subjects import Identity

log = logging.getLogger(__name__)

KEPT_SECONDS = 600
_SAVED_SECONDS = 86_400  # cases and groups


class Exchange:
    """Summaries, subject tables, cases and groups that analyzers share.

    Methods raise what redis-py raises when Redis is unavailable.
    """

    def __init__(self, client: redis.Redis, profile: str) -> None:
        self._client, self._profile = client, profile
        self._summaries = fleet_key(profile)
        self._cases = fleet_key(profile, "cases")
        self._groups = fleet_key(profile, "groups")
        self._logged: set[str] = set()

    def put(self, summaries: Iterable[Summary]) -> None:
        """Write summaries, each in place of the node's last one."""
        packed = {summary.node: encode(summary) for summary in summaries}
        if packed:
            with self._client.pipeline(transaction=False) as pipe:
                pipe.hset(self._summaries, mapping=packed)  # type: ignore[arg-type]
                pipe.expire(self._summaries, KEPT_SECONDS)
                pipe.execute()

    def nodes(self) -> list[str]:
        """Return the nodes that have summaries, sorted."""
        names: Any = self._client.hkeys(self._summaries)
        return sorted(name.decode(errors="replace") for name in names)

    def get(self, nodes: Sequence[str]) -> dict[str, Summary]:
        """Return the last summary of each node; log an unusable one once, and skip it."""
        if not nodes:
            return {}
        replies: Any = self._client.hmget(self._summaries, list(nodes))
        found = {}
        for node, data in zip(nodes, replies, strict=True):
            if data is not None and (summary := self._read(node, data)) is not None:
                found[node] = summary
        return found

    def drop(self, nodes: Sequence[str]) -> None:
        """Delete the summaries of nodes that have left."""
        if nodes:
            self._client.hdel(self._summaries, *nodes)

    def subjects(self, nodes: Sequence[str]) -> dict[str, tuple[Identity, ...]]:
        """Return the subject tables of nodes; an unusable one is empty."""
        return node_subjects(self._client, self._profile, nodes)

    def save_cases(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Save the cases for the next leader."""
        self._save(self._cases, rows)

    def load_cases(self) -> list[Any]:
        """Return the cases that the last leader saved; none if they cannot be read."""
        return self._load(self._cases)

    def save_groups(self, rows: Sequence[Any]) -> None:
        """Save the groups of nodes for the next leader."""
        self._save(self._groups, rows)

    def load_groups(self) -> list[Any]:
        """Return the groups that the last leader saved; none if they cannot be read."""
        return self._load(self._groups)

    def _save(self, key: str, rows: Sequence[Any]) -> None:
        self._client.set(key, json.dumps(rows), ex=_SAVED_SECONDS)

    def _load(self, key: str) -> list[Any]:
        data: Any = self._client.get(key)
        try:
            rows = json.loads(data) if data else []
        except (ValueError, RecursionError):
            rows = []
        return rows if isinstance(rows, list) else []

    def _read(self, node: str, data: bytes) -> Summary | None:
        try:
            summary = decode(data)
            if summary is not None and summary.node != node:
                raise SummaryError(f"it is that of {summary.node}")
        except SummaryError as error:
            if node not in self._logged:
                log.warning("summary of %s cannot be used: %s", node, error)
                self._logged.add(node)
            return None
        return summary
