"""From an episode to a finding: subsystem, cause, evidence, subjects, severity, one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reveal_analyzer.derive.columns import Column
from reveal_analyzer.episodes.trace import Trace
from reveal_analyzer.episodes.tracker import Episode
from reveal_analyzer.formatting import decimal, human
from reveal_analyzer.hypotheses import choice
from reveal_analyzer.hypotheses.choice import Cause
from reveal_analyzer.hypotheses.loader import Rule
from reveal_analyzer.hypotheses.signatures import Evidence as Shown
from reveal_analyzer.subjects.history import Named, SubjectHistory, Wanted
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
_CERTAIN = 95  # percent
_SCORED = 55  # percent: a score over its cut, before agreement counts


@dataclass(frozen=True)
class Case:
    """Everything known about one episode when a finding is made of it."""

    node: str
    episode: Episode
    trace: Trace
    methods: tuple[Method, ...]
    state: State
    resolved_ns: int | None = None
    notes: tuple[str, ...] = ()


def finding(case: Case, rules: Sequence[Rule], history: SubjectHistory) -> Finding:
    """The finding an episode amounts to now.

    Its id is that of the subsystem in which the episode opened, so that it stays the same when
    a cause elsewhere explains what was seen first.
    """
    episode = case.episode
    cause = choice.choose(rules, _shown(case))
    rule = cause.rule
    columns = _evidence_columns(case, rule)
    named = _culprits(case, cause, history)
    return Finding(
        id=finding_id(case.node, episode.subsystem, episode.first_ns),
        node_name=case.node,
        subsystem=cause.subsystem,
        subsystems=tuple(dict.fromkeys((*episode.subsystems, cause.subsystem))),
        severity=_severity(episode),
        state=case.state,
        first_seen_ns=episode.first_ns,
        last_seen_ns=episode.last_ns,
        claim=_claim(case, rule, columns, named.first),
        hypothesis=_hypothesis(rule, cause.sureness),
        methods=case.methods,
        evidence=tuple(evidence(case.trace, at) for at in columns),
        pods=named.pods,
        subjects=named.subjects,
        victims=_victims(case, rule, named, history),
        score_percent=round(100 * episode.peak / (1 + episode.peak)) if not episode.hits else 100,
        confidence_percent=_confidence(case),
        resolved_ns=case.resolved_ns,
        notes=(*case.notes, *_explained(cause)),
    )


def only_symptoms(case: Case, of: Case, rules: Sequence[Rule]) -> bool:
    """Whether a case is nothing but what the cause of another one brings about."""
    return choice.only_symptoms(rules, _shown(case), choice.choose(rules, _shown(of)))


def _shown(case: Case) -> choice.Shown:
    episode = case.episode
    return choice.Shown(
        case.trace.evidence, case.trace.weight, episode.hits, episode.subsystem, episode.subsystems
    )


def _culprits(case: Case, cause: Cause, history: SubjectHistory) -> Named:
    """Whose change points to the cause; nobody where a hypothesis says that no process does."""
    rule = cause.rule
    if rule and rule.subjects == ():
        return Named()
    metrics = rule.subjects or () if rule else ()
    wanted = Wanted(metrics, cause.subsystem, rule.subjects_fell if rule else False)
    return history.changed(wanted, case.episode.first_ns, case.episode.last_ns)


def _victims(
    case: Case, rule: Rule | None, named: Named, history: SubjectHistory
) -> tuple[str, ...]:
    if not rule or not rule.victims:
        return ()
    hurt = history.hurt(rule.victims, case.episode.first_ns, case.episode.last_ns)
    return tuple(name for name in hurt if name not in named.names)


def _explained(cause: Cause) -> tuple[str, ...]:
    names = ", ".join(dict.fromkeys(rule.name for rule in cause.explained))
    return (f"seen too, as its symptom: {names}",) if names else ()


def _evidence_columns(case: Case, rule: Rule | None) -> list[int]:
    """Columns that speak, most first, one a family: the cause's own, then harm, then symptoms."""
    evidence = case.trace.evidence
    if not evidence.columns:
        return []
    weight = case.trace.weight
    ranked = [int(at) for at in np.argsort(-weight, kind="stable") if weight[at] > 0.5]
    order = [*_own_columns(case, rule), *_signature_columns(case), *ranked]
    symptoms = {symptom.metric for symptom in rule.symptoms} if rule else set()
    order.sort(key=lambda at: evidence.columns[at].metric.name in symptoms)
    chosen: dict[str, int] = {}
    for at in order:
        column = evidence.columns[at]
        chosen.setdefault(f"{column.metric.vote}{column.instance}", at)
    return list(chosen.values())[:_MOST_EVIDENCE]


