"""Finding: the one dataclass behind a JSONL row, an AnomalyReport, an Event and a page.

All of its texts are printable, whoever chose the names in them.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from reveal_contract.costs import Cost, PodCost
from reveal_contract.foreign_names import PrintableRecord
from reveal_contract.metric import Subsystem
from reveal_contract.names import camel_case
from reveal_contract.verification import Verification

_MOST_LOST = 99.9  # percent: who lost all of its time has no slowdown


class Severity(StrEnum):
    LOW = "Low"
    MEDIUM = "Medium"
    HIGH = "High"
    CRITICAL = "Critical"

    @property
    def rank(self) -> int:
        """0 for Low to 3 for Critical, for comparisons."""
        return list(Severity).index(self)


class State(StrEnum):
    OPEN = "Open"
    RESOLVED = "Resolved"


class Resolution(StrEnum):
    """Why a finding was resolved; empty while it is open."""

    NONE = ""
    ENDED = "Ended"  # its evidence was observed to be normal again
    UNOBSERVED = "Unobserved"  # its evidence is no longer read: whether it lasts is unknown
    STOPPED = "Stopped"  # watching ended while it was open
    ACCEPTED = "Accepted"  # it lasts, and is what later values are compared with


class FindingChange(StrEnum):
    """One step in the life of a finding."""

    SUSPECTED = "Suspected"  # anomalous for a moment: counted, not reported
    OPENED = "Opened"
    CHANGED = "Changed"
    RESOLVED = "Resolved"
    VERIFIED = "Verified"  # what a change did for its job is known; it may be over


class FindingScope(StrEnum):
    NODE = "Node"
    CROSS_NODE = "CrossNode"
    JOB = "Job"  # a rank of a job delays the others

    @property
    def is_across_nodes(self) -> bool:
        """Whether the analyzer that compares the nodes finds it."""
        return self is not FindingScope.NODE


class FindingKind(StrEnum):
    ANOMALY = "Anomaly"
    CONFIGURATION = "Configuration"  # a rule on the node's facts is violated: no episode


class Confidence(StrEnum):
    """How the share of a subject in a finding is known."""

    MEASURED = "Measured"
    INFERRED = "Inferred"
    CO_LOCATED = "CoLocated"


@dataclass(frozen=True, slots=True)
class Evidence(PrintableRecord):
    """One metric that supports the finding; ``value`` and ``baseline`` are decimal strings.

    In a configuration finding it is a fact: the value may be a word of the kernel, and ``baseline``
    is what it should be.
    """

    metric: str
    feature: str
    instance: str
    value: str
    baseline: str
    unit: str
    direction: str  # "up" or "down"
    known_as: str = ""  # the kernel's or tool's name for the metric


@dataclass(frozen=True, slots=True)
class Method:
    """The result of one detector of the paper for the same windows."""

    name: str
    agrees: bool
    score_percent: int


@dataclass(frozen=True, slots=True)
class Hypothesis:
    name: str
    confidence_percent: int
    remediation: str


@dataclass(frozen=True, slots=True)
class Subject(PrintableRecord):
    """A unit, cgroup or process group (off Kubernetes) whose share changed."""

    kind: str  # "Unit", "Cgroup", "ProcessGroup"
    name: str
    share_percent: int
    change_percent: int
    confidence: Confidence


@dataclass(frozen=True, slots=True)
class Pod(PrintableRecord):
    """A pod whose share of the node's counters changed."""

    namespace: str
    name: str
    uid: str
    container: str
    share_percent: int
    change_percent: int
    confidence: Confidence


@dataclass(frozen=True, slots=True)
class Peers:
    """For a cross-node finding: the nodes compared, their median and this node's value."""

    compared: int
    median: str
    value: str


