"""The report store of the Kubernetes sink with a clock; reports that are due are delivered."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from reveal_analyzer.sinks.kube.entry import PendingEvent
from reveal_analyzer.sinks.kube.report_store import ListedReport, ReportStore
from reveal_analyzer.telemetry.snapshot import NodeSnapshot, Snapshot
from reveal_contract.finding import FindingUpdate, Severity
from reveal_contract.kube.anomaly_report import Report
from reveal_contract.names import SHARDS
from reveal_contract.settings import AnalyzerSettings
from support.finding_factory import SECOND, START_NS, opened

ALL = frozenset(range(SHARDS))


class StoreHarness:
    """A report store with a clock.

    ``written`` has the reports that were delivered, ``reasons`` those of their Events, ``notified``
    the names of the pods that had an Event.  Without ``listed`` the API has not been listed yet.
    """

    def __init__(self, listed: bool = True, **settings: Any) -> None:
        self.store = ReportStore(AnalyzerSettings(profile="p", publish="kubernetes", **settings))
        self.now = 1000.0
        self.written: list[Report] = []
        self.reasons: list[str] = []
        self.notified: list[str] = []
        if listed:
            self.list()

    @property
    def now_ns(self) -> int:
        return START_NS + int(self.now * SECOND)

    def list(self, *found: Report) -> None:
        """List the API, which has these open reports."""
        listed = [ListedReport(report, report.labels(), True) for report in found]
        self.store.set_listed(listed, self.now)

    def update(self, *updates: FindingUpdate) -> None:
        for update in updates:
            self.store.update(update, self.now)

    def snapshot(self, nodes: Iterable[str] = ("n1",), **other: Any) -> Snapshot:
        """Return a snapshot of an analyzer that owns every shard."""
        snapshots = {name: NodeSnapshot(self.now, 0.0) for name in nodes}
        given: dict[str, Any] = {"connected": True, "shards": ALL, "nodes": snapshots, **other}
        return Snapshot(time_s=self.now, **given)

    def observe(self, snapshot: Snapshot | None = None) -> None:
        self.store.observe(snapshot or self.snapshot(), self.now_ns)

    def deliver(self) -> list[Report]:
        """Deliver what is due and return it."""
        self.store.admit(self.now, self.now_ns)
        due = self.store.due(self.now, self.now_ns)
        for entry in due:
            events = [event for event in entry.events if isinstance(event, PendingEvent)]
            self.reasons += [event.reason.name for event in events]
            self.notified += [event.pod[1] for event in events if event.pod]
            entry.events.clear()
            self.store.delivered(entry, entry.report, self.now)
        reports = [entry.report for entry in due]
        self.written += reports
        return reports

    def run(self, seconds: int, step: int = 5, **snapshot: Any) -> None:
        """Let time pass: observe and deliver every ``step`` seconds."""
        for _ in range(0, seconds, step):
            self.now += step
            self.observe(self.snapshot(**snapshot))
            self.deliver()

    def states(self) -> list[tuple[str, str]]:
        return [(report.name, report.finding.state.value) for report in self.written]


def flood(harness: StoreHarness, number: int, severity: Severity = Severity.LOW) -> None:
    """Open so many findings on nine nodes."""
    harness.update(
        *(opened(f"cpu-{n}", node_name=f"n{n % 9}", severity=severity) for n in range(number))
    )
