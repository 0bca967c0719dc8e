"""The table of findings as people read it: pure functions from findings to lines."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from reveal_analyzer.formatting import human
from reveal_cli.options import clock
from reveal_contract import catalogue
from reveal_contract.finding import Evidence, Finding
from reveal_contract.metric import Kind

MIN_WIDTH, MAX_WIDTH = 80, 120
_GAP = 2
# claim, subject and evidence share what the narrow columns leave, in these parts
_SHARES = (5, 3, 4)
_EVIDENCE_SHOWN = 3


@dataclass(frozen=True, slots=True)
class _Column:
    title: str
    width: int


def findings_table(findings: Sequence[Finding], width: int = MAX_WIDTH) -> list[str]:
    """One block of lines a finding, none wider than ``width`` (held within 80 to 120)."""
    columns = _columns(max(MIN_WIDTH, min(width, MAX_WIDTH)))
    lines = [_line(columns, [column.title for column in columns])]
    lines.append(_line(columns, ["-" * column.width for column in columns]))
    dated = len({_local(finding.first_seen_ns).date() for finding in findings}) > 1
    for finding in findings:
        cells = [
            textwrap.wrap(cell, column.width) or [""]
            for cell, column in zip(_cells(finding, dated), columns, strict=True)
        ]
        cells[-1] = [
            line
            for evidence in finding.evidence[:_EVIDENCE_SHOWN]
            for line in textwrap.wrap(evidence_text(evidence), columns[-1].width)
        ]
        for row in range(max(len(cell) for cell in cells)):
            lines.append(_line(columns, [cell[row] if row < len(cell) else "" for cell in cells]))
    return lines


def advice(findings: Sequence[Finding]) -> list[str]:
    """What to do about the hypotheses named, each said once."""
    said = {}
    for finding in findings:
        if finding.hypothesis is not None and finding.hypothesis.remediation:
            said[finding.hypothesis.name] = finding.hypothesis.remediation
    return [f"{name}: {remedy}" for name, remedy in said.items()]


def evidence_text(evidence: Evidence) -> str:
    """A metric with its value beside the usual one: ``cpu.pressure.some 93 % (usual 5 %)``."""
    where = f"{{{evidence.instance}}}" if evidence.instance else ""
    usual = f" (usual {_amount(evidence.baseline, evidence)})" if evidence.baseline else ""
    return f"{evidence.metric}{where} {_amount(evidence.value, evidence)}{usual}"


def _amount(number: str, evidence: Evidence) -> str:
    """A decimal string as people read it; as it stands where it is no plain amount."""
    try:
        row = catalogue.find(evidence.metric)
        # a ratio of times is shown as the share it is, like the counters it is made of
        kind = row.kind if row.kind is Kind.GAUGE else Kind.COUNTER
        return human(float(number), row.unit, kind)
    except (catalogue.UnknownMetricError, ValueError):
        return f"{number} {evidence.unit}".rstrip()


def subject_text(finding: Finding) -> str:
    """The subject at fault, or "-" where none was found to be."""
    if finding.pods:
        return f"{finding.pods[0].namespace}/{finding.pods[0].name}"
    return finding.subjects[0].name if finding.subjects else "-"


def claim_text(finding: Finding) -> str:
    """The claim with the subject, where it does not name it already."""
    who = subject_text(finding)
    return finding.claim if who == "-" or who in finding.claim else f"{finding.claim} ({who})"


def local_time(ns: int) -> str:
    """The time of day on this machine."""
    return f"{_local(ns):%H:%M:%S}"


def _local(ns: int) -> datetime:
    return datetime.fromtimestamp(ns // 1_000_000_000).astimezone()


def _cells(finding: Finding, dated: bool) -> list[str]:
    """``dated`` tells the day too, where findings are of several."""
    seconds = (finding.last_seen_ns - finding.first_seen_ns) / 1e9
    day = f"{_local(finding.first_seen_ns):%d %b} " if dated else ""
    return [
        f"{day}{local_time(finding.first_seen_ns)} for {clock(max(1.0, seconds))}",
        finding.subsystem.value,
        finding.severity.value,
        finding.state.value,
        _claim(finding),
        subject_text(finding),
        "",
    ]


def _claim(finding: Finding) -> str:
    """The claim, and what it cost the job that lost most, where it does not say so itself."""
    impact = finding.impact
    if impact is None or finding.claim.startswith(f"Steps of {impact.subject} "):
        return finding.claim
    return (
        f"{finding.claim}; steps of {impact.subject} take {impact.slowdown_percent:.1f} % longer"
        f" ({impact.low_percent:.1f} to {impact.high_percent:.1f})"
    )


def _columns(width: int) -> list[_Column]:
    narrow = [_Column("TIME", 8), _Column("SUBSYSTEM", 9), _Column("SEVERITY", 8)]
    narrow.append(_Column("STATE", 8))
    rest = width - sum(column.width + _GAP for column in narrow) - 2 * _GAP
    parts = [rest * share // sum(_SHARES) for share in _SHARES]
    parts[0] += rest - sum(parts)
    wide = [
        _Column(title, part)
        for title, part in zip(("CLAIM", "SUBJECT", "EVIDENCE"), parts, strict=True)
    ]
    return narrow + wide


def _line(columns: Sequence[_Column], cells: Sequence[str]) -> str:
    padded = (cell.ljust(column.width + _GAP) for column, cell in zip(columns, cells, strict=True))
    return "".join(padded).rstrip()
