"""Which reports are to go, and the sweep that deletes them.

A resolved report goes when it is old enough; where a profile has more than it may, resolved ones
go, oldest first.  Open ones stay, however many: they are what is wrong now.  Reports of a profile
that is gone are the garbage collector's.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from reveal_contract.kube.errors import ApiError
from reveal_contract.kube.names import REPORT_KIND
from reveal_operator.api import Api
from reveal_operator.metrics import Metrics
from reveal_operator.reports import Report, Reports

SWEEP_S = 60.0
BATCH = 10
PAUSE_S = 0.25  # between batches: 40 a second at most, beside what the API server has to do anyway

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    """Of a profile's reports."""

    ttl_seconds: int
    most: int


def expendable(reports: Iterable[Report], limits: Limits, now: float) -> list[Report]:
    """The reports of one profile that are to go, oldest first.  ``now`` in epoch seconds."""
    known = list(reports)
    resolved = sorted(
        (report for report in known if not report.is_open), key=lambda r: (r.resolved, r.name)
    )
    over = max(0, len(known) - limits.most)
    return [
        report
        for rank, report in enumerate(resolved)
        if rank < over or report.resolved + limits.ttl_seconds <= now
    ]


class Retention:
    """The sweep, a task of its own; ``limits`` are asked for by profile at every round."""

    def __init__(
        self,
        api: Api,
        reports: Reports,
        limits: Callable[[], Mapping[str, Limits]],
        metrics: Metrics,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._api, self._reports, self._limits = api, reports, limits
        self._metrics, self._now = metrics, now

    async def run(self, every_s: float = SWEEP_S) -> None:
        """Sweep for ever; a round that fails is repeated at the next one."""
        while True:
            await asyncio.sleep(every_s)
            try:
                await self.sweep()
            except ApiError as error:
                _log.warning("reports could not be deleted, they wait: %s", error)

    async def sweep(self) -> int:
        """One round; how many were deleted.  Raises ``ApiError``."""
        count = 0
        for profile, limits in self._limits().items():
            going = expendable(self._reports.of(profile), limits, self._now())
            gone = await self._delete_all(going)
            if gone:
                _log.info("%s: %d reports deleted, resolved long ago or too many", profile, gone)
            count += gone
        return count

    async def _delete_all(self, going: list[Report]) -> int:
        count = 0
        for begin in range(0, len(going), BATCH):
            if begin:
                await asyncio.sleep(PAUSE_S)
            count += await asyncio.to_thread(self._delete, going[begin : begin + BATCH])
        return count

    def _delete(self, batch: list[Report]) -> int:
        """Only in the version that was judged: one that opened again stays."""
        gone = [
            self._api.delete(REPORT_KIND, report.name, uid=report.uid, version=report.version)
            for report in batch
        ]
        for _ in range(sum(gone)):
            self._metrics.deleted(REPORT_KIND)
        return sum(gone)
