"""From an episode to a finding: cause, culprits, evidence, severity and a one-sentence claim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from reveal_analyzer.episodes.claim_text import column_claim, rule_claim
from reveal_analyzer.episodes.episode import Episode
from reveal_analyzer.episodes.evidence import evidence, evidence_columns
from reveal_analyzer.episodes.measured import MeasuredLosses
from reveal_analyzer.episodes.trace import Trace
from reveal_analyzer.hypotheses import choice
from reveal_analyzer.hypotheses.choice import Cause, EpisodeEvidence
from reveal_analyzer.hypotheses.model import HypothesisRule
from reveal_analyzer.subjects.case_subjects import CaseSubjects
from reveal_analyzer.subjects.culprits import CulpritQuery
from reveal_analyzer.subjects.finding_subjects import NamedSubjects
from reveal_analyzer.subjects.history import SubjectHistory
from reveal_contract import catalogue
from reveal_contract.finding import (
    Finding,
    Hypothesis,
    Method,
    State,
)

# percent of confidence
_CERTAIN = 95
_SCORED = 55  # a score above its threshold
_BY_HEIGHT, _BY_METHOD = 20, 8
_MOST = 99


@dataclass(frozen=True)
class EpisodeRecord:
    """Everything known about one episode when a finding is made of it.

    ``subjects`` is what the case keeps about subjects, None for one that is only suspected.
    ``active`` are the starts of its latest active seconds, in order; ``others`` are the culprits of
    other open cases; ``losses`` is what the ledger says of the case.
    """

    node: str
    episode: Episode
    trace: Trace
    methods: tuple[Method, ...]
    state: State
    resolved_ns: int | None = None
    notes: tuple[str, ...] = ()
    subjects: CaseSubjects | None = None
    active: Sequence[int] = ()
    others: frozenset[str] = frozenset()
    losses: MeasuredLosses = field(default_factory=MeasuredLosses)


class Attribution(NamedTuple):
    """Why an episode happened and which subjects are behind it."""

    cause: Cause
    culprits: NamedSubjects


def attribute(
    record: EpisodeRecord, rules: Sequence[HypothesisRule], history: SubjectHistory
) -> Attribution:
    """Return the cause of an episode as it is known now, and its culprits."""
    cause = choice.choose(rules, _evidence_of(record))
    return Attribution(cause, _culprits(record, cause, history))


def finding(record: EpisodeRecord, attribution: Attribution, history: SubjectHistory) -> Finding:
    """Return the finding of an episode."""
    episode, (cause, culprits) = record.episode, attribution
    rule = cause.rule
    columns = _evidence_columns(record, rule)
    score = 100 if episode.matches else round(100 * episode.peak / (1 + episode.peak))
    return Finding(
        id=episode.id_on(record.node),
        node_name=record.node,
        subsystem=cause.subsystem,
        subsystems=tuple(dict.fromkeys((*episode.subsystems, cause.subsystem))),
        severity=episode.severity,
        state=record.state,
        first_observed_ns=episode.first_ns,
        last_observed_ns=episode.last_ns,
        claim=_claim(record, rule, columns, _culprit(culprits)),
        hypothesis=_hypothesis(cause),
        methods=record.methods,
        evidence=tuple(evidence(record.trace, index) for index in columns),
        pods=culprits.pods,
        subjects=culprits.subjects,
        share_metric=culprits.metric,
        victims=_victims(record, rule, history),
        score_percent=score,
        confidence_percent=_confidence(record),
        resolved_ns=record.resolved_ns,
        notes=(
            *record.notes,
            *_loss_notes(record, rule, history),
            *_subject_notes(record),
            *_explained(cause),
        ),
    )


def claim(record: EpisodeRecord, attribution: Attribution) -> str:
    """Return the claim of an episode without its culprit."""
    rule = attribution.cause.rule
    return _claim(record, rule, _evidence_columns(record, rule), "")


def is_symptom_of(
    record: EpisodeRecord, other: EpisodeRecord, rules: Sequence[HypothesisRule]
) -> bool:
    """Return whether an episode shows only symptoms of the cause of another."""
    cause = choice.choose(rules, _evidence_of(other))
    return choice.has_only_symptoms(rules, _evidence_of(record), cause)


def has_other_culprit(
    record: EpisodeRecord, cause: Cause, history: SubjectHistory, seconds: Sequence[int]
) -> bool:
    """Return whether in these active seconds the culprit is back and somebody else is one."""
    episode, subjects = record.episode, record.subjects
    if subjects is None or not subjects.named.first:
        return False
    present = (
        match.rule
        for name, match in episode.matches.items()
        if episode.present_ns.get(name, 0) >= seconds[0]
    )
    rules = [rule for rule in (*present, cause.rule) if rule and rule.subjects]
    queries = (replace(_query(rule, episode), others=record.others) for rule in rules)
    return any(
        found is not None and _program(found.first) != _program(subjects.named.first)
        for query in queries
        if (found := subjects.successor(history, query, seconds))
    )


def _program(name: str) -> str:
    """Return the name of a subject without its process: a program that starts again is the same."""
    return name.rpartition("[")[0] if name.endswith("]") else name


def _evidence_columns(record: EpisodeRecord, rule: HypothesisRule | None) -> list[int]:
    episode = record.episode
    return evidence_columns(record.trace, rule, episode.matches, episode.subsystems)


def _evidence_of(record: EpisodeRecord) -> EpisodeEvidence:
    episode, trace = record.episode, record.trace
    return EpisodeEvidence(
        trace.stats, trace.weights, episode.current_matches, episode.subsystem, episode.subsystems
    )


def _culprits(record: EpisodeRecord, cause: Cause, history: SubjectHistory) -> NamedSubjects:
    """Return the subjects whose change points to the cause."""
    rule = cause.rule
    # an empty list, unlike none, says that no process is at fault: hardware, for example
    if record.subjects is None or (rule and rule.subjects == ()):
        return NamedSubjects()
    if rule is not None and rule.is_measured:
        if record.losses:
            record.subjects.named = record.losses.culprits(history, record.episode.last_ns)
        return record.subjects.named
    if rule is None:
        query = CulpritQuery((), cause.subsystem, fall_counts=_fell(record))
    else:
        query = _query(rule, record.episode)
    query = replace(query, others=record.others)
    return record.subjects.culprits(history, query, record.active)


def _fell(record: EpisodeRecord) -> bool:
    """Return whether the foremost evidence fell: who does less causes no more of anything."""
    columns = _evidence_columns(record, None)
    return bool(columns) and evidence(record.trace, columns[0]).direction == "down"


def _query(rule: HypothesisRule, episode: Episode) -> CulpritQuery:
    """Return which subjects to look for; a signature of a single subject names it itself."""
    match = episode.matches.get(rule.name)
    return CulpritQuery(
        metrics=rule.subjects or (),
        subsystem=rule.subsystem,
        fell=rule.subjects_fell,
        levels=_level_metrics(rule),
        instance=match.instance if match else "",
    )


def _level_metrics(rule: HypothesisRule) -> frozenset[str]:
    """Return the subject metrics whose level by itself is the rule's certain signature."""
    certain = rule.certain
    if certain is None:
        return frozenset()
    absolute = [item for item in (*certain.conditions, *certain.any) if not item.times]
    groups = {catalogue.find(item.metric).metric_group for item in absolute}
    return frozenset(
        metric for metric in rule.subjects or () if catalogue.find(metric).metric_group in groups
    )


