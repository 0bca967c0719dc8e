"""How many nodes of a profile have the condition at a time.

Automation drains nodes with the condition.  A cause that concerns a whole rack, a defect, or
somebody who forges samples must not drain a whole pool.
"""

from __future__ import annotations

from collections.abc import Iterable

from reveal_analyzer.sinks.kube.api import Object, SinkApi
from reveal_contract.kube.errors import NotFoundError
from reveal_contract.kube.names import LABEL_NODE, label_value
from reveal_contract.kube.silence import is_silenced

LEAST_NODES = 3  # in any pool, however small
LOOK_AGAIN_NS = 60 * 10**9


def first_nodes(reports: Iterable[Object], most: int, now_ns: int) -> frozenset[str]:
    """Return the labels of so many nodes, those with the oldest urgent reports first."""
    ages = sorted(
        (str(each["metadata"].get("creationTimestamp", "")), each["metadata"]["name"], _node(each))
        for each in reports
        if not is_silenced(each, now_ns)
    )
    nodes = list(dict.fromkeys(node for _, _, node in ages))
    return frozenset(nodes[:most])


def _node(report: Object) -> str:
    return str((report["metadata"].get("labels") or {}).get(LABEL_NODE, ""))


class ConditionLimit:
    """Permits the condition on ``percent`` of the nodes of a profile, and on three in any case.

    All analyzers of a profile permit the same nodes, by the reports that the API has.
    """

    def __init__(self, api: SinkApi, profile: str, percent: int) -> None:
        self._api, self._profile, self._percent = api, profile, percent
        self._limited: dict[str, int] = {}  # nodes over the limit, and when to look again
        self._permitted: frozenset[str] | None = None  # of this round; None until it is needed

    @property
    def limited(self) -> list[str]:
        """The nodes that do not have the condition although they have urgent reports."""
        return list(self._limited)

    def begin_round(self) -> None:
        """Read the reports again when they are needed: once for all nodes that fail at a time."""
        self._permitted = None

    def is_due(self, node: str, now_ns: int) -> bool:
        """Whether to look again at a node that was over the limit."""
        return node in self._limited and now_ns >= self._limited[node]

    def permits(self, node: str, now_ns: int) -> bool:
        """Return whether a node may get the condition; raises ``ApiError``."""
        if self._permitted is None:
            reports = self._api.urgent_metadata(self._profile)
            self._permitted = first_nodes(reports, self._most(), now_ns)
        if label_value(node) in self._permitted:
            self._limited.pop(node, None)
            return True
        self._limited[node] = now_ns + LOOK_AGAIN_NS
        return False

    def release(self, node: str) -> None:
        """Forget a node that has no urgent report any more."""
        self._limited.pop(node, None)

    def _most(self) -> int:
        try:
            status = self._api.profile(self._profile).get("status") or {}
        except NotFoundError:
            return LEAST_NODES
        nodes = status.get("desiredNodes")
        count = nodes if isinstance(nodes, int) else 0
        return max(LEAST_NODES, count * self._percent // 100)
