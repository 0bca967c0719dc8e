"""Findings of cases: how the node differs from its peers, and what to do."""

from __future__ import annotations

from reveal_analyzer.configuration.rule import fact
from reveal_analyzer.fleet.cases import CALM_MINUTES, FleetCase
from reveal_analyzer.fleet.measures import IDLE_PAGES, STEP, measure
from reveal_analyzer.fleet.minute import MINUTE
from reveal_analyzer.fleet.outliers import Drift, Outlier
from reveal_analyzer.fleet.workload import JobMember
from reveal_analyzer.formatting import amount, decimal
from reveal_contract.finding import (
    Confidence,
    Evidence,
    Finding,
    FindingScope,
    Hypothesis,
    Peers,
    Pod,
    Resolution,
    State,
    Subject,
    finding_id,
)
from reveal_contract.metric import Kind, Subsystem
from reveal_contract.time_units import NS_PER_SECOND

HYPOTHESIS = "CrossNodeOutlier"
_NOT_COMPARED = "the node can no longer be compared with others"
# what a claim says instead of a metric's name, and after its value
_PHRASES = {
    IDLE_PAGES: ("Huge pages reserved", " idle"),
    STEP: ("Steps take longer", ""),
}
_REMEDIES = {
    IDLE_PAGES: "echo 0 > /sys/kernel/mm/hugepages/hugepages-*kB/nr_hugepages, or let a job use"
    " the pages (see IdleHugePages)",
    Subsystem.CPU: "Check what else runs on the node, its clocks and its cooling",
    Subsystem.GPU: "Compare nvidia-smi -q of the node with that of a peer: clocks, power limit,"
    " PCIe link, errors",
    Subsystem.MEMORY: "Compare reserved memory, and which processes use memory on the node",
    Subsystem.NETWORK: "Check cable, port and interrupts of the node's network cards",
    Subsystem.STORAGE: "Compare its drives (smartctl -a), and what else uses them",
}


def finding(case: FleetCase, members: tuple[JobMember, ...], *, resolved: bool = False) -> Finding:
    """Return the finding of a case; ``members`` are the subjects that suffer on the node."""
    first = case.deviations.first
    confidence = _confidence(first)
    pods, subjects = _subjects(members)
    ends = (case.last + 1) * MINUTE * NS_PER_SECOND
    begins = case.first * MINUTE * NS_PER_SECOND
    node, subsystem, kind = case.key
    return Finding(
        id=identity(case),
        node_name=node,
        scope=FindingScope.CROSS_NODE,
        kind=kind,
        subsystem=subsystem,
        subsystems=(subsystem,),
        severity=case.deviations.severity,
        state=State.RESOLVED if resolved else State.OPEN,
        first_observed_ns=begins,
        last_observed_ns=ends,
        resolved_ns=ends if resolved else None,
        claim=_claim(case),
        hypothesis=Hypothesis(HYPOTHESIS, confidence, _remedy(first, subsystem)),
        evidence=tuple(
            [_evidence(outlier) for outlier in case.deviations.outliers]
            + [
                fact(drift.fact, "", drift.value, drift.expected)
                for drift in case.deviations.drifts
            ]
        ),
        peers=_peers(first),
        pods=pods,
        subjects=subjects,
        score_percent=_score(first),
        confidence_percent=confidence,
        resolution=_resolution(case) if resolved else Resolution.NONE,
        notes=(_NOT_COMPARED,) if resolved and not _is_calm(case) else (),
    )


def _is_calm(case: FleetCase) -> bool:
    """Whether the node was compared for a while, and did not deviate."""
    return case.calm >= CALM_MINUTES


def _resolution(case: FleetCase) -> Resolution:
    return Resolution.ENDED if _is_calm(case) else Resolution.UNOBSERVED


def identity(case: FleetCase) -> str:
    """Return the id of a case's finding: the same while it lasts, whichever analyzer leads."""
    node, subsystem, kind = case.key
    begins = case.first * MINUTE * NS_PER_SECOND
    return finding_id(f"{node}\0{HYPOTHESIS}\0{kind}", subsystem, begins)


def _claim(case: FleetCase) -> str:
    first = case.deviations.first
    if isinstance(first, Drift):
        return _setting_claim(first, len(case.deviations.drifts))
    return outlier_claim(first)


def outlier_claim(outlier: Outlier) -> str:
    """Return a sentence like ``Huge pages reserved on 1 of 9 nodes: 4 GiB idle on n3, ...``."""
    known = measure(outlier.metric)
    assert known is not None
    row = known.row
    where = f"on {outlier.alike} of {outlier.compared} nodes"
    if outlier.lost:
        percent = round(100 * outlier.lost)
        less = f"{outlier.job} does {percent} % less of everything than on other nodes"
        return f"{less}, {where}: on {outlier.node}"
    phrase, suffix = _PHRASES.get(outlier.metric, (f"{row.name} ({row.origin}) stands out", ""))
    if outlier.job:
        phrase = f"{outlier.job}: {phrase}"
    values = (outlier.value, outlier.low, outlier.high)
    here, low, high = (amount(row, "", "", value) for value in values)
    others = low if low == high else f"{low} to {high}"
    return f"{phrase} {where}: {here}{suffix} on {outlier.node}, {others} on the others"


def _setting_claim(drift: Drift, count: int) -> str:
    more = f" (and {count - 1} more settings)" if count > 1 else ""
    values = f"{drift.value} on {drift.node}, {drift.expected} on most others"
    return f"{drift.fact} differs on {drift.alike} of {drift.compared} nodes: {values}{more}"


def _remedy(first: Outlier | Drift, subsystem: Subsystem) -> str:
    if isinstance(first, Drift):
        return f"Set {first.fact} on {first.node} as on its peers, or change it on all of them"
    return _REMEDIES.get(first.metric, _REMEDIES[subsystem])


def _confidence(first: Outlier | Drift) -> int:
    """Return percent: the share of the compared nodes that are not alike, never 100."""
    return round(100 * (first.compared - first.alike) / (first.compared + 1))


def _score(first: Outlier | Drift) -> int:
    return 100 if isinstance(first, Drift) else round(100 * first.score / (1 + first.score))


def _peers(first: Outlier | Drift) -> Peers:
    if isinstance(first, Drift):
        return Peers(first.compared, first.expected, first.value)
    return Peers(first.compared, decimal(first.median), decimal(first.value))


def _evidence(outlier: Outlier) -> Evidence:
    known = measure(outlier.metric)
    assert known is not None
    row = known.row
    return Evidence(
        metric=row.name, feature="peers", instance=outlier.job, value=decimal(outlier.value),
        baseline=decimal(outlier.median),
        unit=f"{row.unit}/s" if row.kind is Kind.COUNTER else row.unit,
        direction="up" if outlier.value >= outlier.median else "down", known_as=row.origin,
    )  # fmt: skip


def _subjects(members: tuple[JobMember, ...]) -> tuple[tuple[Pod, ...], tuple[Subject, ...]]:
    """Return the pods and subjects that run on the node; the cause among them is not known."""
    located = Confidence.CO_LOCATED
    pods = [Pod(m.namespace, m.name, m.uid, "", 0, 0, located) for m in members if m.namespace]
    others = [Subject(m.kind, m.name, 0, 0, located) for m in members if not m.namespace]
    return tuple(pods), tuple(others)
