"""The summary: one report for all findings over the limit of new reports.

It is a report like others, of the node of the worst of them, with the cause ``TooManyFindings``.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence

from reveal_analyzer.sinks.kube.entries import Entries
from reveal_analyzer.sinks.kube.entry import Admission, Observation, PendingEvent, ReportEntry
from reveal_contract.finding import Finding, Hypothesis, Resolution, Severity, State
from reveal_contract.kube import events
from reveal_contract.kube.anomaly_report import Report

CAUSE = "TooManyFindings"
_MAX_NODES = 10  # that its notes name
_ALL_REPORTED = "all of them are resolved, or reported individually"


class Summary:
    """The open summary of an analyzer; at most one at a time."""

    def __init__(self, entries: Entries, limit: int) -> None:
        self.name = ""  # of its report, "" while there is none
        self._first_ns = 0
        self._entries, self._limit = entries, limit

    def update(self, summarized: Sequence[Report], now_s: float, now_ns: int) -> None:
        """Write a summary of these open reports; resolve it where there are none."""
        entry = self._entries.by_name(self.name)
        if summarized:
            self._write(summarized, entry, now_s, now_ns)
        elif entry is not None:
            entry.report = entry.report.resolved(_ALL_REPORTED, now_ns, Resolution.ENDED)
            event = PendingEvent(events.ANOMALY_RESOLVED, _ALL_REPORTED, now_ns)
            self._entries.add_events(entry, [event])
            self.name = ""

    def _write(
        self, summarized: Sequence[Report], entry: ReportEntry | None, now_s: float, now_ns: int
    ) -> None:
        first_ns = self._first_ns if entry else now_ns
        finding = summary_finding(summarized, self._limit, first_ns, now_ns)
        report = self._entries.report_of(finding)
        if entry is not None:
            entry.report = report.continuing(entry.report)
            return
        entry = ReportEntry(
            finding.id,
            report,
            finding.severity,
            Admission.ADMITTED,
            Observation.ACTIVE,
            updated_s=now_s,
        )
        if self._entries.add(entry):
            self.name, self._first_ns = report.name, now_ns
            self._entries.announce(entry, finding)


def summary_finding(
    summarized: Sequence[Report], limit: int, first_ns: int, now_ns: int
) -> Finding:
    """Return one finding for these open reports; at least one is needed."""
    worst = max(summarized, key=lambda report: report.severity.rank)
    nodes = Counter(report.node for report in summarized)
    return Finding(
        id=_identity(worst.name, first_ns),
        node_name=worst.node,
        subsystem=worst.finding.subsystem,
        subsystems=tuple(sorted({report.finding.subsystem for report in summarized})),
        severity=worst.severity,
        state=State.OPEN,
        first_observed_ns=first_ns,
        last_observed_ns=now_ns,
        claim=_claim(summarized, nodes, limit, worst),
        hypothesis=Hypothesis(
            CAUSE,
            100,
            "look for what these nodes have in common; reporting.reportsPerMinute and"
            " minSeverity of the profile limit how many are reported individually",
        ),
        notes=tuple(f"{count} on {node}" for node, count in nodes.most_common(_MAX_NODES)),
        score_percent=100,
        confidence_percent=100,
    )


def _identity(name: str, first_ns: int) -> str:
    digest = hashlib.blake2b(f"{name}\0{first_ns}".encode(), digest_size=5)
    return f"overflow-{digest.hexdigest()}"


def _claim(summarized: Sequence[Report], nodes: Counter[str], limit: int, worst: Report) -> str:
    severities = Counter(report.severity for report in summarized)
    by_severity = ", ".join(f"{severities[s]} {s}" for s in reversed(Severity) if severities[s])
    count = f"{_count(len(summarized), 'more finding')} on {_count(len(nodes), 'node')}"
    over = f"over the limit of {limit} new reports a minute"
    return f"{count}, {over} ({by_severity}); the worst on {worst.node}: {worst.finding.claim}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
