"""Which profiles watch the same nodes.

Nodes are listed when a visit asks and the last list is a minute old, and not watched: kubelets
renew their nodes all the time, and a node that comes changes the DaemonSets that want it, which is
seen anyway.  Only their labels are asked for and kept.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Callable, Mapping

from reveal_operator.api import Api, ApiError
from reveal_operator.conditions import Overlap
from reveal_operator.overlap import Placement, shared

FRESH_S = 60.0

_log = logging.getLogger(__name__)


class Neighbours:
    """Overlaps between profiles; used from one event loop."""

    def __init__(self, api: Api, clock: Callable[[], float] = time.monotonic) -> None:
        self._api, self._clock = api, clock
        self._nodes: dict[str, dict[str, str]] = {}
        self._listed: float | None = None
        self._selected: dict[str, tuple[Placement, frozenset[str]]] = {}
        self._one_at_a_time = asyncio.Lock()

    async def overlaps(self, name: str, placements: Mapping[str, Placement]) -> tuple[Overlap, ...]:
        """The other profiles on nodes of ``name``.

        Raises ``ApiError`` where nodes cannot be listed for now; where that is forbidden there is
        nothing to compare, and the log says so.
        """
        if name not in placements or len(placements) < 2:
            return ()
        async with self._one_at_a_time:
            await self._refresh()
        found = shared(name, {each: self._of(each, placements[each]) for each in placements})
        return tuple(Overlap(other, len(nodes), min(nodes)) for other, nodes in found)

    def forget(self, name: str) -> None:
        self._selected.pop(name, None)

    def _of(self, name: str, placement: Placement) -> frozenset[str]:
        known = self._selected.get(name)
        if known is None or known[0] is not placement:
            nodes = self._nodes.items()
            found = frozenset(node for node, labels in nodes if placement.matches(node, labels))
            known = self._selected[name] = (placement, found)
        return known[1]

    async def _refresh(self) -> None:
        now = self._clock()
        if self._listed is not None and now - self._listed < FRESH_S:
            return
        try:
            nodes = await asyncio.to_thread(self._list)
        except ApiError as error:
            if error.passing and self._listed is None:
                raise
            _log.warning("nodes cannot be listed, overlaps may be missed: %s", error.message)
            nodes = self._nodes
        self._listed = now
        if nodes != self._nodes:
            self._nodes = nodes
            self._selected.clear()

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
