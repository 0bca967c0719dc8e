"""Matching hypotheses: certain signatures against a second, expectations against an episode."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from typing import NamedTuple

import numpy as np

from reveal_analyzer.arrays import Floats, Indices
from reveal_analyzer.derive.columns import CHANGE, Column, ColumnPlan
from reveal_analyzer.hypotheses.model import (
    CertainSignature,
    Condition,
    Expectation,
    HypothesisRule,
)
from reveal_analyzer.kernels import backend, conditions

FULL_EXCESS = 6.0  # spreads outside the baseline at which an expectation is fully met


@dataclass(frozen=True)
class SignatureMatch:
    """A certain signature that matches: its rule and, by condition, the column that met it.

    It holds columns instead of their indices, because an episode outlives a channel table.
    """

    rule: HypothesisRule
    columns: tuple[Column, ...]


class ConditionInputs(NamedTuple):
    """What conditions read: this second's values, and the highest of the accepted baseline."""

    values: Floats
    highest: Floats
    cpus: int


class SignatureMatcher:
    """Matches the certain signatures of all rules against the seconds of one node."""

    def __init__(self, rules: Sequence[HypothesisRule]) -> None:
        self._rules = [(rule, rule.certain) for rule in rules if rule.certain]
        self._second = 0
        self._met: dict[str, deque[int]] = {}  # by rule, the last seconds in which it matched
        self._plan: ColumnPlan | None = None
        self._bound: list[_BoundSignature | None] = []
        self._prefilter = _Prefilter.of([])

    def match(
        self, plan: ColumnPlan, inputs: ConditionInputs
    ) -> tuple[list[SignatureMatch], list[SignatureMatch]]:
        """Match one second; return (sustained, present) signatures.

        Present ones match in this second, sustained ones have matched for as long as they ask.
        """
        if plan is not self._plan:
            self._plan = plan
            self._bound = [_bind(certain, plan) for _, certain in self._rules]
            self._prefilter = _Prefilter.of(self._bound)
        self._second += 1
        sustained, present = [], []
        for number in self._prefilter.candidates(inputs):
            rule, certain = self._rules[number]
            bound = self._bound[number]
            indices = _met_by(bound, inputs) if bound else None
            if indices is not None:
                match = SignatureMatch(rule, tuple(plan.columns[index] for index in indices))
                present.append(match)
                if self._is_sustained(rule.name, certain):
                    sustained.append(match)
        return sustained, present

    def _is_sustained(self, name: str, certain: CertainSignature) -> bool:
        """Count a second that matched; return whether enough of the last seconds did."""
        met = self._met.setdefault(name, deque(maxlen=certain.need))
        met.append(self._second)
        return len(met) == certain.need and self._second - met[0] < certain.of


@dataclass(frozen=True)
class _BoundCondition:
    """A condition with the indices of its columns and, pairwise, of their divisors."""

    condition: Condition
    columns: Indices
    divisors: Indices | None


@dataclass(frozen=True)
class _BoundSignature:
    """A signature whose conditions are bound to the columns of a plan."""

    conditions: list[_BoundCondition]
    any: list[_BoundCondition]
    unless: list[_BoundCondition]


@dataclass(frozen=True)
class _Prefilter:
    """The first condition of every signature (or all of its `any`), tested in one kernel call.

    Few signatures pass, so that the rest of their conditions costs little.  Each row of
    ``entries`` is a column, its divisor (a column or -1, and the CPUs) and the limits; ``owner``
    is the number of the signature.
    """

    owner: Indices
    entries: conditions.Conditions

    @classmethod
    def of(cls, signatures: Sequence[_BoundSignature | None]) -> _Prefilter:
        rows = [
            (number, column, divisor, bound.condition)
            for number, signature in enumerate(signatures) if signature is not None
            for bound in signature.conditions[:1] or signature.any
            for column, divisor in zip(bound.columns, _divisors_or_none(bound), strict=True)
        ]  # fmt: skip
        owner, columns, divisors = (
            np.array([row[part] for row in rows], np.intp) for part in range(3)
        )
        tested = [row[3] for row in rows]
        limits = np.array([[c.above, c.below, c.times] for c in tested], np.float64).reshape(-1, 3)
        per_cpu = np.array([bool(c.per) for c in tested], np.bool_)
        return cls(owner, conditions.Conditions(columns, divisors, limits, per_cpu))

    def candidates(self, inputs: ConditionInputs) -> list[int]:
        """Return, in order, the signatures whose first condition some column meets."""
        met = backend.current().matching(
            self.entries, inputs.values, inputs.highest, float(inputs.cpus)
        )
        return sorted(set(self.owner[met].tolist())) if met.size else []


def _divisors_or_none(bound: _BoundCondition) -> Indices:
    return np.full(bound.columns.size, -1) if bound.divisors is None else bound.divisors


def _bind(certain: CertainSignature, plan: ColumnPlan) -> _BoundSignature | None:
    """Bind a signature to a plan; return None if the node has not all metrics it needs."""

    def available(all_of: Sequence[Condition]) -> list[_BoundCondition]:
        bound = (_bind_condition(condition, plan) for condition in all_of)
        return [condition for condition in bound if condition is not None]

    signature = _BoundSignature(
        available(certain.conditions), available(certain.any), available(certain.unless)
    )
    if len(signature.conditions) < len(certain.conditions):
        return None
    return None if certain.any and not signature.any else signature


