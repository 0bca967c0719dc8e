"""The saved states of a profile's nodes in Redis.

Each shard has one hash, from node to state: whoever takes the shard over learns from it which nodes
there are, also silent ones.  A node that left is deleted by the owner of its shard.  The hash
expires when nobody writes to it any more, as after the deletion of a profile.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Mapping

import redis

from reveal_analyzer.state.codec import MAX_BYTES, Position, SavedState, decode, position
from reveal_analyzer.state.tree import StateError
from reveal_analyzer.telemetry.limited_values import get_all_fields, get_fields
from reveal_contract.names import node_states_key, shard

MAX_AGE_S = 24 * 3600  # an older state says little of a node: its jobs have changed
EXPIRY_S = 2 * MAX_AGE_S  # longer, so that a state which is too old is reported as such


class TooOldError(StateError):
    """The state is older than ``MAX_AGE_S``."""


class NodeStateStore:
    """What analyzers save and restore.

    Methods raise what redis-py raises when Redis is unavailable or full.
    """

    def __init__(
        self, client: redis.Redis, profile: str, clock: Callable[[], float] = time.time
    ) -> None:
        self._client, self._profile, self._clock = client, profile, clock

    def save(self, states: Mapping[str, bytes]) -> None:
        """Write the encoded states of nodes, each in place of its last one."""
        by_shard: dict[str, dict[str, bytes]] = {}
        for node, data in states.items():
            by_shard.setdefault(self._key(node), {})[node] = data
        with self._client.pipeline(transaction=False) as pipe:
            for key, fields in by_shard.items():
                pipe.hset(key, mapping=fields)  # type: ignore[arg-type]
                pipe.expire(key, EXPIRY_S)
            pipe.execute()

    def of_shard(self, number: int) -> dict[str, bytes]:
        """Return the encoded states of all nodes of a shard."""
        rows = get_all_fields(self._client, node_states_key(self._profile, number), MAX_BYTES)
        return {
            node.decode(errors="replace"): data
            for node, data in rows.items()
            if isinstance(data, bytes)
        }

    def of_node(self, node: str) -> bytes | None:
        """Return the encoded state of one node, if there is one."""
        [data] = get_fields(self._client, self._key(node), [node], MAX_BYTES)
        return data if isinstance(data, bytes) else None

    def delete(self, nodes: Iterable[str]) -> None:
        """Delete the states of nodes that have left."""
        with self._client.pipeline(transaction=False) as pipe:
            for node in nodes:
                pipe.hdel(self._key(node), node)
            pipe.execute()

    def now_s(self) -> int:
        """Return the time to save with, in seconds since the epoch."""
        return int(self._clock())

    def usable(self, node: str, data: bytes) -> SavedState:
        """Return the state in these bytes.

        Raises ``StateError`` if they are not a state of this node, ``TooOldError`` if it is old.
        """
        state = decode(data)
        if state.position.node != node:
            raise StateError(f"it is the state of {state.position.node}")
        age_s = self.now_s() - state.saved_s
        if age_s > MAX_AGE_S:
            raise TooOldError(f"it was saved {age_s / 3600:.0f} hours ago")
        return state

    def _key(self, node: str) -> str:
        return node_states_key(self._profile, shard(node))


def positions_of(states: Mapping[str, bytes]) -> dict[str, Position]:
    """Return the last slice that each state covers; those that cannot be read are left out."""
    found = {}
    for node, data in states.items():
        with contextlib.suppress(StateError):
            found[node] = position(data)
    return found