@dataclass(frozen=True, slots=True)
class Impact(PrintableRecord):
    """How much longer the steps of the most affected job take, measured on its own period.

    Percent of the baseline step (``baseline_ms``), between ``low`` and ``high``; measured over the
    last ``window_s`` seconds on ``channel``; ``confidence`` in percent.  Below 0 it is faster.
    """

    subject: str
    slowdown_percent: float
    low_percent: float
    high_percent: float
    period_ms: float
    baseline_ms: float
    since_ns: int
    window_s: int
    channel: str
    confidence: int

    def to_dict(self) -> dict[str, Any]:
        """Return the row without floats: percents are decimal strings, times whole ms."""
        return {
            "subject": self.subject,
            "slowdownPercent": f"{self.slowdown_percent:.1f}",
            "lowPercent": f"{self.low_percent:.1f}",
            "highPercent": f"{self.high_percent:.1f}",
            "periodMilliseconds": round(self.period_ms),
            "usualMilliseconds": round(self.baseline_ms),
            "since": rfc3339(self.since_ns),
            "windowSeconds": self.window_s,
            "channel": self.channel,
            "confidencePercent": self.confidence,
        }


@dataclass(frozen=True, slots=True)
class JobLoss(PrintableRecord):
    """What a job lost by the cause of a finding, as the ledger measured it.

    Percent of the time in which the job did not sleep, over ``window_s`` seconds in which the
    finding was active.
    """

    subject: str
    lost_percent: float
    window_s: int

    @property
    def slowdown_percent(self) -> float:
        """How much longer the job takes for the same work than without the loss."""
        lost = min(self.lost_percent, _MOST_LOST)
        return 100 * lost / (100 - lost)

    def to_dict(self) -> dict[str, Any]:
        """Return the row without floats: percents are decimal strings."""
        return {
            "subject": self.subject,
            "lostPercent": f"{self.lost_percent:.1f}",
            "slowdownPercent": f"{self.slowdown_percent:.1f}",
            "windowSeconds": self.window_s,
        }


@dataclass(frozen=True, slots=True)
class DelayedJob(PrintableRecord):
    """A job whose ranks wait for one of them, and by how many percent longer that takes.

    ``low`` and ``high`` are the range of the windows that were measured.
    """

    name: str
    ranks: int
    slowdown_percent: float
    low_percent: float
    high_percent: float

    def to_dict(self) -> dict[str, Any]:
        """Return the row without floats: percents are decimal strings."""
        return {
            "name": self.name,
            "ranks": self.ranks,
            "slowdownPercent": f"{self.slowdown_percent:.1f}",
            "lowPercent": f"{self.low_percent:.1f}",
            "highPercent": f"{self.high_percent:.1f}",
        }


@dataclass(frozen=True, slots=True)
class EvidenceRef:
    """Where the samples of a finding are kept: the kind of store, and their name there."""

    store: str  # "Redis" or "Folder"
    name: str