def _own_columns(case: Case, rule: Rule | None) -> list[int]:
    """What the cause's own signature named, and what it expects that did leave its past."""
    if rule is None:
        return []
    seen = case.trace.evidence
    return _signature_columns(case, rule) + [
        int(at)
        for item in rule.expects
        for at in seen.places(item)
        if seen.excess[:, at].max() > 1.0
    ]


def _signature_columns(case: Case, rule: Rule | None = None) -> list[int]:
    """The columns that met the conditions of one signature, or of all that held."""
    hits = case.episode.hits
    chosen = hits.values() if rule is None else [hits[rule.name]] if rule.name in hits else []
    places = [case.trace.evidence.place(column) for hit in chosen for column in hit.columns]
    return [at for at in places if at is not None]


def evidence(trace: Trace, at: int) -> Evidence:
    """The line of evidence that a column of an episode is."""
    seen = trace.evidence
    column = seen.columns[at]
    value, usual = float(seen.values[at]), float(trace.baseline[at])
    return Evidence(
        metric=column.metric.name,
        feature=column.feature,
        instance=column.instance,
        value=decimal(value),
        baseline=decimal(usual),
        unit=_unit(column),
        direction="up" if value >= usual or usual != usual else "down",  # noqa: PLR0124 - NaN
        known_as=column.metric.origin,
    )


def _unit(column: Column) -> str:
    rate = column.metric.kind == "counter" or column.feature == "mean_change"
    return f"{column.metric.unit}/s" if rate else column.metric.unit


def _claim(case: Case, rule: Rule | None, columns: Sequence[int], first: str) -> str:
    """One sentence that rests on the evidence."""
    who = f" ({first})" if first else ""
    if rule:
        return _capital(rule.claim.format(value=_telling_value(case, rule))) + who
    if not columns:
        return f"{case.episode.subsystem} signals left their usual range{who}"
    seen = case.trace.evidence
    column = seen.columns[columns[0]]
    metric = column.metric
    value = human(float(seen.values[columns[0]]), metric.unit, metric.kind)
    usual = human(float(case.trace.baseline[columns[0]]), metric.unit, metric.kind)
    return f"{metric.name} ({metric.origin}) at {value}, usually {usual}{who}"


def _telling_value(case: Case, rule: Rule) -> str:
    """The value of the first condition or expectation of the rule, for its sentence."""
    seen = case.trace.evidence
    at = _telling_column(case, rule)
    if at is None:
        return "much"
    column = seen.columns[at]
    return human(float(seen.values[at]), column.metric.unit, column.metric.kind)


def _telling_column(case: Case, rule: Rule) -> int | None:
    hit = case.episode.hits.get(rule.name)
    at = case.trace.evidence.place(hit.columns[0]) if hit else None
    return _largest(case.trace.evidence, rule) if at is None else at


def _largest(seen: Shown, rule: Rule) -> int | None:
    """Of the instances of the first expectation the one with most."""
    places = seen.places(rule.expects[0])
    known = places[~np.isnan(seen.values[places])]
    return int(known[int(np.argmax(seen.values[known]))]) if known.size else None


def _hypothesis(rule: Rule | None, sureness: float) -> Hypothesis | None:
    if rule is None:
        return None
    return Hypothesis(rule.name, min(99, round(100 * sureness)), rule.remediation)


def _severity(episode: Episode) -> Severity:
    certain = [hit.rule.certain.severity for hit in episode.hits.values() if hit.rule.certain]
    return severity.of_episode(episode.peak, certain, episode.faded)


def _confidence(case: Case) -> int:
    """Percent: certain signatures are sure; a score gains by height and by agreement."""
    agreeing = sum(1 for method in case.methods if method.agrees)
    if case.episode.hits:
        return min(99, _CERTAIN + agreeing)
    height = min(1.0, max(0.0, (case.episode.peak - 1) / 3))
    return min(99, round(_SCORED + 20 * height + 8 * agreeing))


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
