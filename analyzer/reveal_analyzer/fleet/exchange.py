"""Exchange of summaries through Redis: one hash per profile, which expires unless written to."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import redis

from reveal_analyzer.fleet.summary import Summary, SummaryError, decode, encode
from reveal_analyzer.telemetry.node_records import NodeRecords
from reveal_analyzer.telemetry.node_values import NodeValues, SavedRows
from reveal_contract.names import fleet_key
from reveal_contract.subjects import Identity

KEPT_SECONDS = 600
_SAVED_SECONDS = 86_400  # cases and groups


class Exchange:
    """Summaries, subject tables, cases and groups that analyzers share.

    ``records`` are of the nodes of this analyzer.  Methods raise what redis-py raises when Redis is
    unavailable.
    """

    def __init__(
        self, client: redis.Redis, profile: str, records: NodeRecords | None = None
    ) -> None:
        self._records = records or NodeRecords(client, profile)
        self.summaries = NodeValues(client, fleet_key(profile), KEPT_SECONDS, _summary, "summary")
        self.cases = SavedRows(client, fleet_key(profile, "cases"), _SAVED_SECONDS)
        self.groups = SavedRows(client, fleet_key(profile, "groups"), _SAVED_SECONDS)

    def put(self, summaries: Iterable[Summary]) -> None:
        """Write summaries, each instead of the node's last one."""
        self.summaries.put({summary.node: encode(summary) for summary in summaries})

    def subjects(self, nodes: Sequence[str]) -> dict[str, tuple[Identity, ...]]:
        """Return the subject tables of nodes; an unusable one is empty."""
        return self._records.subjects(nodes)


def _summary(node: str, data: bytes) -> Summary | None:
    summary = decode(data)
    if summary is not None and summary.node != node:
        raise SummaryError(f"it is that of {summary.node}")
    return summary
