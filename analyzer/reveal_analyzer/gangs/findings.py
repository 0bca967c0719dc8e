"""Findings of ranks that delay their jobs: pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from reveal_analyzer.formatting import decimal
from reveal_analyzer.gangs.cases import GangCase
from reveal_analyzer.gangs.rank import WINDOW_S, LostPart, Rank
from reveal_analyzer.gangs.straggler import Straggler
from reveal_analyzer.ledger.cost_meter import lost_share
from reveal_analyzer.ledger.lost_time import reason_of
from reveal_contract import ledger
from reveal_contract.costs import Cost
from reveal_contract.finding import (
    Confidence,
    DelayedJob,
    Evidence,
    Finding,
    FindingScope,
    Hypothesis,
    JobLoss,
    Pod,
    Resolution,
    State,
    Subject,
    finding_id,
)
from reveal_contract.metric import Subsystem
from reveal_contract.severity import of_slowdown
from reveal_contract.time_units import NS_PER_HOUR, NS_PER_SECOND

HYPOTHESIS = "StragglingRank"
_UNOBSERVED = "the job is no longer read; whether it is still delayed is unknown"
_SUBSYSTEMS = {ledger.IO_OTHERS: Subsystem.STORAGE, ledger.MEMORY: Subsystem.MEMORY}
_LEAST_NAMED = 0.02  # share of the wanted time
_MOST_REASONS = 3
_OWN_WORK_REMEDY = (
    "Compare clock, temperature, memory placement and devices of {rank} on {node} with those of the"
    " other ranks, or move it: it loses no time to others, and works longer for the same steps."
)
_REMEDY = (
    "Look at what {rank} loses on {node}, or move it. The other ranks are as fast as it is, so that"
    " work on them changes nothing."
)


class _Cause(NamedTuple):
    """Why a rank delays its job: the parts of a finding that depend on it."""

    subsystem: Subsystem
    reasons: str  # the end of the claim
    remedy: str
    evidence: tuple[Evidence, ...]
    share: float  # of the rank's time
    lost_time: tuple[JobLoss, ...] = ()


def finding(case: GangCase, *, resolved: bool = False) -> Finding:
    """Return the finding of a case."""
    rank, begin_ns, end_ns = case.straggler.rank, _ns(case.first), _ns(case.last + 1)
    cause = _lost(case) if case.straggler.lost else _own_work(case.straggler)
    pods, subjects = _named(rank, cause.share)
    percent = case.percent
    confidence = _confidence(case)
    return Finding(
        id=identity(case),
        node_name=rank.node,
        scope=FindingScope.JOB,
        subsystem=cause.subsystem,
        subsystems=(cause.subsystem,),
        severity=of_slowdown(percent),
        state=State.RESOLVED if resolved else State.OPEN,
        first_observed_ns=begin_ns,
        last_observed_ns=end_ns,
        resolved_ns=end_ns if resolved else None,
        claim=_claim(case, cause.reasons),
        hypothesis=Hypothesis(
            HYPOTHESIS, confidence, cause.remedy.format(rank=rank.subject, node=rank.node)
        ),
        evidence=cause.evidence,
        pods=pods,
        subjects=subjects,
        delayed_job=DelayedJob(
            case.job, case.straggler.count, percent, min(case.percents), max(case.percents)
        ),
        lost_time=cause.lost_time,
        cost=_cost(case),
        score_percent=round(100 * percent / (percent + 3.0)),
        confidence_percent=confidence,
        resolution=_resolution(case) if resolved else Resolution.NONE,
        notes=(_UNOBSERVED,) if case.is_unobserved else (),
    )


def identity(case: GangCase) -> str:
    """Return the id of a case's finding: the same while it lasts, whichever analyzer leads."""
    job, node, subject = case.key
    seed = f"{node}\0{HYPOTHESIS}\0{job}\0{subject}"
    return finding_id(seed, Subsystem.CPU, _ns(case.first))


