"""Findings of slowdowns: which job, by how much, since when, and what moved at its onset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from reveal_analyzer.episodes import attribution
from reveal_analyzer.episodes.attribution import EpisodeRecord
from reveal_analyzer.episodes.episode import Episode
from reveal_analyzer.episodes.trace import Trace
from reveal_analyzer.formatting import human
from reveal_analyzer.hypotheses.model import HypothesisRule
from reveal_analyzer.subjects.case_subjects import CaseSubjects
from reveal_analyzer.subjects.history import SubjectHistory
from reveal_contract import severity
from reveal_contract.finding import Finding, Impact, Resolution, State, finding_id
from reveal_contract.metric import Kind, Subsystem
from reveal_contract.time_units import NS_PER_SECOND

_MOVED = 1.5  # mean excess in spreads around the onset, from which a column moved with it
_NOTES = {
    Resolution.UNOBSERVED: "its evidence has not been read since {}; whether it lasts is unknown",
    Resolution.ACCEPTED: "the step has kept its length until {}: it is the baseline from now on",
}
_RESUMED = "the job made a pause before it: this may be another run with longer steps"
CAUSE_UNKNOWN = "cause not seen"


@dataclass(frozen=True)
class OnsetEvidence:
    """Where the cause of a slowdown is searched; ``trace`` is that of the onset."""

    trace: Trace
    rules: Sequence[HypothesisRule]
    history: SubjectHistory


def base_finding(node: str, impact: Impact, onset: OnsetEvidence, now_ns: int) -> Finding:
    """Return the finding of a slowdown that begins, without its impact."""
    moved = _moved(onset.trace)
    subsystem = moved or Subsystem.CPU
    episode = Episode(impact.since_ns, now_ns, subsystem, [subsystem], opened_ns=now_ns)
    record = EpisodeRecord(
        node, episode, onset.trace, (), State.OPEN,
        subjects=CaseSubjects.begin(onset.history, impact.since_ns),
        active=onset.history.seconds(impact.since_ns, now_ns),
    )  # fmt: skip
    found = attribution.attribute(record, onset.rules, onset.history)
    finding = replace(
        attribution.finding(record, found, onset.history),
        # jobs slow down at the same time: the subject makes the id unique
        id=finding_id(f"{node}\0{impact.subject}", subsystem, impact.since_ns),
    )
    if moved is not None:
        return replace(finding, claim=f"observed with it: {finding.claim}")
    job = onset.history.identify(impact.subject, impact.since_ns)
    return replace(
        finding,
        claim=CAUSE_UNKNOWN,
        hypothesis=None,
        evidence=(),
        pods=job.pods,
        subjects=job.subjects,
    )


def with_impact(base: Finding, impact: Impact, *, resumed: bool) -> Finding:
    """Return the open finding with its current impact; ``resumed``: since a pause of the job."""
    percent = impact.slowdown_percent
    return replace(
        base,
        claim=f"{_sentence(impact)}; {base.claim}",
        severity=severity.of_slowdown(percent, resumed=resumed),
        notes=(*base.notes, _RESUMED) if resumed else base.notes,
        impact=impact,
        confidence_percent=impact.confidence,
        score_percent=round(100 * percent / (100 + percent)) if percent > 0 else 0,
    )


def resolved(finding: Finding, now_ns: int, resolution: Resolution) -> Finding:
    """Return the resolved finding; where its end was not observed, it says so."""
    last_ns = max(finding.last_observed_ns, finding.first_observed_ns)
    note = _NOTES.get(resolution)
    return replace(
        finding,
        state=State.RESOLVED,
        last_observed_ns=last_ns,
        resolved_ns=max(now_ns, last_ns),
        resolution=resolution,
        notes=(*finding.notes, note.format(_moment(last_ns))) if note else finding.notes,
    )


def _sentence(impact: Impact) -> str:
    before, now = (
        human(ms * 1e6, "ns", Kind.GAUGE) for ms in (impact.baseline_ms, impact.period_ms)
    )
    return (
        f"Steps of {impact.subject} take {before} -> {now}:"
        f" {impact.slowdown_percent:.1f} % slower since {_moment(impact.since_ns)}"
    )


def _moment(ns: int) -> str:
    return f"{datetime.fromtimestamp(ns // NS_PER_SECOND, UTC):%H:%M:%S}Z"


def _moved(trace: Trace) -> Subsystem | None:
    """Return the subsystem of the column that moved most around the onset, if one did."""
    weights = trace.weights
    if not weights.size or weights.max() < _MOVED:
        return None
    return trace.stats.columns[int(weights.argmax())].metric.subsystem
