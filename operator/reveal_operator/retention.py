"""Which reports to delete, and the sweep that deletes them.

A resolved report is deleted after its time to live, by the clock of the API server: it notes when
the status was written last, and says what time it is.  Over the limit of a profile resolved reports
are deleted, the oldest first.  Open ones stay, however many: they are what is wrong now.  The
garbage collector deletes the reports of a profile that is gone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from reveal_contract.kube.errors import ApiError
from reveal_contract.kube.names import REPORT_KIND
from reveal_operator.api import OperatorApi
from reveal_operator.metrics import OperatorMetrics
from reveal_operator.report_records import ReportIndex, ReportRecord

SWEEP_S = 60.0
BATCH = 10
PAUSE_S = 0.25  # between batches: at most 40 a second, to spare the API server

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RetentionLimits:
    """Limits of the reports of a profile."""

    ttl_seconds: int
    most: int


def expendable(
    reports: Iterable[ReportRecord], limits: RetentionLimits, now: float
) -> list[ReportRecord]:
    """Return the reports of one profile to delete, the oldest first.

    ``now`` is of the API server's clock, in epoch seconds.
    """
    known = list(reports)
    resolved = sorted(
        (report for report in known if not report.is_open), key=lambda r: (r.resolved, r.name)
    )
    # open reports count towards the limit, but only resolved ones are deleted for it
    over = max(0, len(known) - limits.most)
    return [
        report
        for rank, report in enumerate(resolved)
        if rank < over or report.resolved + limits.ttl_seconds <= now
    ]


class Retention:
    """Deletes reports as a task; ``limits`` returns the limits by profile at each sweep."""

    def __init__(
        self,
        api: OperatorApi,
        reports: ReportIndex,
        limits: Callable[[], Mapping[str, RetentionLimits]],
        metrics: OperatorMetrics,
    ) -> None:
        self._api, self._reports, self._limits = api, reports, limits
        self._metrics = metrics

    async def run(self, every_s: float = SWEEP_S) -> None:
        """Sweep until cancelled; what fails is done by the next sweep."""
        while True:
            await asyncio.sleep(every_s)
            try:
                await self.sweep()
            except ApiError as error:
                _log.warning("reports could not be deleted, will retry: %s", error)

    async def sweep(self) -> int:
        """Sweep once; return how many were deleted.  Raises ``ApiError``."""
        count = 0
        for profile, limits in self._limits().items():
            expired = expendable(self._reports.of(profile), limits, self._api.now())
            gone = await self._delete_all(expired)
            if gone:
                _log.info("%s: %d resolved reports deleted, too old or too many", profile, gone)
            count += gone
        return count

    async def _delete_all(self, expired: list[ReportRecord]) -> int:
        count = 0
        for begin in range(0, len(expired), BATCH):
            if begin:
                await asyncio.sleep(PAUSE_S)
            count += await asyncio.to_thread(self._delete, expired[begin : begin + BATCH])
        return count

    def _delete(self, batch: list[ReportRecord]) -> int:
        """Delete each only in the version that was seen: one that opened again stays."""
        gone = [
            self._api.delete(REPORT_KIND, report.name, uid=report.uid, version=report.version)
            for report in batch
        ]
        for _ in range(sum(gone)):
            self._metrics.deleted(REPORT_KIND)
        return sum(gone)
