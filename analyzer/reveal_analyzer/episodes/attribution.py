"""From an episode to a finding: cause, culprits, evidence, severity and a one-sentence claim."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from reveal_analyzer.derive.columns import Column
from reveal_analyzer.episodes.trace import Trace
from reveal_analyzer.episodes.tracker import Episode
from reveal_analyzer.formatting import decimal, human
from reveal_analyzer.hypotheses import choice
from reveal_analyzer.hypotheses.choice import Cause, EpisodeEvidence
from reveal_analyzer.hypotheses.model import HypothesisRule
from reveal_analyzer.hypotheses.signatures import ColumnStats
from reveal_analyzer.subjects.culprits import CulpritQuery, NamedSubjects, SubjectHistory
from reveal_contract import severity
from reveal_contract.finding import (
    Evidence,
    Finding,
    Hypothesis,
    Method,
    Severity,
    State,
    finding_id,
)

_MOST_EVIDENCE = 10
_LEAST_WEIGHT = 0.5  # spreads; a column that weighs less is no evidence
# percent of confidence
_CERTAIN = 95
_SCORED = 55  # a score above its threshold
_BY_HEIGHT, _BY_METHOD = 20, 8
_MOST = 99
_UNKNOWN_VALUE = "much"


@dataclass(frozen=True)
class EpisodeRecord:
    """Everything known about one episode when a finding is made of it."""

    node: str
    episode: Episode
    trace: Trace
    methods: tuple[Method, ...]
    state: State
    resolved_ns: int | None = None
    notes: tuple[str, ...] = ()


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
    """Return the finding of an episode.

    Its id is that of the subsystem in which the episode opened.  The id then stays the same when
    a cause in another subsystem explains what was observed first.
    """
    episode, (cause, culprits) = record.episode, attribution
    rule = cause.rule
    columns = _evidence_columns(record, rule)
    score = 100 if episode.matches else round(100 * episode.peak / (1 + episode.peak))
    return Finding(
        id=finding_id(record.node, episode.subsystem, episode.first_ns),
        node_name=record.node,
        subsystem=cause.subsystem,
        subsystems=tuple(dict.fromkeys((*episode.subsystems, cause.subsystem))),
        severity=_severity(episode),
        state=record.state,
        first_observed_ns=episode.first_ns,
        last_observed_ns=episode.last_ns,
        claim=_claim(record, rule, columns, culprits.first),
        hypothesis=_hypothesis(cause),
        methods=record.methods,
        evidence=tuple(evidence(record.trace, index) for index in columns),
        pods=culprits.pods,
        subjects=culprits.subjects,
        victims=_victims(record, rule, culprits, history),
        score_percent=score,
        confidence_percent=_confidence(record),
        resolved_ns=record.resolved_ns,
        notes=(*record.notes, *_explained(cause)),
    )


def is_symptom_of(
    record: EpisodeRecord, other: EpisodeRecord, rules: Sequence[HypothesisRule]
) -> bool:
    """Return whether an episode shows only symptoms of the cause of another."""
    cause = choice.choose(rules, _evidence_of(other))
    return choice.has_only_symptoms(rules, _evidence_of(record), cause)


def _evidence_of(record: EpisodeRecord) -> EpisodeEvidence:
    episode, trace = record.episode, record.trace
    return EpisodeEvidence(
        trace.stats, trace.weights, episode.matches, episode.subsystem, episode.subsystems
    )


def _culprits(record: EpisodeRecord, cause: Cause, history: SubjectHistory) -> NamedSubjects:
    """Return the subjects whose change points to the cause."""
    rule = cause.rule
    # an empty list, unlike none, says that no process is at fault: hardware, for example
    if rule and rule.subjects == ():
        return NamedSubjects()
    metrics = rule.subjects or () if rule else ()
    query = CulpritQuery(metrics, cause.subsystem, rule.subjects_fell if rule else False)
    return history.culprits(query, record.episode.first_ns, record.episode.last_ns)


def _victims(
    record: EpisodeRecord,
    rule: HypothesisRule | None,
    culprits: NamedSubjects,
    history: SubjectHistory,
) -> tuple[str, ...]:
    if not rule or not rule.victims:
        return ()
    victims = history.victims(rule.victims, record.episode.first_ns, record.episode.last_ns)
    return tuple(name for name in victims if name not in culprits.names)


def _explained(cause: Cause) -> tuple[str, ...]:
    names = ", ".join(dict.fromkeys(rule.name for rule in cause.explained))
    return (f"also observed, as its symptom: {names}",) if names else ()


def _evidence_columns(record: EpisodeRecord, rule: HypothesisRule | None) -> list[int]:
    """Return the indices of the columns to list as evidence, at most one per metric group.

    Columns of the cause come first, then those of other signatures, then by weight; symptoms of
    the cause come last.
    """
    stats = record.trace.stats
    if not stats.columns:
        return []
    weights = record.trace.weights
    by_weight = np.argsort(-weights, kind="stable")
    ranked = [int(index) for index in by_weight if weights[index] > _LEAST_WEIGHT]
    order = [*_cause_columns(record, rule), *_signature_columns(record), *ranked]
    symptoms = {symptom.metric for symptom in rule.symptoms} if rule else set()
    order.sort(key=lambda index: stats.columns[index].metric.name in symptoms)
    chosen: dict[str, int] = {}
    for index in order:
        column = stats.columns[index]
        chosen.setdefault(f"{column.metric.metric_group}{column.instance}", index)
    return list(chosen.values())[:_MOST_EVIDENCE]


def _cause_columns(record: EpisodeRecord, rule: HypothesisRule | None) -> list[int]:
    """Return the columns of the cause's signature, and expected ones that left their baseline."""
    if rule is None:
        return []
    stats = record.trace.stats
    return _signature_columns(record, rule) + [
        int(index)
        for expectation in rule.expects
        for index in stats.indices(expectation)
        if stats.excess[:, index].max() > 1.0
    ]


