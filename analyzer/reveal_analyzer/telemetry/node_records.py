"""What the collectors of a profile say of their nodes, in Redis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import redis

from reveal_contract.names import NODES, NODES_KEY, SUBJECTS, SUBJECTS_KEY, node_key

_SHARED = {NODES: NODES_KEY, SUBJECTS: SUBJECTS_KEY}


def node_records(
    client: redis.Redis, profile: str, part: str, nodes: Sequence[str]
) -> list[bytes | None]:
    """Return the record of each node, ``None`` where there is none.

    A node without one in the hash of the profile has a collector of an earlier version: its record
    is in the hash that all profiles share.
    """
    if not nodes:
        return []
    found: list[Any] = list(_fetched(client, node_key(profile, part), nodes))
    others = [index for index, record in enumerate(found) if record is None]
    if others:
        shared = _fetched(client, _SHARED[part], [nodes[index] for index in others])
        for index, record in zip(others, shared, strict=True):
            found[index] = record
    return found


def _fetched(client: redis.Redis, key: str, nodes: Sequence[str]) -> list[Any]:
    replies: Any = client.hmget(key, list(nodes))
    return list(replies)
