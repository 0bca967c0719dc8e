"""A case as a finding: what the node has, what its peers have, and what to do."""

from __future__ import annotations

from reveal_analyzer.configuration.rule import fact
from reveal_analyzer.fleet.cases import CALM, Case
from reveal_analyzer.fleet.measures import IDLE_PAGES, STEP, measure
from reveal_analyzer.fleet.minute import MINUTE
from reveal_analyzer.fleet.outliers import Drift, Outlier
from reveal_analyzer.fleet.workload import Member
from reveal_analyzer.formatting import decimal, human
from reveal_contract.finding import (
    Confidence,
    Evidence,
    Finding,
    FindingScope,
    Hypothesis,
    Peers,
    Pod,
    State,
    Subject,
    finding_id,
)
from reveal_contract.metric import Kind, Subsystem
from reveal_contract.time_units import NS_PER_SECOND

HYPOTHESIS = "CrossNodeOutlier"
_NOT_COMPARED = "the node could not be compared with others any more"
# what is said of a metric instead of its name, and behind the value
_PHRASES = {
    IDLE_PAGES: ("Huge pages reserved", " idle"),
    STEP: ("Steps take longer", ""),
}
_REMEDIES = {
    IDLE_PAGES: "echo 0 > /sys/kernel/mm/hugepages/hugepages-*kB/nr_hugepages, or let a job use"
    " the pages (see IdleHugePages)",
    Subsystem.CPU: "Look for what else runs there, for its clocks and its cooling",
    Subsystem.GPU: "Compare nvidia-smi -q of both: clocks, power limit, PCIe link, errors",
    Subsystem.MEMORY: "Compare what is reserved and who uses memory there",
    Subsystem.NETWORK: "Look at cable, port and interrupts of that node's network cards",
    Subsystem.STORAGE: "Compare its drives (smartctl -a) and what else uses them",
}


def finding(case: Case, members: tuple[Member, ...], *, resolved: bool = False) -> Finding:
    """The finding a case amounts to now; ``members`` are its job's subjects on the node."""
    first = case.signs.first
    sureness = _confidence(first)
    pods, subjects = _named(members)
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
        severity=case.signs.severity,
        state=State.RESOLVED if resolved else State.OPEN,
        first_seen_ns=begins,
        last_seen_ns=ends,
        resolved_ns=ends if resolved else None,
        claim=_setting(first, len(case.signs.drifts)) if isinstance(first, Drift) else claim(first),
        hypothesis=Hypothesis(HYPOTHESIS, sureness, _remedy(first, subsystem)),
        evidence=tuple(
            [_evidence(one) for one in case.signs.outliers]
            + [fact(one.fact, "", one.value, one.usual) for one in case.signs.drifts]
        ),
        peers=_peers(first),
        pods=pods,
        subjects=subjects,
        score_percent=_score(first),
        confidence_percent=sureness,
        notes=(_NOT_COMPARED,) if resolved and case.calm < CALM else (),
    )


def identity(case: Case) -> str:
    """The id of its finding: the same as long as it lasts, whoever leads."""
    node, subsystem, kind = case.key
    begins = case.first * MINUTE * NS_PER_SECOND
    return finding_id(f"{node}\0{HYPOTHESIS}\0{kind}", subsystem, begins)


def claim(one: Outlier) -> str:
    """``Huge pages reserved on 1 of 9 nodes: 4 GiB idle on n3, 0 B on the others``."""
    made = measure(one.metric)
    assert made is not None
    row = made.row
    phrase, suffix = _PHRASES.get(one.metric, (f"{row.name} ({row.origin}) stands out", ""))
    here, low, high = (human(value, row.unit, row.kind) for value in (one.value, one.low, one.high))
    others = low if low == high else f"{low} to {high}"
    if one.lost:
        less = f"{one.job} does {round(100 * one.lost)} % less of all it does elsewhere"
        return f"{less}, on {one.alike} of {one.compared} nodes: on {one.node}"
    if one.job:
        phrase = f"{one.job}: {phrase}"
    where = f"{one.alike} of {one.compared} nodes"
    return f"{phrase} on {where}: {here}{suffix} on {one.node}, {others} on the others"


def _setting(one: Drift, of: int) -> str:
    more = f" (and {of - 1} more settings)" if of > 1 else ""
    where = f"{one.alike} of {one.compared} nodes"
    return f"{one.fact} differs on {where}: {one.value} on {one.node}, usually {one.usual}{more}"


def _remedy(one: Outlier | Drift, subsystem: Subsystem) -> str:
    if isinstance(one, Drift):
        return f"Set {one.fact} on {one.node} as on its peers, or all of them so"
    return _REMEDIES.get(one.metric, _REMEDIES[subsystem])


def _confidence(one: Outlier | Drift) -> int:
    """Percent: how many of those compared speak for the other side; nine of ten, never all."""
    return round(100 * (one.compared - one.alike) / (one.compared + 1))


def _score(one: Outlier | Drift) -> int:
    return 100 if isinstance(one, Drift) else round(100 * one.score / (1 + one.score))


def _peers(one: Outlier | Drift) -> Peers:
    if isinstance(one, Drift):
        return Peers(one.compared, one.usual, one.value)
    return Peers(one.compared, decimal(one.median), decimal(one.value))


def _evidence(one: Outlier) -> Evidence:
    made = measure(one.metric)
    assert made is not None
    row = made.row
    return Evidence(
        metric=row.name, feature="peers", instance=one.job, value=decimal(one.value),
        baseline=decimal(one.median),
        unit=f"{row.unit}/s" if row.kind is Kind.COUNTER else row.unit,
        direction="up" if one.value >= one.median else "down", known_as=row.origin,
    )  # fmt: skip


def _named(members: tuple[Member, ...]) -> tuple[tuple[Pod, ...], tuple[Subject, ...]]:
    """They run there and suffer it; which of them is its cause is not said."""
    sure = Confidence.CO_LOCATED
    pods = [Pod(m.namespace, m.name, m.uid, "", 0, 0, sure) for m in members if m.namespace]
    others = [Subject(m.kind, m.name, 0, 0, sure) for m in members if not m.namespace]
    return tuple(pods), tuple(others)
