"""All reports an analyzer speaks for: what the API should have, what it has, what is due.

No I/O and no clock: ``now_s`` is monotonic, ``now_ns`` since the epoch.  A report is written when
its state, severity, subsystem, cause or pods change, else every five minutes while it is open.
``ReportStore`` takes updates of findings, lists of the API and results of writes; its parts decide:

- ``entries``: the reports by name and finding
- ``observation``: whether the findings behind them are still observed
- ``admission``: which are written and which adopt an orphaned report
- ``summary``: the one report for those over the limit
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reveal_analyzer.sinks.kube import event_policy
from reveal_analyzer.sinks.kube.admission import (
    AdmissionControl,
    continue_report,
    may_lack_opening_event,
)
from reveal_analyzer.sinks.kube.entries import MAX_ENTRIES, Entries
from reveal_analyzer.sinks.kube.entry import Admission, Observation, ReportEntry
from reveal_analyzer.sinks.kube.observation import ObservationTracker
from reveal_analyzer.sinks.kube.summary import Summary
from reveal_analyzer.telemetry.snapshot import Snapshot
from reveal_contract.finding import Finding, FindingChange, FindingUpdate, Severity, State
from reveal_contract.kube.anomaly_report import Report
from reveal_contract.kube.report_parser import parse_report
from reveal_contract.kube.silence import Silence, silence_of
from reveal_contract.settings import AnalyzerSettings

REFRESH_S = 300.0
REFRESH_CONFIGURATION_S = 3600.0  # a configuration stays as it is for months
REFRESH_SUMMARY_S = 60.0


@dataclass(frozen=True)
class ListedReport:
    """A report as the API has it; ``consistent`` where its status and its labels agree."""

    report: Report
    labels: Mapping[str, str]
    consistent: bool
    silence: Silence | None = None

    @classmethod
    def parse(cls, found: Mapping[str, Any]) -> ListedReport | None:
        """Read an object of the API; None for one that is no report of this version."""
        report = parse_report(found)
        if report is None:
            return None
        labels = dict(found["metadata"].get("labels") or {})
        agree = all(labels.get(key) == value for key, value in report.labels().items())
        return cls(report, labels, agree and bool(found.get("status")), silence_of(found))

    def entry(self, now_s: float = 0.0) -> ReportEntry:
        """Return it as an entry that the API has, and that nobody observes yet."""
        return ReportEntry(
            self.report.identity.finding_id,
            self.report,
            self.report.severity,
            Admission.ADMITTED,
            pod_notified=True,
            written_core=self.report.core if self.consistent else (),
            written_s=now_s,
            written_labels=dict(self.labels),
            silence=self.silence,
        )


class ReportStore:
    """Not for several threads at once."""

    def __init__(self, settings: AnalyzerSettings) -> None:
        self._entries = Entries(settings)
        self._summary = Summary(self._entries, settings.reports_per_minute)
        self._admission = AdmissionControl(
            self._entries, self._summary, settings.reports_per_minute
        )
        self._observation = ObservationTracker(self._entries)
        self._min_rank = Severity(settings.min_severity).rank
        # findings too mild for a new report, until it is known whether the API has one
        self._mild: dict[str, Finding] = {}
        self._verified: deque[Report] = deque(maxlen=MAX_ENTRIES)
        self._listed = False

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[ReportEntry]:
        return iter(self._entries)

    @property
    def counts(self) -> Counter[str]:
        """Reports that were dropped at the limit, or summarized."""
        return self._entries.counts

    def update(self, update: FindingUpdate, now_s: float) -> None:
        """Take an update of a finding."""
        finding = update.finding
        if update.change is FindingChange.SUSPECTED:
            return
        if update.change is FindingChange.VERIFIED:
            self._verified.append(
                self._entries.report_of(finding, self._entries.name_of(finding.id))
            )
            return
        entry = self._entries.of_finding(finding.id)
        if entry is None:
            self._add_finding(finding, now_s)
            return
        events = event_policy.changed(finding, entry.max_severity, was_open=entry.report.open)
        grew = finding.severity.rank > entry.max_severity.rank
        was_listed_only = entry.updated_s is None and not entry.opened_here
        entry.report = self._entries.report_of(finding).continuing(entry.report)
        entry.updated_s, entry.refreshed_s = now_s, None
        entry.observe(Observation.ACTIVE)
        entry.raise_max_severity(finding.severity)
        if entry.admission is not Admission.SUMMARIZED:
            if was_listed_only and entry.report.open and may_lack_opening_event(entry):
                self._entries.announce(entry, finding)
            self._entries.add_events(entry, events)
            self._entries.notify_pod(entry, finding)
        elif grew and entry.urgent:
            # It is too severe for the summary now: report it individually, as if it just opened.
            entry.admission = Admission.WAITING
            entry.events.clear()
            self._entries.announce(entry, finding)

    def restore(self, entries: Iterable[ReportEntry]) -> None:
        """Take what an earlier run could not deliver."""
        for entry in entries:
            self._entries.add(entry)

    def set_listed(self, found: Iterable[ListedReport], now_s: float) -> None:
        """Take all reports that the API has as open."""
        by_name = {listed.report.name: listed for listed in found}
        for entry in self._entries:
            gone = entry.report.name not in by_name
            if gone and entry.written_core is not None and entry.report.open:
                # Somebody deleted it, or resolved it.  It is written again while its finding is
                # observed here, else forgotten.
                entry.written_core = None
                if entry.adoptable:
                    self._entries.drop(entry)
        for name, listed in by_name.items():
            self._take_listed(self._entries.by_name(name), listed, now_s)
        self._listed = True
        for finding in [*self._mild.values()]:
            # An open report stays open although its finding is milder than ``minSeverity`` by now.
            self.update(FindingUpdate(FindingChange.CHANGED, finding), now_s)

    def forget_listed(self) -> None:
        """Decide nothing before the API is listed again: others may have written meanwhile."""
        self._listed = False

    def observe(self, snapshot: Snapshot, now_ns: int) -> None:
        """Take what the analyzer watches now; resolve reports without a finding."""
        self._observation.update(snapshot, self._summary.name, now_ns)

    def admit(self, now_s: float, now_ns: int) -> None:
        """Decide which reports are written and which lasting ones are repeated.

        Nothing is decided before the API is listed.
        """
        if not self._listed:
            return
        self._admission.decide(now_s, now_ns)
        for entry in self._entries:
            if self._is_observed(entry) and entry.report.anomaly:
                self._entries.remind(entry, now_ns)

    def due(self, now_s: float, now_ns: int) -> list[ReportEntry]:
        """Return what is to be written now, the most severe first."""
        if not self._listed:
            return []
        found = []
        for entry in self._entries:
            if entry.admission is not Admission.ADMITTED or now_s < entry.retry_s:
                continue
            if not entry.dirty:
                if not self._is_stale(entry, now_s):
                    continue
                self._entries.refresh(entry, now_s)
            found.append(entry)
        return sorted(found, key=lambda entry: -entry.report.severity.rank)

    def delivered(self, entry: ReportEntry, written: Report, now_s: float) -> None:
        """Note what the API has now; the finding may have moved on meanwhile."""
        entry.written_core, entry.written_s, entry.attempts = written.core, now_s, 0
        if not entry.report.open and not entry.dirty:
            self._entries.drop(entry)

    def pop_verified(self) -> list[Report]:
        """Return the reports with changes whose effect became known since the last call."""
        found = list(self._verified)
        self._verified.clear()
        return found

    def drop_invalid(self, entry: ReportEntry) -> None:
        """Forget a report that the API will never accept."""
        self._entries.drop(entry)

    def pending(self) -> list[ReportEntry]:
        """Return what has not been delivered."""
        return [entry for entry in self._entries if entry.pending]

    def set_silences(self, silences: Mapping[str, Silence | None]) -> None:
        """Take the silences of reports, by name; a report that is not among them keeps its own."""
        for name, silence in silences.items():
            if (entry := self._entries.by_name(name)) is not None:
                entry.silence = silence

    @property
    def has_urgent(self) -> bool:
        """Whether the API has an open report that a person should look at, silenced or not."""
        return any(entry.written_urgent for entry in self._entries)

    def urgent_by_node(self, now_ns: int) -> dict[str, frozenset[str]]:
        """Return, by node, what the API has as open that a person should look at now."""
        found: dict[str, set[str]] = {}
        for entry in self._entries:
            if (urgent := entry.written_urgent) and not entry.is_silenced(now_ns):
                found.setdefault(entry.report.node, set()).add(f"{entry.report.name} {urgent}")
        return {node: frozenset(reports) for node, reports in found.items()}

    def _add_finding(self, finding: Finding, now_s: float) -> None:
        is_open = finding.state is State.OPEN
        self._mild.pop(finding.id, None)
        if is_open and finding.severity.rank < self._min_rank:
            if not self._listed:
                self._mild[finding.id] = finding
            return
        report = self._entries.report_of(finding)
        entry = ReportEntry(finding.id, report, finding.severity, updated_s=now_s)
        if is_open:
            entry.observe(Observation.ACTIVE)
            entry.opened_here = True
        if self._entries.add(entry) and is_open:
            self._entries.announce(entry, finding)

    def _take_listed(self, entry: ReportEntry | None, listed: ListedReport, now_s: float) -> None:
        if entry is not None and entry.written_core is not None:
            entry.silence = listed.silence
            return  # written by this process: what it knows is newer than the list
        found = listed.entry(now_s)
        if entry is None:
            self._entries.add(found)
        else:
            continue_report(entry, found)

    def _is_observed(self, entry: ReportEntry) -> bool:
        """Whether it is written, open, and observed by this analyzer."""
        admitted = entry.admission is Admission.ADMITTED
        return admitted and entry.report.open and entry.observation is Observation.ACTIVE

    def _is_stale(self, entry: ReportEntry, now_s: float) -> bool:
        """Whether the API must hear again that the finding goes on."""
        if not self._is_observed(entry):
            return False
        if entry.report.name == self._summary.name:
            limit = REFRESH_SUMMARY_S
        else:
            limit = REFRESH_S if entry.report.anomaly else REFRESH_CONFIGURATION_S
        return now_s - entry.written_s >= limit
