"""The reports that an analyzer knows, and how findings become them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from reveal_analyzer.sinks.kube import event_policy
from reveal_analyzer.sinks.kube.entry import PendingEvent, ReportEntry
from reveal_contract.finding import Finding
from reveal_contract.kube.anomaly_report import EACH_SECOND, Report, WindowLengths, report
from reveal_contract.settings import AnalyzerSettings
from reveal_contract.time_units import NS_PER_SECOND

MAX_ENTRIES = 10_000
_MOST_FORMER = 1_000


class Entries:
    """Entries by the names of their reports and by the ids of their findings.

    ``counts`` has the reports that were dropped at the limit, or summarized.
    """

    def __init__(self, settings: AnalyzerSettings) -> None:
        self.counts: Counter[str] = Counter()
        self._profile, self._lengths = settings.profile, _lengths(settings)
        self._with_events, self._price = settings.events, settings.gpu_hour_price
        self._entries: dict[str, ReportEntry] = {}
        self._names: dict[str, str] = {}  # of reports, by the ids of findings
        self._former: dict[str, str] = {}  # the same of entries that were dropped

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[ReportEntry]:
        return iter(list(self._entries.values()))

    def by_name(self, name: str) -> ReportEntry | None:
        """Return the entry of a report."""
        return self._entries.get(name)

    def of_finding(self, finding_id: str) -> ReportEntry | None:
        """Return the entry of a finding."""
        return self._entries.get(self._names.get(finding_id, ""))

    def name_of(self, finding_id: str) -> str:
        """Return the name of the report of a finding, also of one that is over; "" if unknown."""
        return self._names.get(finding_id) or self._former.get(finding_id, "")

    def add(self, entry: ReportEntry) -> bool:
        """Add an entry; False where there are too many already."""
        if len(self._entries) >= MAX_ENTRIES:
            self.counts["dropped"] += 1
            return False
        self._entries[entry.report.name] = entry
        self._names[entry.finding_id] = entry.report.name
        return True

    def drop(self, entry: ReportEntry) -> None:
        """Forget an entry; another one of the same name stays."""
        name = entry.report.name
        if self._entries.get(name) is entry:
            del self._entries[name]
        if self._names.get(entry.finding_id) == name:
            self._former[entry.finding_id] = self._names.pop(entry.finding_id)
            if len(self._former) > _MOST_FORMER:
                del self._former[next(iter(self._former))]

    def report_of(self, finding: Finding, name: str = "") -> Report:
        """Return the report of a finding; its generation is known when it is written.

        ``name`` is that of a report that it continues.
        """
        if finding.cost is not None:
            finding = replace(finding, cost=replace(finding.cost, price=self._price))
        own = report(finding, self._profile, 0, self._lengths)
        return replace(own, name=name) if name else own

    def refresh(self, entry: ReportEntry, now_s: float) -> None:
        """Move the report's last observation to now, by the clock of its node.

        That clock may be set otherwise than that of this process: it is its last known time, and
        what has passed since.
        """
        last = entry.updated_s if entry.refreshed_s is None else entry.refreshed_s
        if last is None:
            return
        passed_ns = round((now_s - last) * NS_PER_SECOND)
        observed_ns = entry.report.finding.last_observed_ns + passed_ns
        entry.report = entry.report.refreshed(observed_ns, self._lengths)
        entry.refreshed_s = now_s

    def add_events(self, entry: ReportEntry, events: Sequence[PendingEvent]) -> None:
        """Queue Events behind the report, where the profile wants Events."""
        if self._with_events:
            entry.events += events

    def announce(self, entry: ReportEntry, finding: Finding) -> None:
        """Queue the Events of a finding that is reported for the first time."""
        self.add_events(entry, event_policy.opened(finding))
        entry.pod_notified = event_policy.culprit(finding) is not None

    def remind(self, entry: ReportEntry, now_ns: int) -> None:
        """Queue the Events of a finding that reached the age of its next reminder."""
        age_ns = now_ns - entry.report.identity.first_observed_ns
        done, entry.reminders = entry.reminders, event_policy.reminders(age_ns)
        # Before the first look another analyzer may have reminded: no reminder is sent twice.
        if done is not None and entry.reminders > done:
            self.add_events(entry, event_policy.reminder(entry.report.finding, age_ns, now_ns))

    def notify_pod(self, entry: ReportEntry, finding: Finding) -> None:
        """Queue the Event of a pod that became known only after the opening; one pod gets one."""
        if entry.pod_notified or not entry.report.open:
            return
        events = event_policy.of_culprit(finding)
        entry.pod_notified = bool(events)
        self.add_events(entry, events)


def _lengths(settings: AnalyzerSettings) -> WindowLengths:
    """Return what is judged: each second, or the windows of the paper's detectors."""
    if settings.mode != "paper":
        return EACH_SECOND
    return WindowLengths(settings.window_seconds, settings.stride_seconds)
