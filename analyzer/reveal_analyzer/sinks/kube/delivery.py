"""Writes one report and the Events that follow it; what to write was decided before."""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict, deque
from collections.abc import Sequence
from dataclasses import replace

from reveal_analyzer.sinks.kube.api import SinkApi
from reveal_analyzer.sinks.kube.entry import PendingEvent, ReportEntry
from reveal_contract.kube import events
from reveal_contract.kube.anomaly_report import Report, ReportOwner
from reveal_contract.kube.errors import (
    AlreadyExistsError,
    ApiError,
    InvalidObjectError,
    NotFoundError,
    UnavailableError,
)
from reveal_contract.kube.events import Event, EventRecorder, ObjectReference, Posting
from reveal_contract.kube.names import ANALYZER_MANAGER
from reveal_contract.kube.silence import silence_of

log = logging.getLogger(__name__)

UID_SECONDS = 600.0  # a node may be created again under its name, with another uid
_MAX_UIDS = 4096
MAX_VERIFIED = 1_000
MAX_ATTEMPTS = 8  # of an Event that the server fails with an internal error


class Delivery:
    """Writes by ``api``; raises ``ApiError`` where a report could not be written.

    ``reports`` counts writes by result, ``events`` Events by result.  ``verified`` are reports
    with the effect of a change.  ``instance`` is the pod.
    """

    def __init__(self, api: SinkApi, instance: str) -> None:
        self.reports: Counter[str] = Counter()
        self.verified: deque[Report] = deque(maxlen=MAX_VERIFIED)  # to be written
        self.events: Counter[str] = Counter()
        self._api, self._instance = api, instance
        self._recorder = EventRecorder()
        self._uids: OrderedDict[str, tuple[str, float]] = OrderedDict()
        self._refusal_logged = False

    def deliver(self, entry: ReportEntry, owner: ReportOwner, now_s: float, now_ns: int) -> Report:
        """Write the report, then its Events; return what was written.

        What was done before an error is not done again: each step has the same result when it is
        repeated, and an Event leaves the entry once it is written.  A silenced report has no
        Events.
        """
        report = entry.report
        if entry.written_core is None:
            self._create(report, owner)
            entry.written_core, entry.written_labels = (), report.labels()
        # Without Events the status is written even if its core is the same: that is a refresh.  It
        # is written before the first attempt of an Event, too: its response has the silence.
        if entry.written_core != report.core or not isinstance(_first(entry.events), Posting):
            self._write_status(entry, report, owner)
            entry.written_core = report.core
        if entry.is_silenced(now_ns):
            self.events["silenced"] += len(entry.events)
            entry.events.clear()
        while entry.events:
            self._write_event(entry, now_s)
        return report

    def write_verified(self) -> None:
        """Write the effects of changes that are ``verified``, into reports that the API has."""
        while self.verified:
            report = self.verified[0]
            try:
                self._api.apply_verification(report.name, report.to_apply_verification())
                self.reports["verified"] += 1
            except NotFoundError:  # too mild, part of the summary, or deleted
                pass
            except InvalidObjectError as error:
                self.reports["invalid"] += 1
                log.error("the API rejects the verification of %s: %s", report.name, error)
            self.verified.popleft()

    def write_due_series(self, now_ns: int) -> None:
        """Write the series of Events that went on or ended."""
        for posting in self._recorder.due(now_ns):
            self._post_or_drop(posting)

    def close(self) -> None:
        """Write the last counts of all series."""
        for posting in self._recorder.rest():
            self._post_or_drop(posting)

    def _create(self, report: Report, owner: ReportOwner) -> None:
        try:
            self._api.create_report(report.to_create(owner))
            self.reports["created"] += 1
        except AlreadyExistsError:
            # The name is the finding's: the response to an earlier attempt was lost, or the
            # finding opened again after it was resolved.
            self._api.label_report(report.name, report.labels())

    def _write_status(self, entry: ReportEntry, report: Report, owner: ReportOwner) -> None:
        body = replace(report, generation=owner.generation).to_apply()
        try:
            stored = self._api.apply_report_status(report.name, body)
        except NotFoundError:  # somebody deleted it
            self._create(report, owner)
            entry.written_labels = report.labels()
            stored = self._api.apply_report_status(report.name, body)
        entry.silence = silence_of(stored)
        written = entry.written_labels
        if any(written.get(key) != value for key, value in report.labels().items()):
            self._api.label_report(report.name, report.labels())
            entry.written_labels = report.labels()
        self.reports["updated" if report.open else "resolved"] += 1

    def _write_event(self, entry: ReportEntry, now_s: float) -> None:
        """Write the next Event of a report; a refused one is dropped: Events are for people."""
        event = entry.events[0]
        if isinstance(event, PendingEvent):
            refused = self._recorder.refused
            posting = self._recorder.record(self._event(entry, event, now_s), event.time_ns)
            if posting is None:
                self.events["limited" if self._recorder.refused > refused else "counted"] += 1
                entry.events.pop(0)
                return
            entry.events[0] = event = posting
        try:
            self._post(event)
        except ApiError as error:
            # The webhook of a pod's namespace may be broken for days: give up after some attempts.
            if isinstance(error, UnavailableError) and entry.attempts < MAX_ATTEMPTS:
                raise
            self._count_dropped(error)
        entry.events.pop(0)

    def _event(self, entry: ReportEntry, event: PendingEvent, now_s: float) -> Event:
        regarding = events.pod(*event.pod) if event.pod else self._node(entry.report.node, now_s)
        return Event(
            event.reason,
            regarding,
            event.note,
            ANALYZER_MANAGER,
            self._instance,
            events.report(entry.report.name),
        )

    def _post(self, posting: Posting) -> None:
        try:
            if posting.patch is None:
                self._api.create_event(posting.namespace, posting.body)
            else:
                self._api.patch_event(posting.namespace, posting.name, posting.patch)
        except NotFoundError:
            if posting.patch is None:
                raise
            self._api.create_event(posting.namespace, posting.body)  # Events live for an hour
        except AlreadyExistsError:
            self.events["repeated"] += 1
            return
        self.events["posted"] += 1

    def _post_or_drop(self, posting: Posting) -> None:
        try:
            self._post(posting)
        except ApiError as error:
            self._count_dropped(error)

    def _count_dropped(self, error: ApiError) -> None:
        self.events["dropped"] += 1
        level = logging.DEBUG if self._refusal_logged else logging.WARNING
        self._refusal_logged = True
        log.log(level, "an Event was dropped (later ones are logged at DEBUG): %s", error)

    def _node(self, name: str, now_s: float) -> ObjectReference:
        """Return the node with its uid where that is known; asked again after ten minutes."""
        uid, asked_s = self._uids.get(name, ("", -UID_SECONDS))
        if now_s - asked_s >= UID_SECONDS:
            try:
                uid = str(self._api.node(name)["metadata"]["uid"])
            except UnavailableError:
                raise
            except ApiError as error:
                uid = ""
                log.debug("the uid of node %s is not known: %s", name, error)
            self._uids[name] = uid, now_s
            self._uids.move_to_end(name)
            if len(self._uids) > _MAX_UIDS:
                self._uids.popitem(last=False)
        return events.node(name, uid)


def _first(events: Sequence[PendingEvent | Posting]) -> PendingEvent | Posting | None:
    return events[0] if events else None
