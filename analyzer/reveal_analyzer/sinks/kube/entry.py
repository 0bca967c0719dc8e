"""One report on its way to the API: what is wanted, what the API has, what Events are to follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from reveal_contract.finding import Severity
from reveal_contract.kube.anomaly_report import Report
from reveal_contract.kube.events import REASONS, Posting, Reason
from reveal_contract.kube.report_parser import has_status, parse_report

_BY_NAME = {reason.name: reason for reason in REASONS}


class Admission(Enum):
    """Whether a report may be written."""

    WAITING = auto()  # not known yet
    ADMITTED = auto()
    SUMMED = auto()  # one of too many: told by the summary


@dataclass(frozen=True, slots=True)
class Said:
    """An Event that is to follow the report; ``pod`` is (namespace, name, uid), or the node's."""

    reason: Reason
    note: str
    at_ns: int
    pod: tuple[str, str, str] | None = None

    def to_row(self) -> dict[str, Any]:
        return {"reason": self.reason.name, "note": self.note, "at": self.at_ns, "pod": self.pod}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Said:
        """Raises ``KeyError``, ``TypeError`` or ``ValueError`` for what is none."""
        pod = row["pod"]
        if pod is not None:
            namespace, name, uid = map(str, pod)
            pod = namespace, name, uid
        return cls(_BY_NAME[row["reason"]], str(row["note"]), int(row["at"]), pod)


@dataclass
class Entry:
    """A report and its way.  Times are monotonic seconds.

    ``told`` is the core of what the API has, None where it has none; ``labels`` those there.
    ``changed_s`` is when the finding behind it was heard of last: None for a report that was
    found in the API.  ``followed``: who found it still sees it, or not; ``unheld_s`` is since when
    nobody does.  ``fresh``: it opened here.  ``worst`` is the highest severity it ever had.
    ``blamed``: a pod was told of it, or may have been by another analyzer.
    After ``tries`` that the API answered with an error of its own the next is at ``again_s``.
    """

    finding: str
    report: Report
    worst: Severity
    admission: Admission = Admission.WAITING
    changed_s: float | None = None
    followed: bool = False
    unheld_s: float | None = None
    fresh: bool = False
    blamed: bool = False
    told: tuple[str, ...] | None = None
    told_s: float = 0.0
    tries: int = 0
    again_s: float = 0.0
    labels: dict[str, str] = field(default_factory=dict)
    events: list[Said | Posting] = field(default_factory=list)

    @property
    def dirty(self) -> bool:
        """Whether there is something to write at once."""
        return self.told != self.report.core or bool(self.events)

    @property
    def high(self) -> bool:
        """Whether it is for a person to look at now."""
        severe = self.report.severity.rank >= Severity.HIGH.rank
        return self.report.open and self.report.anomaly and severe

    def to_row(self) -> dict[str, Any]:
        """What a restart needs to deliver it."""
        return {
            "finding": self.finding,
            "name": self.report.name,
            "spec": self.report.spec,
            "status": self.report.status,
            "events": [_event_row(event) for event in self.events],
        }

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> Entry:
        """Raises ``KeyError``, ``TypeError`` or ``ValueError`` for what is none."""
        whole = {
            "metadata": {"name": str(row["name"])},
            "spec": row["spec"],
            "status": row["status"],
        }
        report = parse_report(whole)
        if report is None or not has_status(whole):
            raise ValueError("not a whole report")
        events = [_event(event) for event in row["events"]]
        return cls(
            str(row["finding"]), report, report.severity, fresh=True, blamed=True, events=events
        )


def _event_row(event: Said | Posting) -> dict[str, Any]:
    return event.to_row() if isinstance(event, Said) else {"body": event.body}


def _event(row: Mapping[str, Any]) -> Said | Posting:
    if "body" not in row:
        return Said.from_row(row)
    metadata = row["body"]["metadata"]
    return Posting(str(metadata["namespace"]), str(metadata["name"]), dict(row["body"]))
