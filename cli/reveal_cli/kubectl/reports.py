"""AnomalyReports as typed values.

Whoever may create a pod or a cgroup chooses its name, so texts of a report are made printable when
it is read: an escape sequence or a change of the writing direction must not reach the terminal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from typing import Any, TypeVar, cast

from reveal_contract.finding import Finding
from reveal_contract.foreign_names import printable
from reveal_contract.kube.anomaly_report import Report
from reveal_contract.kube.report_parser import parse_report
from reveal_contract.kube.silence import Silence, silence_of

T = TypeVar("T")


@dataclass(frozen=True)
class ClusterReport:
    """A report that a cluster has; ``silence`` may be over, ``source`` is the object itself."""

    report: Report
    silence: Silence | None
    source: Mapping[str, Any]

    @classmethod
    def parse(cls, found: Mapping[str, Any]) -> ClusterReport | None:
        """Read an object of the API; None for one that this version cannot read."""
        report = parse_report(found)
        if report is None:
            return None
        return cls(_inert(report), _inert(silence_of(found)), found)

    @property
    def name(self) -> str:
        """The name of the report."""
        return self.report.name

    @property
    def finding(self) -> Finding:
        """The finding that the report is about."""
        return self.report.finding

    def active_silence(self, now_ns: int) -> Silence | None:
        """Return the silence that is active at a time."""
        silence = self.silence
        return silence if silence is not None and silence.is_active(now_ns) else None


@dataclass(frozen=True)
class ReportList:
    """The reports of a cluster, and how many of it this version cannot read."""

    reports: tuple[ClusterReport, ...]
    unreadable: int = 0

    @classmethod
    def of(cls, items: Iterable[Mapping[str, Any]]) -> ReportList:
        """Read the items of a list."""
        parsed = [ClusterReport.parse(item) for item in items]
        readable = tuple(each for each in parsed if each is not None)
        return cls(readable, len(parsed) - len(readable))


def _inert(value: T) -> T:
    """Return a value whose texts, at any depth, can be printed on one line."""
    result: object = value
    if isinstance(value, str) and not isinstance(value, Enum):
        result = printable(value)
    elif isinstance(value, tuple):
        result = tuple(map(_inert, value))
    elif is_dataclass(value) and not isinstance(value, type):
        parts = {spec.name: _inert(getattr(value, spec.name)) for spec in fields(value)}
        result = replace(value, **parts)
    return cast(T, result)
