"""Exchange of ranks through Redis: a hash of each profile, node -> its last window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import redis

from reveal_analyzer.gangs.rank import Rank, decode, encode
from reveal_analyzer.telemetry.node_values import NodeValues, SavedRows
from reveal_contract.names import fleet_key

_KEPT_SECONDS = 120
_SAVED_SECONDS = 3600


class RankExchange:
    """Ranks and cases that analyzers share; methods raise what redis-py raises."""

    def __init__(self, client: redis.Redis, profile: str) -> None:
        ranks = fleet_key(profile, "ranks")
        self.ranks = NodeValues(client, ranks, _KEPT_SECONDS, _own_ranks, "the ranks")
        self.cases = SavedRows(client, fleet_key(profile, "rank-cases"), _SAVED_SECONDS)

    def put(self, ranks: Mapping[str, Sequence[Rank]]) -> None:
        """Write the ranks of nodes, each instead of the node's last window."""
        self.ranks.put({node: encode(own) for node, own in ranks.items() if own})


def _own_ranks(node: str, data: bytes) -> list[Rank]:
    """Return the ranks of a node; what others say of it does not count."""
    return [rank for rank in decode(data) if rank.node == node]
