"""What running collectors say of themselves in the Redis of a release on real nodes."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import redis

from reveal_analyzer.stream.channel_tables import ChannelTables
from reveal_contract import catalogue, names
from support.cluster_release import PROFILE, Release
from support.helm_chart import NAMESPACE

_SECRET = "reveal-evaluation-redis"
COLLECTOR_SECRET = "reveal-redis-collector"
_POD = "app.kubernetes.io/component=evaluation-redis"


@dataclass(frozen=True)
class PublishedSources:
    """Of one node: its metrics by source, and the sources it is missing, with the reason."""

    metrics: Mapping[str, frozenset[str]]
    missing: Mapping[str, str]
    degraded: tuple[str, ...]

    @property
    def sources(self) -> frozenset[str]:
        return frozenset(self.metrics)


def evaluation_redis(watched: Release, secret: str = _SECRET) -> redis.Redis:
    """The chart's, by the address of its pod: the machine has routes to all pods."""
    [pod] = watched.kube.items("v1", "Pod", NAMESPACE, _POD)
    return redis.Redis(pod["status"]["podIP"], **login(watched, secret))


def login(watched: Release, secret: str) -> dict[str, Any]:
    """User and password of a Secret, as redis-py takes them."""
    found = watched.kube.get("v1", "Secret", secret, NAMESPACE)
    assert found is not None
    data = {key: b64decode(found["data"][key]).decode() for key in ("username", "password")}
    return {"username": data["username"], "password": data["password"]}


def published_by(client: redis.Redis, node: str, since_ns: int = 0) -> PublishedSources | None:
    """What the node's collector said last; None until it has said anything since then."""
    raw: Any = client.hget(names.node_key(PROFILE, node), names.STATUS)
    if raw is None:
        return None
    report = json.loads(raw)
    key, tables = bytes.fromhex(report["table"]), ChannelTables(PROFILE)
    tables.fetch(client, {key: [node]})  # a table may be announced as changes of another one
    known = tables.get(key)
    if known is None or report["time"] < since_ns:
        return None
    metrics: dict[str, set[str]] = {}
    for channel in known.table.fast + known.table.slow:
        source = catalogue.find(channel.metric).source
        metrics.setdefault(source, set()).add(channel.metric)
    return PublishedSources(
        {source: frozenset(found) for source, found in metrics.items()},
        {row["source"]: row["reason"] for row in report["missing"]},
        tuple(report["degraded"]),
    )
