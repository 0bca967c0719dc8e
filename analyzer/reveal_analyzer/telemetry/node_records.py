"""What the collectors of a profile say of their nodes, in Redis."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from typing import Any

import redis

from reveal_contract.names import NODES, NODES_KEY, SUBJECTS, SUBJECTS_KEY, node_key
from reveal_contract.subjects import Identity, SubjectsError, from_rows

log = logging.getLogger(__name__)

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


def node_subjects(
    client: redis.Redis, profile: str, nodes: Sequence[str]
) -> dict[str, tuple[Identity, ...]]:
    """Return the subject tables of nodes; an unusable one is logged and empty."""
    records = node_records(client, profile, SUBJECTS, nodes)
    return {node: _identities(node, data) for node, data in zip(nodes, records, strict=True)}


def _identities(node: str, data: bytes | None) -> tuple[Identity, ...]:
    try:
        return from_rows(json.loads(data)) if data else ()
    except (SubjectsError, ValueError, RecursionError) as error:
        log.warning("subjects of node %s are not known: %s", node, error)
        return ()


def _fetched(client: redis.Redis, key: str, nodes: Sequence[str]) -> list[Any]:
    replies: Any = client.hmget(key, list(nodes))
    return list(replies)
