"""Evidence of a finding: the columns that explain the harm, and their lines."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from reveal_analyzer.derive.columns import Column
from reveal_analyzer.episodes.trace import Trace
from reveal_analyzer.formatting import decimal
from reveal_analyzer.hypotheses.model import HypothesisRule
from reveal_analyzer.hypotheses.signature_matcher import SignatureMatch
from reveal_contract.finding import Evidence
from reveal_contract.metric import Harm, Subsystem

Matches = Mapping[str, SignatureMatch]  # by the name of their rule

_MOST_EVIDENCE = 10
_MOST_ACTIVITY = 3  # columns without a harmful direction, of a finding without a known cause
_LEAST_WEIGHT = 0.5  # spreads; a column that weighs less is no evidence
_LEAST_EXCESS = 1.0  # spreads; an expected column that moved less is no evidence


def evidence_columns(
    trace: Trace,
    rule: HypothesisRule | None,
    matches: Matches,
    subsystems: Collection[Subsystem],
) -> list[int]:
    """Return the indices of the columns to list as evidence, at most one per metric group.

    Columns of the cause come first, then those of other signatures, then by weight; symptoms of
    the cause come last.  What a known cause does not describe is evidence of it only if it is harm
    in one of the ``subsystems`` that the case affects, or in that of the cause: other harm happened
    at the same time.
    """
    if not trace.stats.columns:
        return []
    columns = trace.stats.columns
    order = [*_cause_columns(trace, rule, matches), *_signature_columns(trace, matches)]
    order += _weighty_columns(trace, rule, subsystems)
    symptoms = {symptom.metric for symptom in rule.symptoms} if rule else set()
    order.sort(key=lambda index: columns[index].metric.name in symptoms)
    chosen: dict[str, int] = {}
    for index in order:
        column = columns[index]
        chosen.setdefault(f"{column.metric.metric_group}{column.instance}", index)
    return list(chosen.values())[:_MOST_EVIDENCE]


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


def _cause_columns(trace: Trace, rule: HypothesisRule | None, matches: Matches) -> list[int]:
    """Return the columns of the cause's signature, and expected ones that left their baseline."""
    if rule is None:
        return []
    own = {name: match for name, match in matches.items() if name == rule.name}
    return _signature_columns(trace, own) + [
        int(index)
        for expectation in rule.expects
        for index in trace.stats.indices(expectation)
        if trace.stats.excess[:, index].max() > _LEAST_EXCESS
    ]


def _signature_columns(trace: Trace, matches: Matches) -> list[int]:
    """Return the columns that met the conditions of the signatures that matched."""
    indices = [
        trace.stats.index_of(column) for match in matches.values() for column in match.columns
    ]
    return [index for index in indices if index is not None]


def _weighty_columns(
    trace: Trace, rule: HypothesisRule | None, subsystems: Collection[Subsystem]
) -> list[int]:
    """Return the columns that weigh most: what the cause explains, or some activity without one."""
    weights, columns = trace.weights, trace.stats.columns
    chosen, activity = [], 0
    for index in np.argsort(-weights, kind="stable"):
        if weights[index] <= _LEAST_WEIGHT:
            break
        column = columns[index]
        if rule and not _is_explained(column, rule, subsystems):
            continue
        if not rule and column.harm is Harm.NEITHER:
            activity += 1
            if activity > _MOST_ACTIVITY:
                continue
        chosen.append(int(index))
    return chosen


def _is_explained(column: Column, rule: HypothesisRule, subsystems: Collection[Subsystem]) -> bool:
    """Return whether a known cause explains that a column left its baseline."""
    metric = column.metric
    if metric.name in rule.described_metrics():
        return True
    affected = metric.subsystem is rule.subsystem or metric.subsystem in subsystems
    return affected and column.harm is not Harm.NEITHER


def _unit(column: Column) -> str:
    is_rate = column.metric.kind == "counter" or column.feature == "mean_change"
    return f"{column.metric.unit}/s" if is_rate else column.metric.unit
