"""What an analyzer takes: slices and announcements of which nodes, and of what origin."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import redis

from reveal_analyzer.stream.consumer import StreamEntry
from reveal_analyzer.stream.node_admission import NodeAdmission
from reveal_analyzer.stream.origin import OriginCheck
from reveal_analyzer.telemetry.degraded import Degradation


class SliceAdmission:
    """Admission by the name of the node, then by the proof of origin if there is a check of it."""

    def __init__(
        self, nodes: NodeAdmission | None = None, origin: OriginCheck | None = None
    ) -> None:
        self._nodes, self._origin = nodes or NodeAdmission(), origin

    def refusal(self, entry: StreamEntry, node: str) -> str | None:
        """Return why a slice is not taken, "" if it is; None for one that waits here."""
        if (reason := self._nodes.refusal(node)) or self._origin is None:
            return reason
        return self._origin.refusal(entry, node)

    def is_proven(self, node: str, data: bytes, proof: bytes) -> bool:
        """Return whether what a node announced may be used."""
        return self._origin is None or self._origin.is_proven(node, data, proof)

    def is_credible(self, node: str, data: bytes, proof: bytes) -> bool:
        """Return the same of what is only kept or shown.

        A node of which another analyzer reads slices needs no proof: its keys are not known here.
        """
        origin = self._origin
        return origin is None or not origin.has_keys_of(node) or self.is_proven(node, data, proof)

    def decided(self, client: redis.Redis) -> list[StreamEntry]:
        """Return the slices that wait no longer; raises what redis-py raises."""
        return self._origin.decided(client) if self._origin is not None else []

    def forget(self, nodes: Collection[str]) -> None:
        """Let others have the places of nodes that are gone."""
        self._nodes.forget(nodes)
        if self._origin is not None:
            self._origin.forget(nodes)

    def forget_shards(self, shards: Collection[int]) -> None:
        """Drop what waits here of shards that another analyzer reads."""
        if self._origin is not None:
            self._origin.forget_shards(shards)

    def degradations(self) -> Iterable[Degradation]:
        """Return what was refused lately."""
        return [
            *self._nodes.degradations(),
            *(self._origin.degradations() if self._origin is not None else ()),
        ]