def _lost(case: GangCase) -> _Cause:
    """Return what the rank lost; its subsystem is that of the largest part."""
    rank, lost = case.straggler.rank, case.straggler.lost
    percent = 100 * lost_share(case.percent)
    return _Cause(
        subsystem=_SUBSYSTEMS.get(lost[0].part, Subsystem.CPU),
        reasons=_reasons(lost),
        remedy=_REMEDY,
        evidence=tuple(_evidence(rank, lost)),
        share=rank.lost_share,
        lost_time=(JobLoss(rank.subject, percent, _seconds(case)),),
    )


def _own_work(straggler: Straggler) -> _Cause:
    """Return by how much the rank works longer, which lost nothing."""
    rank, longer = straggler.rank, straggler.longer
    return _Cause(
        subsystem=Subsystem.CPU,
        reasons=f"its own work takes {100 * longer:.0f} % longer, without loss to others",
        remedy=_OWN_WORK_REMEDY,
        evidence=(_mean(rank, ledger.RUN, rank.desired),),
        share=longer / (1 + longer),
    )


def _claim(case: GangCase, reasons: str) -> str:
    """Return ``X on n1 delays job by 12 % (8 ranks): 30 % of its time waiting for …``."""
    rank = case.straggler.rank
    head = f"{rank.subject} on {rank.node} delays {case.job} by {case.percent:.0f} %"
    return f"{head} ({case.straggler.count} ranks): {reasons}"


def _reasons(lost: Sequence[LostPart]) -> str:
    large = [part for part in lost if part.share >= _LEAST_NAMED] or lost[:1]
    return ", ".join(_lost_text(part) for part in large[:_MOST_REASONS])


def _lost_text(part: LostPart) -> str:
    by = f" that {part.culprit} took" if part.culprit else ""
    return f"{100 * part.share:.0f} % of its time {reason_of(part.part)}{by}"


def _evidence(rank: Rank, lost: Sequence[LostPart]) -> Iterator[Evidence]:
    """Yield what the rank lost to each reason, whoever took it."""
    for part in dict.fromkeys(each.part for each in lost):
        share = sum(each.share for each in lost if each.part == part)
        yield _mean(rank, part, share * rank.desired)


def _mean(rank: Rank, part: str, cpus: float) -> Evidence:
    return Evidence(
        metric=part, feature="mean", instance=rank.subject,
        value=decimal(round(cpus * NS_PER_SECOND)), baseline="", unit="ns/s", direction="up",
    )  # fmt: skip


def _named(rank: Rank, share: float) -> tuple[tuple[Pod, ...], tuple[Subject, ...]]:
    """Return the rank as a pod, or as another subject; it is the one that is waited for."""
    percent = round(100 * min(1.0, share))
    if rank.namespace:
        pod = Pod(rank.namespace, rank.name, rank.uid, "", percent, percent, Confidence.MEASURED)
        return (pod,), ()
    return (), (Subject(rank.kind, rank.name, percent, percent, Confidence.MEASURED),)


def _confidence(case: GangCase) -> int:
    """Return percent: it grows with the windows that agree."""
    return round(100 * len(case.percents) / (len(case.percents) + 1))


def _resolution(case: GangCase) -> Resolution:
    return Resolution.UNOBSERVED if case.is_unobserved else Resolution.ENDED


def _cost(case: GangCase) -> Cost | None:
    """Return what the whole job lost since the first window; None if its GPUs are not known."""
    gpus = case.straggler.gpus
    if not gpus:
        return None
    hours = (_ns(case.last + 1) - _ns(case.first)) / NS_PER_HOUR
    percents = (case.percent, min(case.percents), max(case.percents))
    lost, low, high = (gpus * lost_share(percent) for percent in percents)
    return Cost(gpus, lost, lost * hours, low * hours, high * hours)


def _seconds(case: GangCase) -> int:
    return len(case.percents) * WINDOW_S


def _ns(window: int) -> int:
    return window * WINDOW_S * NS_PER_SECOND
