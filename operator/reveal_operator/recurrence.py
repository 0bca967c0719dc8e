"""Causes that return on a node: several findings of one cause, among the reports that are kept.

Each of them may be short and over before somebody looks.  Together they say that a node, a link or
a job has a defect that nobody repaired.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from reveal_operator.report_records import ReportRecord

LEAST_FINDINGS = 5  # of one cause on one node


class Recurrence(NamedTuple):
    """Findings of one cause on one node, the first of them at ``since`` (RFC 3339)."""

    node: str
    cause: str
    findings: int
    since: str


def recurrences(reports: Iterable[ReportRecord]) -> tuple[Recurrence, ...]:
    """Return the causes that returned, those with most findings first.

    Settings that are wrong do not return, and of the summary report no node is known.
    """
    onsets: dict[tuple[str, str], list[str]] = defaultdict(list)
    for report in reports:
        if report.cause and report.node:
            onsets[report.node, report.cause].append(report.onset)
    found = (
        Recurrence(node, cause, len(times), min(times))
        for (node, cause), times in onsets.items()
        if len(times) >= LEAST_FINDINGS
    )
    return tuple(sorted(found, key=lambda each: (-each.findings, each.node, each.cause)))
