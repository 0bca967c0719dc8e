"""Which profiles select the same nodes.

Nodes are not watched, as kubelets update them all the time.  Their metadata is listed when the
number of nodes that a DaemonSet selects has changed since the last list.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Callable, Mapping

from reveal_contract.kube.errors import ApiError
from reveal_operator.api import OperatorApi
from reveal_operator.conditions import ProfileOverlap
from reveal_operator.placement import Placement

PAUSE_S = 5.0  # minimum time between two lists
STALE_S = 900.0  # list after this time anyway: as many nodes may have joined as left

Found = tuple[tuple[ProfileOverlap, ...], float | None]

_log = logging.getLogger(__name__)


class SharedNodes:
    """Overlaps between profiles; used from one event loop."""

    def __init__(self, api: OperatorApi, clock: Callable[[], float] = time.monotonic) -> None:
        self._api, self._clock = api, clock
        self._nodes: dict[str, dict[str, str]] = {}
        self._listed: float | None = None
        self._desired: Mapping[str, int] = {}
        self._selected: dict[str, tuple[Placement, frozenset[str]]] = {}
        self._lock = asyncio.Lock()  # one list at a time

    async def overlaps(
        self, name: str, placements: Mapping[str, Placement], desired: Mapping[str, int]
    ) -> Found:
        """Return the other profiles on nodes of ``name``, and when to ask again, in seconds.

        ``desired`` is how many nodes each profile's DaemonSet selects.  Raises ``ApiError`` where
        the first list fails for now.  Without the right to list nodes there is no overlap, and the
        log has a warning.
        """
        if name not in placements or len(placements) < 2:
            return (), None
        async with self._lock:
            again = await self._refresh(desired)
        found = shared(name, {each: self._of(each, placements[each]) for each in placements})
        return tuple(ProfileOverlap(other, len(nodes), min(nodes)) for other, nodes in found), again

    def forget(self, name: str) -> None:
        """Forget a profile that is gone."""
        self._selected.pop(name, None)

    def _of(self, name: str, placement: Placement) -> frozenset[str]:
        known = self._selected.get(name)
        if known is None or known[0] is not placement:
            nodes = self._nodes.items()
            found = frozenset(node for node, labels in nodes if placement.matches(node, labels))
            known = self._selected[name] = (placement, found)
        return known[1]

    async def _refresh(self, desired: Mapping[str, int]) -> float | None:
        """List nodes if that is due; return seconds until it may be done, if it is too soon."""
        now = self._clock()
        age = STALE_S if self._listed is None else now - self._listed
        if age < STALE_S and desired == self._desired:
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
        self._listed, self._desired = now, dict(desired)
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


def shared(
    name: str, selected: Mapping[str, frozenset[str]]
) -> tuple[tuple[str, frozenset[str]], ...]:
    """Return the other profiles that select nodes of ``name``, with these nodes, by name."""
    mine = selected.get(name, frozenset())
    return tuple(
        (other, nodes & mine)
        for other, nodes in sorted(selected.items())
        if other != name and nodes & mine
    )


def _interned(labels: Mapping[str, str]) -> dict[str, str]:
    """Return the labels with shared strings: thousands of nodes have the same few."""
    return {sys.intern(key): sys.intern(value) for key, value in labels.items()}