@dataclass(frozen=True, slots=True)
class Finding(PrintableRecord):
    """An episode with its attribution; its rows have camelCase keys.

    ``pods`` and ``subjects`` cause it, the one that explains most first; their shares are of
    ``share_metric``.  ``victims`` suffer from it (``namespace/name`` of a pod), where a known cause
    says how to recognize them.  ``lost_time`` is what jobs lost by the cause, most first, on a node
    with the lost-time ledger.  ``delayed_job`` is the job that waits for the first pod or subject,
    if the scope is ``Job``.  ``cost`` is what the jobs lost in GPU-hours, if their GPUs are known,
    and ``pod_costs`` are the parts of the pods that lost most, on a single node.  ``resolution``
    says why a resolved finding ended.  ``verification`` is the effect of the last change on the job
    that it slowed, only in updates that are ``VERIFIED``.  ``evidence_ref`` names the samples that
    are kept of it.
    """

    id: str
    node_name: str
    subsystem: Subsystem
    severity: Severity
    state: State
    first_observed_ns: int
    last_observed_ns: int
    claim: str
    scope: FindingScope = FindingScope.NODE
    subsystems: tuple[Subsystem, ...] = ()
    hypothesis: Hypothesis | None = None
    methods: tuple[Method, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    pods: tuple[Pod, ...] = ()
    subjects: tuple[Subject, ...] = ()
    score_percent: int = 0
    confidence_percent: int = 0
    resolved_ns: int | None = None
    notes: tuple[str, ...] = field(default=())
    kind: FindingKind = FindingKind.ANOMALY
    peers: Peers | None = None
    impact: Impact | None = None
    victims: tuple[str, ...] = ()
    resolution: Resolution = Resolution.NONE
    share_metric: str = ""
    lost_time: tuple[JobLoss, ...] = ()
    evidence_ref: EvidenceRef | None = None
    delayed_job: DelayedJob | None = None
    cost: Cost | None = None
    pod_costs: tuple[PodCost, ...] = ()
    verification: Verification | None = None

    @property
    def lost_gpu_hours(self) -> float:
        """GPU-hours that jobs lost so far; 0 where that is not known."""
        return self.cost.lost_gpu_hours if self.cost is not None else 0.0

    @property
    def slowdown_percent(self) -> float:
        """How much longer the work of the job takes that suffers most; 0 if that is not known."""
        if self.impact is not None:
            return self.impact.slowdown_percent
        return max((loss.slowdown_percent for loss in self.lost_time), default=0.0)

    @property
    def worst_first(self) -> tuple[int, float, float]:
        """The key by which findings are sorted: severity, then what it costs, the most first."""
        return -self.severity.rank, -self.lost_gpu_hours, -self.slowdown_percent

    @property
    def foremost(self) -> Pod | Subject | None:
        """The pod or subject that explains most of the finding; None if no one is known to."""
        first: list[Pod | Subject] = [*self.pods[:1], *self.subjects[:1]]
        known = [each for each in first if each.confidence is not Confidence.CO_LOCATED]
        return max(known, key=lambda each: abs(each.change_percent), default=None)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSONL row: camelCase keys as in the AnomalyReport, times in RFC 3339."""
        row: dict[str, Any] = {
            "id": self.id,
            "kind": self.kind.value,
            "nodeName": self.node_name,
            "scope": self.scope.value,
            "subsystem": self.subsystem.value,
            "subsystems": [subsystem.value for subsystem in self.subsystems],
            "severity": self.severity.value,
            "state": self.state.value,
            "firstSeenTime": rfc3339(self.first_observed_ns),
            "lastSeenTime": rfc3339(self.last_observed_ns),
            "claim": self.claim,
            "hypothesis": _camel(self.hypothesis) if self.hypothesis else None,
            "methods": [_camel(method) for method in self.methods],
            "evidence": [_camel(evidence) for evidence in self.evidence],
            "pods": [_camel(pod) for pod in self.pods],
            "subjects": [_camel(subject) for subject in self.subjects],
            "scorePercent": self.score_percent,
            "confidencePercent": self.confidence_percent,
            "notes": list(self.notes),
        }
        if self.impact is not None:
            row["impact"] = self.impact.to_dict()
        if self.resolved_ns is not None:
            row["resolvedTime"] = rfc3339(self.resolved_ns)
        if self.resolution:
            row["resolution"] = self.resolution.value
        if self.peers is not None:
            row["peers"] = _camel(self.peers)
        if self.victims:
            row["victims"] = list(self.victims)
        if self.share_metric:
            row["shareMetric"] = self.share_metric
        if self.lost_time:
            row["lostTime"] = [loss.to_dict() for loss in self.lost_time]
        if self.delayed_job is not None:
            row["delayedJob"] = self.delayed_job.to_dict()
        if self.cost is not None:
            row["cost"] = self.cost.to_dict()
        if self.pod_costs:
            row["podCosts"] = [each.to_dict() for each in self.pod_costs]
        if self.verification is not None:
            noticed = rfc3339(self.verification.time_ns)
            row["verification"] = {**self.verification.to_dict(), "time": noticed}
        if self.evidence_ref is not None:
            row["evidenceRef"] = _camel(self.evidence_ref)
        return row


@dataclass(frozen=True, slots=True)
class FindingUpdate:
    """A finding after one change."""

    change: FindingChange
    finding: Finding


def finding_id(node: str, subsystem: Subsystem, first_observed_ns: int) -> str:
    """Return the identity of an episode: the same episode has the same id on every retry."""
    seed = f"{node}\0{subsystem.value}\0{first_observed_ns}".encode()
    return f"{subsystem.value.lower()}-{hashlib.blake2b(seed, digest_size=5).hexdigest()}"


def rfc3339(ns: int) -> str:
    """Return nanoseconds since the epoch as RFC 3339 with milliseconds, in UTC."""
    moment = datetime.fromtimestamp(ns // 1_000_000_000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{ns // 1_000_000 % 1000:03d}Z"


def _camel(part: object) -> dict[str, Any]:
    names = getattr(part, "__slots__", ())
    return {camel_case(name): getattr(part, name) for name in names}
