"""Delivers one report and the Events that follow it; thin: what to write was decided before."""

from __future__ import annotations

import logging
from collections import Counter, OrderedDict
from dataclasses import replace

from reveal_analyzer.sinks.kube.api import SinkApi
from reveal_analyzer.sinks.kube.entry import Entry, Said
from reveal_contract.kube import events
from reveal_contract.kube.anomaly_report import Owner, Report
from reveal_contract.kube.errors import (
    AlreadyExistsError,
    ApiError,
    NotFoundError,
    UnavailableError,
)
from reveal_contract.kube.events import Event, EventBook, Posting, Reference
from reveal_contract.kube.names import ANALYZER_MANAGER

log = logging.getLogger(__name__)

UID_SECONDS = 600.0  # a node may be made anew under its name
_MOST_UIDS = 4096
MOST_TRIES = 8  # of an Event that the API answers with an error of its own


class Delivery:
    """Writes by ``api``; raises ``ApiError`` where a report could not be written.

    ``counts`` has reports by what was done and Events by their fate.  ``instance`` is the pod.
    """

    def __init__(self, api: SinkApi, instance: str) -> None:
        self.reports: Counter[str] = Counter()
        self.events: Counter[str] = Counter()
        self._api, self._instance = api, instance
        self._book = EventBook()
        self._uids: OrderedDict[str, tuple[str, float]] = OrderedDict()
        self._said_refused = False

    def deliver(self, entry: Entry, owner: Owner, now_s: float) -> Report:
        """The report, then its Events; gives what was written.

        Whatever was done before an error is not done again: each step is the same when repeated,
        and an Event leaves the entry when it was taken.
        """
        wanted = entry.report
        if entry.told is None:
            self._create(wanted, owner)
            entry.told, entry.labels = (), wanted.labels()
        if entry.told != wanted.core or not entry.events:
            self._write(entry, wanted, owner)
            entry.told = wanted.core
        while entry.events:
            self._tell(entry, now_s)
        return wanted

    def turn(self, now_ns: int) -> None:
        """Tell of series that went on or ended."""
        for posting in self._book.due(now_ns):
            self._post_quietly(posting)

    def close(self) -> None:
        """Tell what series have come to."""
        for posting in self._book.rest():
            self._post_quietly(posting)

    def _create(self, wanted: Report, owner: Owner) -> None:
        try:
            self._api.create_report(wanted.to_create(owner))
            self.reports["created"] += 1
        except AlreadyExistsError:
            # ours, by its name: the answer to an earlier try was lost, or it was resolved before
            self._api.label_report(wanted.name, wanted.labels())

    def _write(self, entry: Entry, wanted: Report, owner: Owner) -> None:
        judged = replace(wanted, generation=owner.generation).to_apply()
        try:
            self._api.apply_report_status(wanted.name, judged)
        except NotFoundError:  # somebody deleted it
            self._create(wanted, owner)
            entry.labels = wanted.labels()
            self._api.apply_report_status(wanted.name, judged)
        if any(entry.labels.get(key) != value for key, value in wanted.labels().items()):
            self._api.label_report(wanted.name, wanted.labels())
            entry.labels = wanted.labels()
        self.reports["updated" if wanted.open else "resolved"] += 1

    def _tell(self, entry: Entry, now_s: float) -> None:
        """The next Event of a report; one that is refused is dropped, as Events are for people."""
        said = entry.events[0]
        if isinstance(said, Said):
            event, refused = self._event(entry, said, now_s), self._book.refused
            posting = self._book.note(event, said.at_ns)
            if posting is None:
                self.events["limited" if self._book.refused > refused else "counted"] += 1
                entry.events.pop(0)
                return
            entry.events[0] = said = posting
        try:
            self._post(said)
        except ApiError as error:
            # a webhook of a pod's namespace may be broken for days
            if isinstance(error, UnavailableError) and entry.tries < MOST_TRIES:
                raise
            self._refused(error)
        entry.events.pop(0)

    def _event(self, entry: Entry, said: Said, now_s: float) -> Event:
        about = events.pod(*said.pod) if said.pod else self._node(entry.report.node, now_s)
        return Event(
            said.reason, about, said.note, ANALYZER_MANAGER, self._instance,
            events.report(entry.report.name),
        )  # fmt: skip

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

    def _post_quietly(self, posting: Posting) -> None:
        try:
            self._post(posting)
        except ApiError as error:
            self._refused(error)

    def _refused(self, error: ApiError) -> None:
        self.events["dropped"] += 1
        level = logging.DEBUG if self._said_refused else logging.WARNING
        self._said_refused = True
        log.log(level, "an Event was dropped, and so are others like it: %s", error)

    def _node(self, name: str, now_s: float) -> Reference:
        """The node with its uid where that can be known; asked again after ten minutes."""
        uid, asked_s = self._uids.get(name, ("", -UID_SECONDS))
        if now_s - asked_s >= UID_SECONDS:
            try:
                uid = self._api.node_uid(name)
            except UnavailableError:
                raise
            except ApiError as error:
                uid = ""
                log.debug("the uid of %s is not known: %s", name, error)
            self._uids[name] = uid, now_s
            self._uids.move_to_end(name)
            if len(self._uids) > _MOST_UIDS:
                self._uids.popitem(last=False)
        return events.node(name, uid)