def _bind_condition(condition: Condition, plan: ColumnPlan) -> _BoundCondition | None:
    columns = columns_of(plan.columns, condition.metric, condition.feature, condition.instance)
    if not columns.size:
        return None
    if not condition.ratio_to:
        return _BoundCondition(condition, columns, None)
    divisors = {
        plan.columns[index].instance: index
        for index in columns_of(plan.columns, condition.ratio_to)
    }
    pairs = [
        (index, divisors[plan.columns[index].instance])
        for index in columns
        if plan.columns[index].instance in divisors
    ]
    if not pairs:
        return None
    numerators, denominators = zip(*pairs, strict=True)
    return _BoundCondition(
        condition, np.array(numerators, np.intp), np.array(denominators, np.intp)
    )


def columns_of(
    columns: Sequence[Column], metric: str, feature: str = "", instance: str = ""
) -> Indices:
    """Return the indices of a metric's columns; without a feature all but its rate of change."""
    return np.array(
        [
            index
            for index, c in enumerate(columns)
            if c.metric.name == metric and _fits(c, feature, instance)
        ],
        np.intp,
    )


def _fits(column: Column, feature: str, instance: str) -> bool:
    if instance and not fnmatchcase(column.instance, instance):
        return False
    return column.feature == feature if feature else column.feature != CHANGE


def _met_by(signature: _BoundSignature, inputs: ConditionInputs) -> tuple[int, ...] | None:
    """Return the column that meets each condition, or None if the signature does not match."""
    found = []
    for condition in signature.conditions:
        index = _clearest(condition, inputs)
        if index is None:
            return None
        found.append(index)
    if signature.any:
        met = (_clearest(condition, inputs) for condition in signature.any)
        either = [index for index in met if index is not None]
        if not either:
            return None
        found.append(either[0])
    if any(_clearest(condition, inputs) is not None for condition in signature.unless):
        return None
    return tuple(found)


def _clearest(bound: _BoundCondition, inputs: ConditionInputs) -> int | None:
    """Return the column with the highest value that meets the condition, or None."""
    condition = bound.condition
    values = inputs.values[bound.columns]
    # `times` compares the metric itself, before it is divided, with its own past
    new = values >= condition.times * inputs.highest[bound.columns] if condition.times else True
    if bound.divisors is not None:
        with np.errstate(all="ignore"):
            values = values / inputs.values[bound.divisors]
    if condition.per:
        values = values / inputs.cpus
    met = (values >= condition.above) & (values <= condition.below) & new
    if not met.any():
        return None
    return int(bound.columns[int(np.argmax(np.where(met, values, -np.inf)))])


@dataclass(frozen=True)
class ColumnStats:
    """Columns of an episode, each with its mean value and its peak excess up and down."""

    columns: tuple[Column, ...]
    values: Floats
    excess: Floats

    @cached_property
    def _by_metric(self) -> dict[str, list[int]]:
        by_metric: dict[str, list[int]] = {}
        for index, column in enumerate(self.columns):
            by_metric.setdefault(column.metric.name, []).append(index)
        return by_metric

    def indices(self, expectation: Expectation) -> Indices:
        """Return the columns that an expectation is about."""
        feature, instance = expectation.feature, expectation.instance
        of_metric = self._by_metric.get(expectation.metric, ())
        fitting = [i for i in of_metric if _fits(self.columns[i], feature, instance)]
        return np.array(fitting, np.intp)

    def index_of(self, column: Column) -> int | None:
        """Return the index of a column of an earlier plan, if it is still there."""
        of_metric = self._by_metric.get(column.metric.name, ())
        return next((i for i in of_metric if self.columns[i].label == column.label), None)


def confidence(rule: HypothesisRule, stats: ColumnStats) -> float:
    """Return from 0 to 1 how much of what the rule expects is there, less contradictions.

    Optional evidence counts only if the node has the metric and it had a value; otherwise the
    weight is shared by the rest.
    """
    counted = [item for item in rule.expects if not item.optional or _has_value(item, stats)]
    weight = sum(item.weight for item in counted)
    if not weight:
        return 0.0
    met = sum(item.weight * degree(item, stats) for item in counted) / weight
    against = max((degree(item, stats) for item in rule.contradicts), default=0.0)
    return float(met * (1.0 - against))


def _has_value(expectation: Expectation, stats: ColumnStats) -> bool:
    """Return whether any column had a value; a ratio of too few events has none."""
    return bool((~np.isnan(stats.values[stats.indices(expectation)])).any())


def degree(expectation: Expectation, stats: ColumnStats) -> float:
    """Return from 0 to 1 how far an expectation is met by the instance that meets it best."""
    indices = stats.indices(expectation)
    if not indices.size:
        return 0.0
    if expectation.above is not None or expectation.below is not None:
        values = _divided(expectation, stats, indices)
        high = values >= (-np.inf if expectation.above is None else expectation.above)
        low = values <= (np.inf if expectation.below is None else expectation.below)
        return float((high & low).any())
    row = int(expectation.direction == "down")
    moved = np.minimum(1.0, stats.excess[row, indices] / FULL_EXCESS)
    if expectation.minimum is not None:
        moved = np.where(stats.values[indices] >= expectation.minimum, moved, 0.0)
    return float(moved.max())


def _divided(expectation: Expectation, stats: ColumnStats, indices: Indices) -> Floats:
    """Return the values of these columns, divided by ``ratio_to``; NaN where that is not > 0."""
    values = stats.values[indices]
    if not expectation.ratio_to:
        return values
    divisors = stats.indices(Expectation(expectation.ratio_to))
    by_instance = {stats.columns[i].instance: stats.values[i] for i in divisors}
    whole = np.array([by_instance.get(stats.columns[i].instance, np.nan) for i in indices])
    ratio: Floats = np.divide(values, whole, out=np.full(values.shape, np.nan), where=whole > 0)
    return ratio
