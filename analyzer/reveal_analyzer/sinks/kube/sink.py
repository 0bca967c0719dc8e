"""The sink's thread: takes what the ledger says is due to the API, and waits when it is away."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from reveal_analyzer.sinks.kube import backoff
from reveal_analyzer.sinks.kube.api import SinkApi
from reveal_analyzer.sinks.kube.conditions import NodeConditions
from reveal_analyzer.sinks.kube.delivery import Delivery
from reveal_analyzer.sinks.kube.entry import Entry
from reveal_analyzer.sinks.kube.report_store import Ledger, Listed
from reveal_analyzer.sinks.kube.spool import Spool
from reveal_analyzer.telemetry.snapshot import Situation
from reveal_contract.finding import FindingUpdate
from reveal_contract.kube.anomaly_report import Owner
from reveal_contract.kube.errors import (
    ApiError,
    ForbiddenError,
    InvalidObjectError,
    NotFoundError,
    UnavailableError,
)
from reveal_contract.settings import AnalyzerSettings

log = logging.getLogger(__name__)

TURN_SECONDS = 1.0
LIST_SECONDS = 600.0  # between two looks at what the API has
SERIES_SECONDS = 60.0
ENOUGH = 5  # reports in a turn that the API could not take: it is not the reports
CLOSE_SECONDS = 3.0  # for the last reports; what is left waits in the spool


class Status(Protocol):
    """What is told of the profile itself; see ``status.ProfileStatus``."""

    def step(self, api: SinkApi, situation: Situation) -> None: ...

    def close(self) -> None: ...


class KubeSink:
    """A sink whose ``write`` never blocks and never fails for the API's sake.

    With ``settings.publish`` "observe" only ``status`` is told.  ``instance`` is the pod's name,
    ``folder`` where what waits survives a restart.
    """

    def __init__(
        self,
        settings: AnalyzerSettings,
        api: SinkApi,
        instance: str,
        folder: Path | None = None,
        status: Status | None = None,
    ) -> None:
        self._profile, self._api, self._status = settings.profile, api, status
        self._writes = settings.publish == "kubernetes"
        self._ledger = Ledger(settings)
        self._spool = Spool(folder if self._writes else None)
        self._delivery = Delivery(api, instance)
        self._conditions = NodeConditions(api) if settings.node_conditions else None
        self._pace, self._status_pace = backoff.Pace(), backoff.Pace()
        self._changed = threading.Condition()
        self._keeping = threading.Lock()
        self._news = self._closing = False
        self._situation: Situation | None = None
        self._followed: Situation | None = None
        self._listed_s: float | None = None
        self._series_s = 0.0
        self._owner: Owner | None = None
        self._kept: list[tuple[str, int]] = []
        self._ledger.restore(self._spool.load())
        self._thread = threading.Thread(target=self._run, name="reveal-kubernetes", daemon=True)
        self._thread.start()

    def write(self, update: FindingUpdate) -> None:
        """Take a change; it is on its way when this returns, and no more."""
        if self._writes:
            with self._changed:
                self._ledger.change(update, time.monotonic())
                self._news = True
                self._changed.notify()

    def follow(self, situation: Situation) -> None:
        """What this analyzer watches now."""
        with self._changed:
            before, self._situation = self._situation, situation
            if before is None or _gained(before, situation):
                self._listed_s = None
                self._ledger.forget_listed()

    def figures(self) -> dict[str, int]:
        """Counts for metrics: by the names in ``sinks.kube.figures``."""
        with self._changed:
            waiting, counts = len(self._ledger.pending()), dict(self._ledger.counts)
        reports = dict(self._delivery.reports) | counts
        return {
            "up": int(self._pace.up and self._status_pace.up),
            "waiting": waiting,
            "corrupt": self._spool.corrupt,
            **{f"report {key}": value for key, value in reports.items()},
            **{f"event {key}": value for key, value in self._delivery.events.items()},
        }

    def close(self) -> None:
        """Deliver what can be delivered in ``CLOSE_SECONDS``, keep the rest on disk."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(CLOSE_SECONDS)
        if left := self._keep():
            log.warning("%d reports could not be delivered before the end", left)

    def _run(self) -> None:
        while not self._closing:
            self._turn()
            with self._changed:
                if not (self._closing or self._news):
                    self._changed.wait(TURN_SECONDS)
                self._news = False
        if self._pace.may(time.monotonic()):
            self._turn()
            self._delivery.close()
        if self._status is not None:
            self._status.close()
        self._api.close()

    def _turn(self) -> None:
        """One round; a defect costs that round and is said."""
        try:
            self._tell_status()
            if self._writes:
                self._tell_reports()
        except Exception:
            log.exception("a turn of the Kubernetes sink failed")

    def _tell_status(self) -> None:
        situation = self._situation
        if self._status is None or situation is None:
            return
        if not self._status_pace.may(time.monotonic()):
            return
        try:
            self._status.step(self._api, situation)
        except ApiError as error:
            self._status_pace.failed(error, time.monotonic())
        else:
            self._status_pace.worked()

    def _tell_reports(self) -> None:
        self._follow_up()
        now = time.monotonic()
        if self._pace.may(now):
            try:
                self._list(now)
                self._deliver()
                self._tell_series(now)
            except ApiError as error:
                self._pace.failed(error, time.monotonic())
            else:
                self._pace.worked()
        self._keep()

    def _follow_up(self) -> None:
        with self._changed:
            if self._situation is not None and self._situation is not self._followed:
                self._ledger.follow(self._situation, time.time_ns())
                self._followed = self._situation

    def _list(self, now: float) -> None:
        """Who the reports belong to, and which are open there, where that is to be known anew."""
        situation = self._situation
        if situation is None or not situation.shards:
            return  # nothing is decided before it is known which nodes are ours
        if self._listed_s is not None and now - self._listed_s < LIST_SECONDS:
            return
        try:
            found = self._api.profile(self._profile)
        except NotFoundError as error:
            raise ForbiddenError(f"there is no RevealProfile {self._profile}: {error}") from None
        metadata = found["metadata"]
        self._owner = Owner(self._profile, metadata["uid"], int(metadata.get("generation", 1)))
        reports = self._api.open_reports(self._profile)
        listed = [one for item in reports if (one := Listed.of(item))]
        with self._changed:
            if self._situation is situation or not _gained(situation, self._situation):
                self._ledger.listed(listed, now)
                self._listed_s = now
        if self._conditions is not None:
            self._conditions.found([one.report.node for one in listed])

    def _deliver(self) -> None:
        with self._changed:
            now, now_ns = time.monotonic(), time.time_ns()
            self._ledger.admit(now, now_ns)
            due = self._ledger.due(now, now_ns)
            alarmed = self._ledger.alarmed()
        self._keep()
        if self._conditions is not None and self._listed_s is not None:
            self._conditions.follow(alarmed, now_ns)
        self._deliver_all(due)

    def _deliver_all(self, due: Sequence[Entry]) -> None:
        """Each that can be; one that the API cannot take now stops no other, but some do."""
        failed = 0
        for entry in due:
            try:
                self._deliver_one(entry)
            except UnavailableError as error:
                failed += 1
                if not error.concerns_object or failed == ENOUGH:
                    raise
                entry.tries += 1
                entry.again_s = time.monotonic() + backoff.pause_s(entry.tries, backoff.FIRST_S)
                log.warning("report %s waits, others do not: %s", entry.report.name, error)

    def _deliver_one(self, entry: Entry) -> None:
        assert self._owner is not None
        try:
            written = self._delivery.deliver(entry, self._owner, time.monotonic())
        except InvalidObjectError as error:
            self._delivery.reports["invalid"] += 1
            name = entry.report.name
            log.error("the API does not take report %s, it is dropped: %s", name, error)
            with self._changed:
                self._ledger.refused(entry)
        else:
            with self._changed:
                self._ledger.delivered(entry, written, time.monotonic())

    def _tell_series(self, now: float) -> None:
        if now >= self._series_s:
            self._series_s = now + SERIES_SECONDS
            self._delivery.turn(time.time_ns())

    def _keep(self) -> int:
        """The spool as what waits is now; gives how many reports wait."""
        with self._keeping:  # not under the other lock: nobody may wait for a disk
            with self._changed:
                pending = self._ledger.pending()
            kept = [(one.report.name, hash((one.report.core, len(one.events)))) for one in pending]
            if kept != self._kept:
                self._kept = kept
                self._spool.keep(pending)
            return len(pending)


def _gained(before: Situation, now: Situation | None) -> bool:
    """Whether nodes are ours to speak of that were another's."""
    if now is None:
        return False
    return not now.shards <= before.shards or (now.leads and not before.leads)
