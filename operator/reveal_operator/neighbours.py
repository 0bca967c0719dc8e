"""Which profiles watch the same nodes.

Nodes are not watched, as kubelets renew them all the time: they are listed, and only their labels,
when the number of nodes that some DaemonSet wants is another than at the last list.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Callable, Mapping

from reveal_contract.kube.errors import ApiError
from reveal_operator.api import Api
from reveal_operator.conditions import Overlap
from reveal_operator.overlap import Placement, shared

PAUSE_S = 5.0  # between two lists, however much nodes come and go
STALE_S = 900.0  # as many may have come as went: after a resync they are listed anyway

Found = tuple[tuple[Overlap, ...], float | None]

_log = logging.getLogger(__name__)


class Neighbours:
    """Overlaps between profiles; used from one event loop."""

    def __init__(self, api: Api, clock: Callable[[], float] = time.monotonic) -> None:
        self._api, self._clock = api, clock
        self._nodes: dict[str, dict[str, str]] = {}
        self._listed: float | None = None
        self._wanted: Mapping[str, int] = {}
        self._selected: dict[str, tuple[Placement, frozenset[str]]] = {}
        self._one_at_a_time = asyncio.Lock()

    async def overlaps(
        self, name: str, placements: Mapping[str, Placement], wanted: Mapping[str, int]
    ) -> Found:
        """The other profiles on nodes of ``name``; seconds until that should be asked again.

        ``wanted`` is how many nodes each profile's DaemonSet wants.  Raises ``ApiError`` where
        nodes cannot be listed for now; where that is forbidden there is nothing to compare, and
        the log says so.
        """
        if name not in placements or len(placements) < 2:
            return (), None
        async with self._one_at_a_time:
            again = await self._refresh(wanted)
        found = shared(name, {each: self._of(each, placements[each]) for each in placements})
        return tuple(Overlap(other, len(nodes), min(nodes)) for other, nodes in found), again

    def forget(self, name: str) -> None:
        self._selected.pop(name, None)

    def _of(self, name: str, placement: Placement) -> frozenset[str]:
        known = self._selected.get(name)
        if known is None or known[0] is not placement:
            nodes = self._nodes.items()
            found = frozenset(node for node, labels in nodes if placement.matches(node, labels))
            known = self._selected[name] = (placement, found)
        return known[1]

    async def _refresh(self, wanted: Mapping[str, int]) -> float | None:
        """List where there may be news; seconds until that may be done, where it is too soon."""
        now = self._clock()
        age = STALE_S if self._listed is None else now - self._listed
        if age < STALE_S and wanted == self._wanted:
            return None
        if age < PAUSE_S:
            return PAUSE_S - age
        try:
            nodes = await asyncio.to_thread(self._list)
        except ApiError as error:
            if error.transient and self._listed is None:
                raise
            _log.warning("nodes cannot be listed, overlaps may be missed: %s", error)
            nodes = self._nodes
        self._listed, self._wanted = now, dict(wanted)
        if nodes != self._nodes:
            self._nodes = nodes
            self._selected.clear()
        return None

    def _list(self) -> dict[str, dict[str, str]]:
        pages = self._api.pages("Node", metadata=True)
        return {
            item["metadata"]["name"]: _interned(item["metadata"].get("labels") or {})
            for page in pages
            for item in page.items
        }


def _interned(labels: Mapping[str, str]) -> dict[str, str]:
    """Thousands of nodes have the same few words."""
    return {sys.intern(key): sys.intern(value) for key, value in labels.items()}
