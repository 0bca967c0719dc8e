"""A signature bound to the columns of a plan, and who meets its conditions in a second."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from reveal_analyzer.arrays import Bools, Floats, Indices
from reveal_analyzer.derive.columns import LEVEL, TOTAL, Column, ColumnPlan, PlanColumns
from reveal_analyzer.hypotheses.column_stats import columns_of
from reveal_analyzer.hypotheses.model import CertainSignature, Condition
from reveal_contract.metric import Scope

_DEVICES = frozenset({Scope.NIC, Scope.DISK, Scope.GPU, Scope.PORT})
_NO_VALUES: Floats = np.zeros(0)


class ConditionInputs(NamedTuple):
    """What conditions read: this second's values, and the highest of the accepted baseline.

    ``channels`` are the values of all channels, which tell subjects apart.  Without ``start_ns``
    each call counts as one second.
    """

    values: Floats
    highest: Floats
    cpus: int
    channels: Floats = _NO_VALUES
    start_ns: int | None = None


@dataclass(frozen=True)
class BoundCondition:
    """A condition with the indices of its columns and, pairwise, of their divisors."""

    condition: Condition
    columns: Indices
    divisors: Indices | None
    instances: tuple[str, ...]

    @cached_property
    def _masks(self) -> dict[str, Bools]:
        instances = np.array(self.instances, object)
        return {name: instances == name for name in dict.fromkeys(self.instances)}

    def of_instance(self, name: str) -> Bools | None:
        """Return which of the columns are of an instance, None if none is."""
        return self._masks.get(name)


@dataclass(frozen=True)
class BoundSignature:
    """A signature whose conditions are bound to the columns of a plan."""

    conditions: list[BoundCondition]
    any: list[BoundCondition]
    unless: list[BoundCondition]


def once_open(signature: BoundSignature) -> BoundSignature:
    """Return what a signature asks for while it has an open case.

    No other explanation excludes it, and ``any`` beside ``all`` is how much its onset takes: at
    that limit it would come and go.
    """
    if not signature.unless and not (signature.conditions and signature.any):
        return signature
    return replace(signature, any=[] if signature.conditions else signature.any, unless=[])


@dataclass(frozen=True)
class Met:
    """Columns that met the conditions of a signature for one instance."""

    instance: str
    columns: tuple[Column, ...]
    value: float


def bind(certain: CertainSignature, columns: PlanColumns) -> BoundSignature | None:
    """Bind a signature to columns; return None if the node has not all metrics it needs."""

    def available(all_of: Sequence[Condition]) -> list[BoundCondition]:
        bound = (_bind_condition(condition, columns) for condition in all_of)
        return [condition for condition in bound if condition is not None]

    signature = BoundSignature(
        available(certain.conditions), available(certain.any), available(certain.unless)
    )
    if len(signature.conditions) < len(certain.conditions):
        return None
    return None if certain.any and not signature.any else signature


def _bind_condition(condition: Condition, of: PlanColumns) -> BoundCondition | None:
    columns = columns_of(of, condition.metric, condition.feature, condition.instance)
    if not columns.size:
        return None
    instances = [column.instance for column in of.columns]
    if not condition.ratio_to:
        return BoundCondition(condition, columns, None, tuple(instances[i] for i in columns))
    divisors = {instances[index]: index for index in columns_of(of, condition.ratio_to)}
    pairs = [
        (index, divisors[instances[index]]) for index in columns if instances[index] in divisors
    ]
    if not pairs:
        return None
    numerators, denominators = zip(*pairs, strict=True)
    return BoundCondition(
        condition,
        np.array(numerators, np.intp),
        np.array(denominators, np.intp),
        tuple(instances[index] for index in numerators),
    )


def met_by(signature: BoundSignature, plan: ColumnPlan, inputs: ConditionInputs) -> list[Met]:
    """Return the columns that meet each condition, by instance; empty if it does not match."""
    lead, found = _lead(signature, plan, inputs)
    if lead is None:
        return []
    matches = []
    for candidate in found:
        columns = _rest_met(signature, lead, candidate.instance, plan, inputs)
        if columns is not None:
            matches.append(Met(candidate.instance, (candidate.column, *columns), candidate.value))
    return matches


@dataclass(frozen=True)
class _Candidate:
    """A column that meets the first condition, for one instance, and its value."""

    instance: str
    column: Column
    value: float
    ratio: float


def _lead(
    signature: BoundSignature, plan: ColumnPlan, inputs: ConditionInputs
) -> tuple[BoundCondition | None, list[_Candidate]]:
    """Return the first condition, of ``any`` the first that is met, and who meets it."""
    for condition in signature.conditions[:1] or signature.any:
        candidates = _candidates(condition, plan, inputs)
        if candidates:
            return condition, candidates
    return None, []


def _candidates(
    bound: BoundCondition, plan: ColumnPlan, inputs: ConditionInputs
) -> list[_Candidate]:
    """Return, of each instance, the column with the highest value that meets a condition."""
    ratios = _ratios(bound, inputs)
    met = np.flatnonzero(_is_met(bound, inputs, ratios))
    best: dict[str, tuple[int, _Candidate]] = {}
    for position in met.tolist():
        index = int(bound.columns[position])
        column, ratio = plan.columns[index], float(ratios[position])
        instance = column.instance if column.metric.scope in _DEVICES else ""
        known = best.get(instance)
        if known is None or ratio > known[1].ratio:
            value = float(inputs.values[index])
            best[instance] = index, _Candidate(instance, column, value, ratio)
    return [
        each
        for index, candidate in best.values()
        for each in _by_subject(candidate, index, bound.condition, plan, inputs)
    ]


def _by_subject(
    candidate: _Candidate,
    index: int,
    condition: Condition,
    plan: ColumnPlan,
    inputs: ConditionInputs,
) -> list[_Candidate]:
    """Return a candidate of each subject that meets the condition alone, else the sum of all."""
    total = candidate.column
    comparable = not (condition.times or condition.ratio_to) and condition.below == float("inf")
    if total.feature != TOTAL or not comparable or not inputs.channels.size:
        return [candidate]
    least = condition.above * (inputs.cpus if condition.per else 1)
    alone = [
        _Candidate(name, Column(total.metric, name, LEVEL), value, value)
        for name, value in _values_of_subjects(index, plan, inputs.channels)
        if value >= least
    ]
    return alone or [candidate]


def _values_of_subjects(
    index: int, plan: ColumnPlan, channels: Floats
) -> Iterable[tuple[str, float]]:
    """Yield the subjects of which the column at ``index`` is the sum, and their values."""
    recipe = plan.recipe
    fold = index - recipe.copied.size - recipe.changes.size
    edges = [*recipe.folds.starts.tolist(), recipe.folds.channels.size]
    for channel in recipe.folds.channels[edges[fold] : edges[fold + 1]].tolist():
        yield plan.channels[channel].instance, float(channels[channel])


def _rest_met(
    signature: BoundSignature,
    lead: BoundCondition,
    instance: str,
    plan: ColumnPlan,
    inputs: ConditionInputs,
) -> list[Column] | None:
    """Return the columns that meet the other conditions, None if one is not met.

    What only stays below a limit is no sign of harm.
    """
    columns = []
    for condition in signature.conditions[1:]:
        index = _clearest(condition, instance, inputs)
        if index is None:
            return None
        if not condition.condition.is_upper_limit:
            columns.append(plan.columns[index])
    if signature.conditions and signature.any:
        met = (_clearest(condition, instance, inputs) for condition in signature.any)
        either = next((index for index in met if index is not None), None)
        if either is None:
            return None
        columns.append(plan.columns[either])
    for condition in signature.unless:
        if _clearest(condition, instance, inputs) is not None:
            return None
    return columns


def _clearest(bound: BoundCondition, instance: str, inputs: ConditionInputs) -> int | None:
    """Return the column with the highest value that meets the condition, or None.

    Where the metric has the instance, only that one counts: a slow disk and another busy disk are
    no slow busy disk.
    """
    ratios = _ratios(bound, inputs)
    met = _is_met(bound, inputs, ratios)
    if instance and (own := bound.of_instance(instance)) is not None:
        met = met & own
    if not met.any():
        return None
    return int(bound.columns[int(np.argmax(np.where(met, ratios, -np.inf)))])


def _ratios(bound: BoundCondition, inputs: ConditionInputs) -> Floats:
    """Return the values that the limits of a condition are compared with."""
    values = inputs.values[bound.columns]
    if bound.divisors is not None:
        with np.errstate(all="ignore"):
            values = values / inputs.values[bound.divisors]
    return values / inputs.cpus if bound.condition.per else values


def _is_met(bound: BoundCondition, inputs: ConditionInputs, ratios: Floats) -> Bools:
    condition = bound.condition
    met: Bools = (ratios >= condition.above) & (ratios <= condition.below)
    if condition.times:
        # the metric itself, before it is divided, is compared with its own past
        met &= inputs.values[bound.columns] >= condition.times * inputs.highest[bound.columns]
    return met
