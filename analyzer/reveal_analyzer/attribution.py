"""From an episode to a finding: subsystem, cause, evidence, subjects, severity, one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reveal_analyzer.columns import Column
from reveal_analyzer.episodes import Episode
from reveal_analyzer.hypotheses.rules import Evidence as Shown
from reveal_analyzer.hypotheses.rules import confidence, matching
from reveal_analyzer.hypotheses.schema import Rule
from reveal_analyzer.subjects import SubjectHistory, Wanted
from reveal_analyzer.trace import Trace
from reveal_analyzer.units import decimal, human
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
_NAMED = 0.4  # confidence from which a hypothesis is named
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
    """The finding an episode amounts to now."""
    episode = case.episode
    rule, sureness = cause(case, rules)
    columns = _evidence_columns(case, rule)
    wanted = Wanted(
        rule.subjects if rule else (), episode.subsystem, rule.subjects_fell if rule else False
    )
    named = history.changed(wanted, episode.first_ns, episode.last_ns)
    return Finding(
        id=finding_id(case.node, episode.subsystem, episode.first_ns),
        node_name=case.node,
        subsystem=episode.subsystem,
        subsystems=tuple(episode.subsystems),
        severity=_severity(episode),
        state=case.state,
        first_seen_ns=episode.first_ns,
        last_seen_ns=episode.last_ns,
        claim=_claim(case, rule, columns, named.first),
        hypothesis=_hypothesis(rule, sureness),
        methods=case.methods,
        evidence=tuple(_evidence(case.trace, at) for at in columns),
        pods=named.pods,
        subjects=named.subjects,
        score_percent=round(100 * episode.peak / (1 + episode.peak)) if not episode.hits else 100,
        confidence_percent=_confidence(case),
        resolved_ns=case.resolved_ns,
        notes=case.notes,
    )


def cause(case: Case, rules: Sequence[Rule]) -> tuple[Rule | None, float]:
    """The hypothesis that fits best: one whose certain signature held, else by its evidence."""
    evidence = case.trace.evidence
    mine = case.episode.subsystem
    held = [hit.rule for hit in case.episode.hits.values() if hit.rule.subsystem is mine]
    degrees = {rule.name: confidence(rule, evidence) for rule in rules if rule.subsystem is mine}
    # a signature that held but is contradicted yields to a cause that fits
    certain = [rule for rule in held if degrees.get(rule.name) or not any(degrees.values())]
    if certain:
        best = max(certain, key=lambda rule: degrees.get(rule.name, 0.0))
        return best, max(0.9, degrees.get(best.name, 0.0))
    fitting = [(degrees[rule.name], rule) for rule in rules if rule.subsystem is mine]
    degree, best_rule = max(fitting, key=lambda pair: pair[0], default=(0.0, None))
    return (best_rule, degree) if degree >= _NAMED else (None, 0.0)


def _evidence_columns(case: Case, rule: Rule | None) -> list[int]:
    """Columns that speak, most first: what the signature named, then harm, one a family."""
    evidence = case.trace.evidence
    if not evidence.columns:
        return []
    named = [column for hit in case.episode.hits.values() for column in hit.columns]
    first = [at for column in named if (at := evidence.place(column)) is not None]
    if rule:
        first += [int(at) for item in rule.expects for at in _moved(evidence, item.metric)]
    weight = case.trace.weight
    ranked = [int(at) for at in np.argsort(-weight, kind="stable") if weight[at] > 0.5]
    chosen: dict[str, int] = {}
    for at in first + ranked:
        column = evidence.columns[at]
        chosen.setdefault(f"{column.metric.vote}{column.instance}", at)
    return list(chosen.values())[:_MOST_EVIDENCE]


def _moved(evidence: Shown, metric: str) -> list[int]:
    """Columns of a metric that left their past."""
    places = matching(evidence.columns, metric, "")
    return [int(at) for at in places if evidence.excess[:, at].max() > 1.0]


def _evidence(trace: Trace, at: int) -> Evidence:
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
    hit = case.episode.hits.get(rule.name)
    at = seen.place(hit.columns[0]) if hit else None
    if at is None:
        places = matching(seen.columns, rule.expects[0].metric, rule.expects[0].feature)
        if not places.size:
            return "much"
        at = int(places[int(np.argmax(seen.values[places]))])
    column = seen.columns[at]
    return human(float(seen.values[at]), column.metric.unit, column.metric.kind)


def _hypothesis(rule: Rule | None, sureness: float) -> Hypothesis | None:
    if rule is None:
        return None
    return Hypothesis(rule.name, min(99, round(100 * sureness)), rule.remediation)


def _severity(episode: Episode) -> Severity:
    """The worse of what the certain signatures say and how far the score is over its cut.

    It fades while the episode merely stays.
    """
    scored = (
        Severity.HIGH
        if episode.peak >= 4
        else Severity.MEDIUM
        if episode.peak >= 2
        else Severity.LOW
    )
    certain = [hit.rule.certain.severity for hit in episode.hits.values() if hit.rule.certain]
    heard = certain if certain and episode.peak <= 1 else [scored, *certain]
    worst = max(heard, key=lambda severity: severity.rank)
    return list(Severity)[max(worst.rank - episode.faded, 0)]


def _confidence(case: Case) -> int:
    """Percent: certain signatures are sure; a score gains by height and by agreement."""
    agreeing = sum(1 for method in case.methods if method.agrees)
    if case.episode.hits:
        return min(99, _CERTAIN + agreeing)
    height = min(1.0, max(0.0, (case.episode.peak - 1) / 3))
    return min(99, round(_SCORED + 20 * height + 8 * agreeing))


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]
