"""Removes the node conditions that no report supports any more.

Analyzers set and remove ``RevealAnomaly``.  Those of a deleted profile are gone before they can
remove it, and an analyzer may end between a resolved report and the condition.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable

from reveal_contract.kube.errors import ApiError
from reveal_contract.kube.names import LABEL_STATE, PROFILE_KIND, REPORT_KIND
from reveal_contract.kube.node_condition import (
    CONDITION_TYPE,
    has_condition,
    is_urgent,
    wants_conditions,
)
from reveal_contract.kube.report_parser import parse_report
from reveal_operator.api import OperatorApi

CHECK_S = 60.0  # between two looks at the profiles
SWEEP_S = 3600.0  # between two lists of all nodes while nothing changes

_log = logging.getLogger(__name__)


class NodeConditionSweep:
    """Lists nodes at the start, when a profile stops setting conditions, and each hour.

    A condition is removed if two sweeps find no report for it: an analyzer may be writing one.
    """

    def __init__(self, api: OperatorApi, clock: Callable[[], float] = time.monotonic) -> None:
        self._api, self._clock = api, clock
        self._profiles: frozenset[str] | None = None  # that set conditions
        self._suspects: frozenset[str] = frozenset()
        self._swept_s = 0.0
        self._refusal_logged = False

    async def run(self, every_s: float = CHECK_S) -> None:
        """Check until cancelled; what fails is done by the next check."""
        while True:
            await asyncio.sleep(every_s)
            try:
                await asyncio.to_thread(self.check)
            except ApiError as error:
                _log.debug("node conditions cannot be checked, will retry: %s", error)

    def check(self) -> None:
        """Sweep if that is due.  Raises ``ApiError``."""
        before, profiles = self._profiles, self._setting_conditions()
        stopped = before is None or not profiles >= before
        hourly = bool(profiles) and self._clock() - self._swept_s >= SWEEP_S
        if not (stopped or hourly or self._suspects):
            self._profiles = profiles
            return
        stale = self._stale(profiles)
        for node in sorted(stale & self._suspects):
            self._remove(node)
        self._suspects = stale - self._suspects
        self._profiles, self._swept_s = profiles, self._clock()

    def _setting_conditions(self) -> frozenset[str]:
        return frozenset(
            item["metadata"]["name"]
            for page in self._api.pages(PROFILE_KIND)
            for item in page.items
            if wants_conditions(item.get("spec") or {})
        )

    def _stale(self, profiles: frozenset[str]) -> frozenset[str]:
        """Return the nodes that have the condition without an urgent report of these profiles."""
        having = {
            item["metadata"]["name"]
            for page in self._api.pages("Node")
            for item in page.items
            if has_condition(item)
        }
        return frozenset(having - self._urgent_nodes(profiles)) if having else frozenset()

    def _urgent_nodes(self, profiles: frozenset[str]) -> set[str]:
        found = (
            parse_report(item)
            for page in self._api.pages(REPORT_KIND, labels=f"{LABEL_STATE}=Open")
            for item in page.items
        )
        return {
            report.node
            for report in found
            if report is not None and report.identity.profile in profiles and is_urgent(report)
        }

    def _remove(self, node: str) -> None:
        try:
            self._api.remove_node_condition(node)
        except ApiError as error:
            if error.transient:
                raise
            level = logging.DEBUG if self._refusal_logged else logging.WARNING
            self._refusal_logged = True
            _log.log(level, "the condition %s stays on node %s: %s", CONDITION_TYPE, node, error)
        else:
            _log.info("condition %s removed from node %s: no report", CONDITION_TYPE, node)
