"""The names of the nodes that send no samples; pods are listed only while there are such nodes.

The analyzer names the nodes that stopped sending (``telemetry.silentNodes``), also those that left
the cluster.  It does not know a node that it has never heard: the collector of that node is not
ready, because a collector becomes ready with its first delivery.  So the pods of the collectors
show such nodes, and which of the named ones belong to the profile.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

from reveal_contract.kube.errors import ApiError
from reveal_contract.kube.names import COLLECTOR, LABEL_COMPONENT, LABEL_PROFILE, label_value
from reveal_operator.api import OperatorApi
from reveal_operator.conditions import SilentNodes
from reveal_operator.pod_failures import is_ready, node_of

# Seconds between two lists: a profile may have thousands of pods.
INTERVAL_S = 60.0  # where the number of silent nodes changed
LONG_INTERVAL_S = 600.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Collectors:
    """Whether the collector of each node was ready, when so many nodes were silent."""

    ready: dict[str, bool]
    silent: int
    listed_s: float


class SilentNodeFinder:
    """Remembers the collectors of profiles with silent nodes; used from one event loop."""

    def __init__(
        self, api: OperatorApi, namespace: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._api, self._namespace, self._clock = api, namespace, clock
        self._known: dict[str, _Collectors] = {}

    async def find(self, profile: str, silent: int, stopped: Collection[str]) -> SilentNodes:
        """Return the names of ``silent`` nodes as far as they are known.

        ``stopped`` are those that the analyzer names.
        """
        if not silent:
            self.forget(profile)
            return SilentNodes()
        ready = (await self._collectors(profile, silent)).ready
        names = sorted(set(stopped) & ready.keys())
        unready = sorted(name for name, is_up in ready.items() if not is_up and name not in names)
        names += unready[: max(0, silent - len(names))]
        return SilentNodes(
            tuple(sorted(names)), tuple(sorted(name for name in names if ready[name]))
        )

    def forget(self, profile: str) -> None:
        """Forget a profile without silent nodes, or one that is gone."""
        self._known.pop(profile, None)

    async def _collectors(self, profile: str, silent: int) -> _Collectors:
        known, now = self._known.get(profile), self._clock()
        interval = INTERVAL_S if known and known.silent != silent else LONG_INTERVAL_S
        if known is not None and now - known.listed_s < interval:
            return known
        try:
            ready = await asyncio.to_thread(self._list, profile)
        except ApiError as error:
            _log.warning("pods of silent nodes cannot be listed: %s", error)
            ready = known.ready if known else {}
        found = self._known[profile] = _Collectors(ready, silent, now)
        return found

    def _list(self, profile: str) -> dict[str, bool]:
        labels = f"{LABEL_PROFILE}={label_value(profile)},{LABEL_COMPONENT}={COLLECTOR}"
        ready: dict[str, bool] = {}
        for page in self._api.pages("Pod", self._namespace, labels):
            for pod in page.items:
                if node := node_of(pod):  # in a roll-out a node may have two
                    ready[node] = ready.get(node, False) or is_ready(pod)
        return ready