def _signature_columns(record: EpisodeRecord, rule: HypothesisRule | None = None) -> list[int]:
    """Return the columns that met the conditions of one signature, or of all that matched."""
    matches = record.episode.matches
    if rule is None:
        chosen = list(matches.values())
    else:
        chosen = [matches[rule.name]] if rule.name in matches else []
    stats = record.trace.stats
    indices = [stats.index_of(column) for match in chosen for column in match.columns]
    return [index for index in indices if index is not None]


def evidence(trace: Trace, index: int) -> Evidence:
    """Return the line of evidence of one column of an episode."""
    stats = trace.stats
    column = stats.columns[index]
    value, baseline = float(stats.values[index]), float(trace.baseline[index])
    rose = value >= baseline or bool(np.isnan(baseline))
    return Evidence(
        metric=column.metric.name,
        feature=column.feature,
        instance=column.instance,
        value=decimal(value),
        baseline=decimal(baseline),
        unit=_unit(column),
        direction="up" if rose else "down",
        known_as=column.metric.origin,
    )


def _unit(column: Column) -> str:
    is_rate = column.metric.kind == "counter" or column.feature == "mean_change"
    return f"{column.metric.unit}/s" if is_rate else column.metric.unit


def _claim(
    record: EpisodeRecord, rule: HypothesisRule | None, columns: Sequence[int], culprit: str
) -> str:
    """Return one sentence that rests on the evidence."""
    suffix = f" ({culprit})" if culprit else ""
    if rule:
        return _capitalized(rule.claim.format(value=_claim_value(record, rule))) + suffix
    if not columns:
        return f"{record.episode.subsystem} signals left their baseline{suffix}"
    first, stats = columns[0], record.trace.stats
    metric = stats.columns[first].metric
    value = human(float(stats.values[first]), metric.unit, metric.kind)
    baseline = human(float(record.trace.baseline[first]), metric.unit, metric.kind)
    return f"{metric.name} ({metric.origin}) at {value}, baseline {baseline}{suffix}"


def _claim_value(record: EpisodeRecord, rule: HypothesisRule) -> str:
    """Return the value of the rule's first condition or expectation."""
    index = _claim_column(record, rule)
    if index is None:
        return _UNKNOWN_VALUE
    stats = record.trace.stats
    metric = stats.columns[index].metric
    return human(float(stats.values[index]), metric.unit, metric.kind)


def _claim_column(record: EpisodeRecord, rule: HypothesisRule) -> int | None:
    stats, match = record.trace.stats, record.episode.matches.get(rule.name)
    index = stats.index_of(match.columns[0]) if match else None
    return _largest_expected(stats, rule) if index is None else index


def _largest_expected(stats: ColumnStats, rule: HypothesisRule) -> int | None:
    """Return the instance of the first expectation with the highest value."""
    indices = stats.indices(rule.expects[0])
    known = indices[~np.isnan(stats.values[indices])]
    return int(known[int(np.argmax(stats.values[known]))]) if known.size else None


def _hypothesis(cause: Cause) -> Hypothesis | None:
    if cause.rule is None:
        return None
    percent = min(_MOST, round(100 * cause.confidence))
    return Hypothesis(cause.rule.name, percent, cause.rule.remediation)


def _severity(episode: Episode) -> Severity:
    certain = [match.rule.certain.severity for match in episode.matches.values()
               if match.rule.certain]  # fmt: skip
    return severity.of_episode(episode.peak, certain, episode.ranks_lost)


def _confidence(record: EpisodeRecord) -> int:
    """Return percent: high for certain signatures, else by height and agreeing detectors."""
    agreeing = sum(1 for method in record.methods if method.agrees)
    if record.episode.matches:
        return min(_MOST, _CERTAIN + agreeing)
    height = min(1.0, max(0.0, (record.episode.peak - 1) / 3))
    return min(_MOST, round(_SCORED + _BY_HEIGHT * height + _BY_METHOD * agreeing))


def _capitalized(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
