"""What the collectors of a profile say of their nodes, in Redis."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from typing import Any

import redis

from reveal_contract.cpu_shares import EQUAL_SHARES, CpuShares, SharesError
from reveal_contract.names import CPU_SHARES, EARLIER_NODE_KEYS, SUBJECTS, node_key
from reveal_contract.subjects import Identity, SubjectsError, from_rows

log = logging.getLogger(__name__)


def node_records(
    client: redis.Redis, profile: str, field: str, nodes: Sequence[str]
) -> list[bytes | None]:
    """Return a field of what is known of each node, ``None`` where there is nothing.

    A node without a hash of its own has a collector of an earlier version: it writes to a hash
    that all profiles share.
    """
    if not nodes:
        return []
    with client.pipeline(transaction=False) as pipe:
        for node in nodes:
            pipe.hget(node_key(profile, node), field)
        found: list[Any] = pipe.execute()
    others = [index for index, record in enumerate(found) if record is None]
    if others:
        earlier: Any = client.hmget(EARLIER_NODE_KEYS[field], [nodes[index] for index in others])
        for index, record in zip(others, earlier, strict=True):
            found[index] = record
    return found


def node_subjects(
    client: redis.Redis, profile: str, nodes: Sequence[str]
) -> dict[str, tuple[Identity, ...]]:
    """Return the subject tables of nodes; an unusable one is logged and empty."""
    records = node_records(client, profile, SUBJECTS, nodes)
    return {node: _identities(node, data) for node, data in zip(nodes, records, strict=True)}


def node_shares(client: redis.Redis, profile: str, node: str) -> CpuShares:
    """Return the CPU shares of a node's subjects; equal ones where none can be used."""
    data: Any = client.hget(node_key(profile, node), CPU_SHARES)
    try:
        return CpuShares.from_rows(json.loads(data)) if data else EQUAL_SHARES
    except (SharesError, ValueError, RecursionError) as error:
        log.warning("CPU shares on node %s are not known: %s", node, error)
        return EQUAL_SHARES


def _identities(node: str, data: bytes | None) -> tuple[Identity, ...]:
    try:
        return from_rows(json.loads(data)) if data else ()
    except (SubjectsError, ValueError, RecursionError) as error:
        log.warning("subjects of node %s are not known: %s", node, error)
        return ()
