"""One report on its way to the API: its desired state, its written state, its pending Events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from reveal_contract.finding import Severity, State
from reveal_contract.kube.anomaly_report import Report
from reveal_contract.kube.events import REASONS, EventReason, Posting
from reveal_contract.kube.report_parser import has_status, parse_report
from reveal_contract.kube.silence import Silence

_BY_NAME = {reason.name: reason for reason in REASONS}


class Admission(Enum):
    """Whether a report may be written."""

    WAITING = auto()  # not decided: the reports of the API are not listed yet
    ADMITTED = auto()
    SUMMARIZED = auto()  # over the limit of new reports: part of the summary report


class Observation(Enum):
    """Whether an analyzer observes the finding behind a report."""

    UNKNOWN = auto()  # not decided yet, or another analyzer decides
    ACTIVE = auto()  # this analyzer observes it
    PAUSED = auto()  # this analyzer observed it last, and Redis is disconnected
    ORPHANED = auto()  # nobody observes it


@dataclass(frozen=True, slots=True)
class PendingEvent:
    """An Event to write after the report, on the pod (namespace, name, uid) or on the node."""

    reason: EventReason
    note: str
    time_ns: int
    pod: tuple[str, str, str] | None = None

    def to_row(self) -> dict[str, Any]:
        """Return the row of the spool."""
        return {"reason": self.reason.name, "note": self.note, "at": self.time_ns, "pod": self.pod}

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> PendingEvent:
        """Read a row; raises ``KeyError``, ``TypeError`` or ``ValueError``."""
        pod = row["pod"]
        if pod is not None:
            namespace, name, uid = map(str, pod)
            pod = namespace, name, uid
        return cls(_BY_NAME[row["reason"]], str(row["note"]), int(row["at"]), pod)


@dataclass
class ReportEntry:
    """A report and the state of its delivery.  Times are monotonic seconds.

    ``updated_s`` is the time of the last update of the finding, None for a report that was found
    in the API.  ``orphaned_since_s`` is set while the observation is ORPHANED.  ``max_severity``
    is the highest that the finding ever had.  ``opened_here``: its finding opened in this process.
    ``pod_notified``: a pod has an Event, or may have one by another analyzer.  ``reminders`` counts
    the ages whose reminder is due or done, None before the first look at it.  ``written_core`` is
    the core of what the API has, None where it has no report; ``written_labels`` are the labels
    there, ``silence`` is the silence there, as far as it is known.  After ``attempts`` that the
    API failed for this object the next is due at ``retry_s``.
    """

    finding_id: str
    report: Report
    max_severity: Severity
    admission: Admission = Admission.WAITING
    observation: Observation = Observation.UNKNOWN
    orphaned_since_s: float | None = None
    updated_s: float | None = None
    refreshed_s: float | None = None  # the same, of the last refresh after it
    opened_here: bool = False
    pod_notified: bool = False
    reminders: int | None = None
    written_core: tuple[str, ...] | None = None
    written_s: float = 0.0
    written_labels: dict[str, str] = field(default_factory=dict)
    silence: Silence | None = None
    attempts: int = 0
    retry_s: float = 0.0
    events: list[PendingEvent | Posting] = field(default_factory=list)

    @property
    def dirty(self) -> bool:
        """Whether there is something to write at once."""
        return self.written_core != self.report.core or bool(self.events)

    @property
    def pending(self) -> bool:
        """Whether it waits for the API, by itself and not within the summary."""
        return self.dirty and self.admission is not Admission.SUMMARIZED

    @property
    def urgent(self) -> bool:
        """Whether a person should look at it now: an open anomaly, High or Critical."""
        severe = self.report.severity.rank >= Severity.HIGH.rank
        return self.report.open and self.report.anomaly and severe

    @property
    def written_urgent(self) -> str:
        """What a node condition depends on: "" unless the API has the report as urgent."""
        if not self.report.anomaly or not self.written_core:
            return ""
        state, severity, subsystem, *_ = self.written_core
        severe = Severity(severity).rank >= Severity.HIGH.rank
        return f"{subsystem}{severity}" if severe and state == State.OPEN else ""

    def is_silenced(self, now_ns: int) -> bool:
        """Whether a user silenced the report, and the silence has not ended."""
        return self.silence is not None and self.silence.is_active(now_ns)

    @property
    def adoptable(self) -> bool:
        """Whether no finding of this process is behind it, so that another may continue it."""
        return self.updated_s is None or self.observation is Observation.ORPHANED

    def observe(self, observation: Observation, now_s: float = 0.0) -> None:
        """Enter a state; ``now_s`` is when it becomes ORPHANED."""
        self.observation = observation
        self.orphaned_since_s = now_s if observation is Observation.ORPHANED else None

    def raise_max_severity(self, severity: Severity) -> None:
        """Keep the highest severity so far."""
        self.max_severity = max(self.max_severity, severity, key=lambda each: each.rank)

    def to_row(self) -> dict[str, Any]:
        """Return what a restarted analyzer needs to deliver it."""
        return {
            "finding": self.finding_id,
            "name": self.report.name,
            "spec": self.report.spec,
            "status": self.report.status,
            "events": [_event_row(event) for event in self.events],
        }

    @classmethod
    def from_row(cls, row: Mapping[str, Any]) -> ReportEntry:
        """Read a row; raises ``KeyError``, ``TypeError`` or ``ValueError``."""
        whole = {
            "metadata": {"name": str(row["name"])},
            "spec": row["spec"],
            "status": row["status"],
        }
        report = parse_report(whole)
        if report is None or not has_status(whole):
            raise ValueError("not a whole report")
        return cls(
            str(row["finding"]),
            report,
            report.severity,
            opened_here=True,
            pod_notified=True,
            events=[_event(event) for event in row["events"]],
        )


def _event_row(event: PendingEvent | Posting) -> dict[str, Any]:
    return event.to_row() if isinstance(event, PendingEvent) else {"body": event.body}


def _event(row: Mapping[str, Any]) -> PendingEvent | Posting:
    if "body" not in row:
        return PendingEvent.from_row(row)
    metadata = row["body"]["metadata"]
    return Posting(str(metadata["namespace"]), str(metadata["name"]), dict(row["body"]))
