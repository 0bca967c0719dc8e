"""Which new reports are written, which are part of the summary, and which adopt an orphan.

New reports are limited per minute, so that a fault of a whole cluster floods neither the API nor
its readers.
"""

from __future__ import annotations

from collections.abc import Sequence

from reveal_analyzer.sinks.kube.entries import Entries
from reveal_analyzer.sinks.kube.entry import Admission, PendingEvent, ReportEntry
from reveal_analyzer.sinks.kube.summary import Summary
from reveal_contract.runtime.token_bucket import TokenBucket
from reveal_contract.time_units import NS_PER_SECOND

RESERVED = 5  # one in so many of a minute's reports is reserved for High and Critical ones
CALM = 2  # one in so many must be free before summarized reports are written individually
# The API keeps Events for an hour: it still has each Event of a report that is younger than this.
REPEAT_EVENTS_NS = 15 * 60 * NS_PER_SECOND

_Orphans = dict[str, list[ReportEntry]]


class AdmissionControl:
    """Decides on new reports; not for several threads at once."""

    def __init__(self, entries: Entries, summary: Summary, limit: int) -> None:
        self._entries, self._summary, self._limit = entries, summary, limit
        self._bucket = TokenBucket(limit, 60.0 / limit)

    def decide(self, now_s: float, now_ns: int) -> None:
        """Decide on each waiting report, the most severe first, then update the summary."""
        waiting = [entry for entry in self._entries if entry.admission is Admission.WAITING]
        orphans = self._orphans() if waiting else {}
        for entry in sorted(waiting, key=lambda entry: -entry.report.severity.rank):
            self._decide_entry(entry, orphans, now_ns)
        self._summarize(now_s, now_ns)

    def _decide_entry(self, entry: ReportEntry, orphans: _Orphans, now_ns: int) -> None:
        on_node = orphans.get(entry.report.node, [])
        orphan = _continued(entry, on_node)
        reserved = 0 if entry.urgent else self._limit // RESERVED
        if entry.written_core is not None:
            # The API has it already: an update of it is no new report.
            entry.admission = Admission.ADMITTED
        elif orphan is not None:
            on_node.remove(orphan)
            self._adopt(entry, orphan)
        elif not entry.report.open and not entry.opened_here:
            # Resolved before it was ever reported: nobody needs it.
            self._entries.drop(entry)
        elif self._bucket.take(now_ns, leave=reserved):
            entry.admission = Admission.ADMITTED
            if entry.updated_s is None:
                # Restored from the spool: a finding that is detected now may continue it.
                orphans.setdefault(entry.report.node, []).append(entry)
        else:
            entry.admission = Admission.SUMMARIZED
            self._entries.counts["summed"] += 1

    def _adopt(self, entry: ReportEntry, orphan: ReportEntry) -> None:
        """Continue the orphan's report with the finding of ``entry``."""
        self._entries.drop(entry)
        self._entries.drop(orphan)
        continue_report(entry, orphan)
        self._entries.add(entry)

    def _orphans(self) -> _Orphans:
        """Return the reports without a finding, by node."""
        found: _Orphans = {}
        for entry in self._entries:
            if entry.adoptable and entry.admission is Admission.ADMITTED:
                found.setdefault(entry.report.node, []).append(entry)
        return found

    def _summarize(self, now_s: float, now_ns: int) -> None:
        summarized = [entry for entry in self._entries if entry.admission is Admission.SUMMARIZED]
        for entry in summarized:
            if not entry.report.open:
                self._entries.drop(entry)
        lasting = sorted(
            (entry for entry in summarized if entry.report.open),
            key=lambda entry: -entry.report.severity.rank,
        )
        # After the flood those that last, such as configuration findings, are written individually.
        while lasting and self._bucket.take(now_ns, leave=self._limit // CALM):
            lasting.pop(0).admission = Admission.ADMITTED
        self._summary.update([entry.report for entry in lasting], now_s, now_ns)


def continue_report(entry: ReportEntry, other: ReportEntry) -> None:
    """Continue the report of ``other``, which the API has, with the finding of ``entry``.

    The Event of its opening is written again while it may be missing.
    """
    entry.report = entry.report.continuing(other.report)
    entry.written_core, entry.written_s = other.written_core, other.written_s
    entry.written_labels, entry.silence = other.written_labels, other.silence
    entry.raise_max_severity(other.max_severity)
    entry.admission = Admission.ADMITTED
    if entry.updated_s is None or may_lack_opening_event(entry):
        return
    entry.pod_notified = True
    entry.events = [event for event in entry.events if not _is_written_once(event)]


def may_lack_opening_event(entry: ReportEntry) -> bool:
    """Whether the Event of the opening may be missing for a report that another process began.

    That process may have ended after it wrote the report and before it wrote the Event.  While the
    report is young the Event is written again: its name is the same, so the API does not keep it
    twice.
    """
    return entry.report.age_ns < REPEAT_EVENTS_NS


def _is_written_once(event: object) -> bool:
    return isinstance(event, PendingEvent) and event.reason.once


def _continued(entry: ReportEntry, orphans: Sequence[ReportEntry]) -> ReportEntry | None:
    """Return the orphan of its node that the finding of ``entry`` continues, if there is one.

    One of the same cause comes first.  Two different causes are two findings.
    """
    fitting = [other for other in orphans if _continues(entry, other)]
    cause = _cause(entry)
    same = [other for other in fitting if _cause(other) == cause]
    unknown = [other for other in fitting if not cause or not _cause(other)]
    return next(iter([*same, *unknown]), None)


def _continues(entry: ReportEntry, other: ReportEntry) -> bool:
    """Whether ``other``, an orphan of its node, is about the subsystem of ``entry``."""
    mine, theirs = entry.report, other.report
    if other is entry or not (mine.anomaly and theirs.anomaly and theirs.open):
        return False
    touched = {mine.finding.subsystem, *mine.finding.subsystems}
    return mine.cross_node == theirs.cross_node and theirs.finding.subsystem in touched


def _cause(entry: ReportEntry) -> str:
    known = entry.report.finding.hypothesis
    return known.name if known else ""
