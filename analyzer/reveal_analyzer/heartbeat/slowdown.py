"""A job's slowdown told as a finding: whose steps, how much, since when, and what moved then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from reveal_analyzer.episodes import attribution
from reveal_analyzer.episodes.attribution import EpisodeRecord
from reveal_analyzer.episodes.trace import Trace
from reveal_analyzer.episodes.tracker import Episode
from reveal_analyzer.formatting import human
from reveal_analyzer.hypotheses.model import HypothesisRule
from reveal_analyzer.subjects.history import SubjectHistory
from reveal_contract import severity
from reveal_contract.finding import Finding, Impact, State, finding_id
from reveal_contract.metric import Kind, Subsystem

_MOVED = 1.5  # spreads, meant over the seconds around the onset: what moved with it
NOT_SEEN = "cause not seen"


@dataclass(frozen=True)
class Context:
    """What there is to find a cause in."""

    trace: Trace
    rules: Sequence[HypothesisRule]
    history: SubjectHistory


def opened(node: str, impact: Impact, context: Context, now_ns: int) -> Finding:
    """The finding of a slowdown as it begins; ``told`` puts its cost into words."""
    moved = _moved(context.trace)
    subsystem = moved or Subsystem.CPU
    episode = Episode(impact.since_ns, now_ns, subsystem, [subsystem], opened_ns=now_ns)
    record = EpisodeRecord(node, episode, context.trace, (), State.OPEN)
    cause = attribution.attribute(record, context.rules, context.history)
    found = attribution.finding(record, cause, context.history)
    found = replace(found, id=finding_id(f"{node}\0{impact.subject}", subsystem, impact.since_ns))
    if moved is not None:
        return replace(found, claim=f"seen with it: {found.claim}")
    job = context.history.identify(impact.subject, impact.since_ns)
    return replace(
        found, claim=NOT_SEEN, hypothesis=None, evidence=(), pods=job.pods, subjects=job.subjects
    )


def told(base: Finding, impact: Impact, resolved_ns: int | None = None) -> Finding:
    """The finding with its cost as it is known now; over where ``resolved_ns`` is given."""
    percent = impact.slowdown_percent
    return replace(
        base,
        claim=f"{_sentence(impact)}; {base.claim}",
        severity=severity.of_slowdown(percent),
        state=State.OPEN if resolved_ns is None else State.RESOLVED,
        resolved_ns=resolved_ns,
        impact=impact,
        confidence_percent=impact.confidence,
        score_percent=round(100 * percent / (100 + percent)) if percent > 0 else 0,
    )


def _sentence(impact: Impact) -> str:
    usual, now = (human(ms * 1e6, "ns", Kind.GAUGE) for ms in (impact.usual_ms, impact.period_ms))
    since = datetime.fromtimestamp(impact.since_ns // 1_000_000_000, UTC)
    return (
        f"Steps of {impact.subject} take {usual} -> {now}:"
        f" {impact.slowdown_percent:.1f} % slower since {since:%H:%M:%S}Z"
    )


def _moved(trace: Trace) -> Subsystem | None:
    """The subsystem of what left its past most around the onset, if anything did."""
    weight = trace.weights
    if not weight.size or weight.max() < _MOVED:
        return None
    return trace.stats.columns[int(weight.argmax())].metric.subsystem
