"""Findings of ranks that delay their jobs: pure."""

from __future__ import annotations

from collections.abc import Iterator

from reveal_analyzer.formatting import decimal
from reveal_analyzer.gangs.cases import GangCase
from reveal_analyzer.gangs.rank import WINDOW_S, LostPart, Rank
from reveal_analyzer.gangs.straggler import Straggler
from reveal_analyzer.ledger.lost_time import reason_of
from reveal_contract import ledger
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
from reveal_contract.time_units import NS_PER_SECOND

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


def finding(case: GangCase, *, resolved: bool = False) -> Finding:
    """Return the finding of a case."""
    rank, begin_ns, end_ns = case.straggler.rank, _ns(case.first), _ns(case.last + 1)
    pods, subjects = _named(case.straggler)
    percent = case.percent
    confidence = _confidence(case)
    subsystem = subsystem_of(case)
    return Finding(
        id=identity(case),
        node_name=rank.node,
        scope=FindingScope.JOB,
        subsystem=subsystem,
        subsystems=(subsystem,),
        severity=of_slowdown(percent),
        state=State.RESOLVED if resolved else State.OPEN,
        first_observed_ns=begin_ns,
        last_observed_ns=end_ns,
        resolved_ns=end_ns if resolved else None,
        claim=_claim(case),
        hypothesis=Hypothesis(HYPOTHESIS, confidence, _remedy(case.straggler)),
        evidence=tuple(_evidence(case.straggler)),
        pods=pods,
        subjects=subjects,
        delayed_job=DelayedJob(
            case.job, case.straggler.count, percent, min(case.percents), max(case.percents)
        ),
        lost_time=_lost_time(case),
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


def subsystem_of(case: GangCase) -> Subsystem:
    """Return the subsystem of what the rank lost most to."""
    first = next(iter(case.straggler.lost), None)
    return _SUBSYSTEMS.get(first.part, Subsystem.CPU) if first else Subsystem.CPU


def _claim(case: GangCase) -> str:
    """Return ``X on n1 delays job by 12 % (8 ranks): 30 % of its time waiting for …``."""
    rank = case.straggler.rank
    head = f"{rank.subject} on {rank.node} delays {case.job} by {case.percent:.0f} %"
    return f"{head} ({case.straggler.count} ranks): {_reasons(case.straggler)}"


def _reasons(straggler: Straggler) -> str:
    lost = straggler.lost
    if not lost:
        return f"its own work takes {100 * straggler.longer:.0f} % longer, without loss to others"
    large = [part for part in lost if part.share >= _LEAST_NAMED] or lost[:1]
    return ", ".join(_lost_text(part) for part in large[:_MOST_REASONS])


def _remedy(straggler: Straggler) -> str:
    text = _REMEDY if straggler.lost else _OWN_WORK_REMEDY
    return text.format(rank=straggler.rank.subject, node=straggler.rank.node)


def _lost_text(part: LostPart) -> str:
    by = f" that {part.culprit} took" if part.culprit else ""
    return f"{100 * part.share:.0f} % of its time {reason_of(part.part)}{by}"


def _evidence(straggler: Straggler) -> Iterator[Evidence]:
    """Yield what the rank lost to each reason, whoever took it, or that it works longer."""
    rank, lost = straggler.rank, straggler.lost
    if not lost:
        yield _mean(rank, ledger.RUN, rank.desired)
    for part in dict.fromkeys(each.part for each in lost):
        share = sum(each.share for each in lost if each.part == part)
        yield _mean(rank, part, share * rank.desired)


def _mean(rank: Rank, part: str, cpus: float) -> Evidence:
    return Evidence(
        metric=part, feature="mean", instance=rank.subject,
        value=decimal(round(cpus * NS_PER_SECOND)), baseline="", unit="ns/s", direction="up",
    )  # fmt: skip


def _named(straggler: Straggler) -> tuple[tuple[Pod, ...], tuple[Subject, ...]]:
    """Return the rank as a pod, or as another subject; it is the one that is waited for."""
    rank, longer = straggler.rank, straggler.longer
    share = round(100 * min(1.0, rank.lost_share if straggler.lost else longer / (1 + longer)))
    if rank.namespace:
        pod = Pod(rank.namespace, rank.name, rank.uid, "", share, share, Confidence.MEASURED)
        return (pod,), ()
    return (), (Subject(rank.kind, rank.name, share, share, Confidence.MEASURED),)


def _confidence(case: GangCase) -> int:
    """Return percent: it grows with the windows that agree."""
    return round(100 * len(case.percents) / (len(case.percents) + 1))


def _resolution(case: GangCase) -> Resolution:
    return Resolution.UNOBSERVED if case.is_unobserved else Resolution.ENDED


def _lost_time(case: GangCase) -> tuple[JobLoss, ...]:
    """Return what the rank lost; nothing where it only works longer."""
    if not case.straggler.lost:
        return ()
    percent = 100 * case.percent / (100 + case.percent)
    return (JobLoss(case.straggler.rank.subject, percent, _seconds(case)),)


def _seconds(case: GangCase) -> int:
    return len(case.percents) * WINDOW_S


def _ns(window: int) -> int:
    return window * WINDOW_S * NS_PER_SECOND
