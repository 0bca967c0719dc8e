"""Whose slices an analyzer takes: of nodes that the cluster has, and of no more than it can keep.

Whoever may write to Redis can send slices in any name, and each name takes megabytes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from reveal_analyzer.formatting import list_some
from reveal_analyzer.telemetry.degraded import Degradation

UNLIMITED = 1 << 30
# docs/explanation/sizing.md
_BASE_BYTES, _NODE_BYTES = 256 << 20, 5 << 20
_LEAST = 16  # nodes, however little memory there is
_MOST_STRANGERS = 1024  # names that are remembered
_NEW_SECONDS = 10.0  # in which a node that just joined the cluster becomes known
_STILL_SECONDS = 300.0  # a refusal is reported for so long
_MOST_NAMED = 3  # names in a message

UNKNOWN_NODES, TOO_MANY_NODES = "UnknownNodes", "TooManyNodes"  # reasons of the condition Degraded
STRANGER = "the cluster has no node of this name"


def membership_unknown(node: str) -> bool | None:
    """Say of no node whether the cluster has it: there is no cluster to ask."""
    return None


def nodes_that_fit(memory_bytes: int) -> int:
    """Return how many nodes an analyzer can keep in so much memory; 0 bytes are unknown."""
    if not memory_bytes:
        return UNLIMITED
    return max(_LEAST, (memory_bytes - _BASE_BYTES) // _NODE_BYTES)


@dataclass
class _Stranger:
    first_s: float
    last_s: float

    def persists(self, now: float) -> bool:
        """Whether it is no node that has just joined the cluster, and still sends slices."""
        return self.last_s - self.first_s >= _NEW_SECONDS and now - self.last_s < _STILL_SECONDS


class NodeAdmission:
    """The nodes that an analyzer takes, ``most`` of them.

    ``is_node`` says whether the cluster has a node; where it cannot tell (None), the node is taken.
    """

    def __init__(
        self, most: int = UNLIMITED, is_node: Callable[[str], bool | None] = membership_unknown
    ) -> None:
        self._most, self._is_node = most, is_node
        self._taken: dict[str, bool] = {}  # whether the cluster is known to have it
        self._strangers: dict[str, _Stranger] = {}
        self._full_s: float | None = None

    def refusal(self, node: str) -> str:
        """Return why the slices of a node are not taken; "" if they are."""
        confirmed = self._taken.get(node)
        if confirmed:
            return ""
        answer = self._is_node(node)
        if answer is False:
            self._taken.pop(node, None)
            self._note_stranger(node)
            return STRANGER
        if confirmed is None and len(self._taken) >= self._most:
            self._full_s = time.monotonic()
            return f"this analyzer has no memory for more than {self._most} nodes"
        self._taken[node] = bool(answer)
        self._strangers.pop(node, None)
        return ""

    def forget(self, nodes: Iterable[str]) -> None:
        """Let others have the places of nodes that are gone."""
        for node in nodes:
            self._taken.pop(node, None)

    def degradations(self) -> list[Degradation]:
        """Return what was refused lately: slices of strangers, and nodes without a place."""
        now = time.monotonic()
        names = [name for name, each in self._strangers.items() if each.persists(now)]
        found = [_unknown_nodes(names)] if names else []
        if self._full_s is not None and now - self._full_s < _STILL_SECONDS:
            found.append(_too_many(self._most))
        return found

    def _note_stranger(self, node: str) -> None:
        now = time.monotonic()
        if (stranger := self._strangers.get(node)) is not None:
            stranger.last_s = now
            return
        if len(self._strangers) >= _MOST_STRANGERS:
            del self._strangers[next(iter(self._strangers))]
        self._strangers[node] = _Stranger(now, now)


def _unknown_nodes(names: list[str]) -> Degradation:
    named = list_some(list(map(repr, names)), most=_MOST_NAMED)
    text = (
        f"slices of {named} are refused, as the cluster has no such node: somebody else"
        " writes to this Redis; change its password"
    )
    return Degradation(UNKNOWN_NODES, len(names), text)


def _too_many(most: int) -> Degradation:
    text = (
        f"an analyzer has memory for {most} nodes, the slices of others are refused: raise"
        " analyzer.replicas or analyzer.resources.limits.memory"
    )
    return Degradation(TOO_MANY_NODES, 1, text)