def _victims(
    record: EpisodeRecord, rule: HypothesisRule | None, history: SubjectHistory
) -> tuple[str, ...]:
    if record.subjects is None or rule is None:
        return ()
    if rule.is_measured:
        if record.losses:
            record.subjects.hurt = record.losses.victims(history, record.episode.last_ns)
        return record.subjects.hurt
    return record.subjects.victims(history, rule.victims, record.active)


def _subject_notes(record: EpisodeRecord) -> tuple[str, ...]:
    return record.subjects.notes if record.subjects else ()


def _loss_notes(
    record: EpisodeRecord, rule: HypothesisRule | None, history: SubjectHistory
) -> tuple[str, ...]:
    if rule is None or not rule.is_measured or not record.losses:
        return ()
    return record.losses.notes(history, record.episode.last_ns)


def _explained(cause: Cause) -> tuple[str, ...]:
    names = ", ".join(dict.fromkeys(rule.name for rule in cause.explained))
    return (f"also observed, as its symptom: {names}",) if names else ()


def _culprit(culprits: NamedSubjects) -> str:
    """Return what a claim says of the culprit; empty if there is none."""
    return "culprit not known yet" if culprits.undecided else culprits.first


def _claim(
    record: EpisodeRecord, rule: HypothesisRule | None, columns: Sequence[int], culprit: str
) -> str:
    """Return one sentence that rests on the evidence, with the culprit if one is known."""
    if rule is None and not columns:
        sentence = f"{record.episode.subsystem} signals left their baseline"
    elif rule is None:
        sentence = column_claim(record.trace, columns[0])
    else:
        sentence = rule_claim(record.trace, rule, record.episode.matches.get(rule.name))
    return f"{sentence} ({culprit})" if culprit else sentence


def _hypothesis(cause: Cause) -> Hypothesis | None:
    if cause.rule is None:
        return None
    percent = min(_MOST, round(100 * cause.confidence))
    return Hypothesis(cause.rule.name, percent, cause.rule.remediation)


def _confidence(record: EpisodeRecord) -> int:
    """Return percent: high for certain signatures, else by height and agreeing detectors."""
    agreeing = sum(1 for method in record.methods if method.agrees)
    if record.episode.matches:
        return min(_MOST, _CERTAIN + agreeing)
    height = min(1.0, max(0.0, (record.episode.peak - 1) / 3))
    return min(_MOST, round(_SCORED + _BY_HEIGHT * height + _BY_METHOD * agreeing))
