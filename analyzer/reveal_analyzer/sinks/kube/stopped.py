"""Resolves the open reports of a profile whose analyzers no longer write reports."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reveal_analyzer.sinks.kube import event_policy
from reveal_analyzer.sinks.kube.api import Object, SinkApi
from reveal_analyzer.sinks.kube.delivery import Delivery
from reveal_analyzer.sinks.kube.entry import ReportEntry
from reveal_analyzer.sinks.kube.report_store import ListedReport
from reveal_contract.finding import Resolution
from reveal_contract.kube.anomaly_report import ReportOwner

_STOPPED = (
    "reporting was switched off (mode Observe) while it was open; whether it lasts is unknown"
)


class StoppedReports:
    """Writes by ``delivery``; ``with_events``: the profile wants Events."""

    def __init__(self, api: SinkApi, delivery: Delivery, *, with_events: bool) -> None:
        self._api, self._delivery, self._with_events = api, delivery, with_events

    def resolve_all(self, owner: ReportOwner, now_s: float, now_ns: int) -> Iterator[str]:
        """Resolve all open reports of the profile; yield the node of each.  Raises ``ApiError``."""
        for entry in self._entries(self._api.open_reports(owner.name), now_ns):
            self._delivery.deliver(entry, owner, now_s, now_ns)
            yield entry.report.node

    def _entries(self, found: Iterable[Object], now_ns: int) -> Iterator[ReportEntry]:
        for item in found:
            if (listed := ListedReport.parse(item)) is not None:
                yield self._resolved(listed, now_ns)

    def _resolved(self, listed: ListedReport, now_ns: int) -> ReportEntry:
        entry = listed.entry()
        if entry.report.open:
            entry.report = entry.report.resolved(_STOPPED, now_ns, Resolution.STOPPED)
            if entry.report.anomaly and self._with_events:
                event = event_policy.resolved(Resolution.STOPPED, _STOPPED, now_ns)
                entry.events.append(event)
        return entry
