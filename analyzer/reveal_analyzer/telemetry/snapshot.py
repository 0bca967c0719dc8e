"""What an analyzer watches at one moment, for the parts that report it elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from reveal_analyzer.telemetry.degraded import Degradation
from reveal_contract.names import shard

SILENT_SECONDS = 900.0  # of a node without slices, after which its findings are not observed


@dataclass(frozen=True, slots=True)
class NodeSnapshot:
    """One node; times are seconds of the monotonic clock.

    ``since_s`` is when its analysis began here, or was reset.
    """

    last_slice_s: float
    since_s: float
    learning: bool = False


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One analyzer at ``time_s`` of the monotonic clock.

    ``cross_node_findings`` are the ids of open findings across nodes; only the leader knows them.
    ``degraded`` is what the analyzer itself cannot do.
    """

    time_s: float
    connected: bool = False
    leads: bool = False
    shards: frozenset[int] = frozenset()
    nodes: Mapping[str, NodeSnapshot] = field(default_factory=dict)
    cross_node_findings: frozenset[str] = frozenset()
    degraded: tuple[Degradation, ...] = ()

    def owns(self, node: str) -> bool:
        """Whether this analyzer is responsible for the node, even if it sends nothing."""
        return shard(node) in self.shards
