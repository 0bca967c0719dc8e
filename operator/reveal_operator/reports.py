"""The AnomalyReports of the cluster, as few numbers each.

They are watched here and not by kopf: it keeps every object of a first listing in memory until all
kinds are listed, and a task for each, which with ten thousand reports is hundreds of megabytes.
Here a page is read, what counts is taken, and the page is dropped.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, NamedTuple

from reveal_contract.finding import State
from reveal_contract.kube.errors import GONE, NOT_FOUND, ApiError
from reveal_contract.kube.names import REPORT_KIND
from reveal_contract.runtime.backoff import Backoff
from reveal_operator.api import Api

FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0

_log = logging.getLogger(__name__)


class Report(NamedTuple):
    """What retention and status need of one; ``resolved`` in epoch seconds, 0 while open."""

    name: str
    uid: str
    version: str
    profile: str
    is_open: bool
    resolved: float


class Tally(NamedTuple):
    """Of a profile: its reports, and those of them that are open."""

    reports: int
    open: int


def report_of(body: Mapping[str, Any]) -> Report:
    """Of an AnomalyReport; one without status is new, and so open."""
    metadata, status = body["metadata"], body.get("status") or {}
    resolved = status.get("state") == State.RESOLVED.value
    return Report(
        name=metadata["name"],
        uid=metadata["uid"],
        version=metadata["resourceVersion"],
        profile=((body.get("spec") or {}).get("profileRef") or {}).get("name", ""),
        is_open=not resolved,
        resolved=_when_resolved(metadata, status) if resolved else 0.0,
    )


class Reports:
    """All reports, kept up by ``follow``; read from the event loop.

    ``changed`` is called with the name of a profile whose tally may be another now.
    """

    def __init__(self, changed: Callable[[str], None]) -> None:
        self._changed = changed
        self._of: dict[str, dict[str, Report]] = {}
        self.listed = asyncio.Event()

    def of(self, profile: str) -> Iterable[Report]:
        return self._of.get(profile, {}).values()

    def tally(self, profile: str) -> Tally | None:
        """None before the first listing is whole."""
        if not self.listed.is_set():
            return None
        known = self._of.get(profile, {}).values()
        return Tally(len(known), sum(report.is_open for report in known))

    @property
    def total(self) -> Tally:
        # copies: a scrape asks from another thread
        known = [report for reports in [*self._of.values()] for report in [*reports.values()]]
        return Tally(len(known), sum(report.is_open for report in known))

    def put(self, report: Report) -> None:
        self._of.setdefault(report.profile, {})[report.name] = report
        self._changed(report.profile)

    def drop(self, report: Report) -> None:
        known = self._of.get(report.profile, {})
        if known.pop(report.name, None) is not None:
            self._changed(report.profile)
        if not known:
            self._of.pop(report.profile, None)

    def replace(self, reports: Iterable[Report]) -> None:
        """Those of a new listing, and no others."""
        before = set(self._of)
        self._of = {}
        for report in reports:
            self._of.setdefault(report.profile, {})[report.name] = report
        self.listed.set()
        for profile in before | set(self._of):
            self._changed(profile)


class Follower:
    """Lists and watches the reports in a thread, and tells the loop; never gives up."""

    def __init__(self, api: Api, reports: Reports, loop: asyncio.AbstractEventLoop) -> None:
        self._api, self._reports, self._loop = api, reports, loop
        self._stop = threading.Event()

    def start(self) -> None:
        # a daemon: it sits in a read that nothing ends but the server
        threading.Thread(target=self._follow, name="reports", daemon=True).start()

    def stop(self) -> None:
        self._stop.set()

    def _follow(self) -> None:
        retry = Backoff(FIRST_PAUSE_S, LONGEST_PAUSE_S)
        while not self._stop.is_set():
            try:
                version = self._list()
                retry.reset()
                self._watch(version)
            except ApiError as error:
                if error.status == GONE:  # the server has forgotten our version: list anew
                    continue
                if error.status == NOT_FOUND:  # no such kind, and so none of it
                    self._tell(self._reports.replace, [])
                pause = retry.next()
                _log.warning("reports: again in %.0f s: %s", pause, error)
                self._stop.wait(pause)

    def _list(self) -> str:
        found: list[Report] = []
        version = ""
        for page in self._api.pages(REPORT_KIND):
            found += [report_of(item) for item in page.items]
            version = page.version
        self._tell(self._reports.replace, found)
        return version

    def _watch(self, version: str) -> None:
        """From one end of the stream to the next, until the server forgets our version."""
        while not self._stop.is_set():
            try:
                for change, body in self._api.watch(REPORT_KIND, version):
                    version = body["metadata"]["resourceVersion"]
                    self._take(change, body)
            except ApiError as error:
                if not error.transient or error.status == GONE:
                    raise
                self._stop.wait(FIRST_PAUSE_S)

    def _take(self, change: str, body: Mapping[str, Any]) -> None:
        if change in ("ADDED", "MODIFIED"):
            self._tell(self._reports.put, report_of(body))
        elif change == "DELETED":
            self._tell(self._reports.drop, report_of(body))

    def _tell(self, what: Callable[[Any], None], about: Any) -> None:
        if not self._stop.is_set():
            self._loop.call_soon_threadsafe(what, about)


def _when_resolved(metadata: Mapping[str, Any], status: Mapping[str, Any]) -> float:
    """Seconds since the epoch, of the best of the times that can be read."""
    given = (status.get("resolvedTime"), status.get("lastSeenTime"), metadata["creationTimestamp"])
    for moment in given:
        with suppress(ValueError):
            return datetime.fromisoformat(str(moment)).timestamp()
    return 0.0
