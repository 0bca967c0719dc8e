"""What an analyzer knows and watches at one moment, for those who tell of it elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from reveal_contract.names import shard


@dataclass(frozen=True, slots=True)
class Watched:
    """One node: when its last slice came and since when it is followed, on the monotonic clock."""

    seen_s: float
    since_s: float
    learning: bool = False


@dataclass(frozen=True, slots=True)
class Situation:
    """A snapshot.  ``cases`` are the ids of what is open across nodes, known where this leads."""

    at_s: float
    connected: bool = False
    leads: bool = False
    shards: frozenset[int] = frozenset()
    nodes: Mapping[str, Watched] = field(default_factory=dict)
    cases: frozenset[str] = frozenset()

    def follows(self, node: str) -> bool:
        """Whether the node is this analyzer's to speak of, whether or not it sends anything."""
        return shard(node) in self.shards
