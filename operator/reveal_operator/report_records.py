"""Small records of all AnomalyReports of the cluster.

They are watched here and not by kopf: it keeps every object of the first list in memory until all
resource types are listed, and a task for each.  With ten thousand reports that is hundreds of
megabytes.  Here a page is read, its records are kept, and the page is dropped.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, NamedTuple

from reveal_contract.finding import FindingKind, State
from reveal_contract.kube.errors import GONE, NOT_FOUND, ApiError
from reveal_contract.kube.names import ANALYZER_MANAGER, REPORT_KIND
from reveal_contract.runtime.backoff import Backoff
from reveal_operator.api import OperatorApi

FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0

_log = logging.getLogger(__name__)


class ReportRecord(NamedTuple):
    """What retention and status need.

    ``resolved`` is when it was resolved by the API server's clock, in epoch seconds, 0 while open.
    ``cause`` is that of an anomaly on ``node``, and ``onset`` when it was first seen (RFC 3339).
    """

    name: str
    uid: str
    version: str
    profile: str
    is_open: bool
    resolved: float
    node: str = ""
    cause: str = ""
    onset: str = ""


class ReportCounts(NamedTuple):
    """The number of reports of a profile, and how many of them are open."""

    reports: int
    open: int


def report_of(body: Mapping[str, Any]) -> ReportRecord:
    """Return the record of an AnomalyReport; one without a status is new, so it is open."""
    metadata, status = body["metadata"], body.get("status") or {}
    spec = body.get("spec") or {}
    resolved = status.get("state") == State.RESOLVED.value
    is_anomaly = spec.get("kind") == FindingKind.ANOMALY.value
    return ReportRecord(
        name=metadata["name"],
        uid=metadata["uid"],
        version=metadata["resourceVersion"],
        profile=(spec.get("profileRef") or {}).get("name", ""),
        is_open=not resolved,
        resolved=_when_resolved(metadata, status) if resolved else 0.0,
        # the same few names in ten thousand reports
        node=sys.intern(str(spec.get("nodeName", ""))),
        cause=sys.intern(str(status.get("cause", ""))) if is_anomaly else "",
        onset=str(spec.get("firstSeenTime", "")),
    )


class ReportIndex:
    """All reports, updated by ``ReportWatcher``; used in the event loop.

    ``changed`` is called with the name of a profile whose counts may have changed.
    """

    def __init__(self, changed: Callable[[str], None]) -> None:
        self._changed = changed
        self._of: dict[str, dict[str, ReportRecord]] = {}
        self.listed = asyncio.Event()

    def of(self, profile: str) -> Iterable[ReportRecord]:
        """Return the reports of a profile."""
        return self._of.get(profile, {}).values()

    def counts(self, profile: str) -> ReportCounts | None:
        """Return the counts of a profile; None before the first list is complete."""
        if not self.listed.is_set():
            return None
        known = self._of.get(profile, {}).values()
        return ReportCounts(len(known), sum(report.is_open for report in known))

    @property
    def total(self) -> ReportCounts:
        """The counts of all profiles."""
        # copies: a scrape runs in another thread
        known = [report for reports in [*self._of.values()] for report in [*reports.values()]]
        return ReportCounts(len(known), sum(report.is_open for report in known))

    def put(self, report: ReportRecord) -> None:
        """Add or replace a report."""
        self._of.setdefault(report.profile, {})[report.name] = report
        self._changed(report.profile)

    def drop(self, report: ReportRecord) -> None:
        """Remove a report."""
        known = self._of.get(report.profile, {})
        if known.pop(report.name, None) is not None:
            self._changed(report.profile)
        if not known:
            self._of.pop(report.profile, None)

    def replace(self, reports: Iterable[ReportRecord]) -> None:
        """Keep the reports of a new list, and no others."""
        before = set(self._of)
        self._of = {}
        for report in reports:
            self._of.setdefault(report.profile, {})[report.name] = report
        self.listed.set()
        for profile in before | set(self._of):
            self._changed(profile)


class ReportWatcher:
    """Lists and watches the reports in a thread, and updates the index; never gives up."""

    def __init__(
        self, api: OperatorApi, reports: ReportIndex, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._api, self._reports, self._loop = api, reports, loop
        self._stop = threading.Event()

    def start(self) -> None:
        """Start the thread."""
        # a daemon: only the server ends the read that it blocks in
        threading.Thread(target=self._run, name="reports", daemon=True).start()

    def stop(self) -> None:
        """Make the thread end after its current read."""
        self._stop.set()

    def _run(self) -> None:
        retry = Backoff(FIRST_PAUSE_S, LONGEST_PAUSE_S)
        while not self._stop.is_set():
            try:
                version = self._list()
                retry.reset()
                self._watch(version)
            except ApiError as error:
                if error.status == GONE:  # the server no longer has our version: list again
                    continue
                if error.status == NOT_FOUND:  # without the CRD there are no reports
                    self._call(self._reports.replace, [])
                pause = retry.next()
                _log.warning("the watch of reports failed, will retry in %.0f s: %s", pause, error)
                self._stop.wait(pause)

    def _list(self) -> str:
        found: list[ReportRecord] = []
        version = ""
        for page in self._api.pages(REPORT_KIND):
            found += [report_of(item) for item in page.items]
            version = page.version
        self._call(self._reports.replace, found)
        return version

    def _watch(self, version: str) -> None:
        """Watch again and again, until the server no longer has our version."""
        while not self._stop.is_set():
            try:
                for change, body in self._api.watch(REPORT_KIND, version):
                    version = body["metadata"]["resourceVersion"]
                    self._apply(change, body)
            except ApiError as error:
                if not error.transient or error.status == GONE:
                    raise
                self._stop.wait(FIRST_PAUSE_S)

    def _apply(self, change: str, body: Mapping[str, Any]) -> None:
        if change in ("ADDED", "MODIFIED"):
            self._call(self._reports.put, report_of(body))
        elif change == "DELETED":
            self._call(self._reports.drop, report_of(body))

    def _call(self, function: Callable[[Any], None], argument: Any) -> None:
        if not self._stop.is_set():
            self._loop.call_soon_threadsafe(function, argument)


def _when_resolved(metadata: Mapping[str, Any], status: Mapping[str, Any]) -> float:
    """Return when it was resolved, in epoch seconds, by the best time that can be read.

    The server notes when a status is written last, which is when the report was resolved.  Times in
    the status are of other clocks, and of use only where the server noted nothing.
    """
    written = [
        entry.get("time")
        for entry in metadata.get("managedFields") or ()
        if entry.get("manager") == ANALYZER_MANAGER and entry.get("subresource") == "status"
    ]
    given = (*written, status.get("resolvedTime"), status.get("lastSeenTime"))
    for moment in (*given, metadata["creationTimestamp"]):
        with suppress(ValueError):
            return datetime.fromisoformat(str(moment)).timestamp()
    return 0.0
