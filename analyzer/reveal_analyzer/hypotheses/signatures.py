"""Deciding: which certain signatures hold in a second, which hypothesis fits an episode."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from typing import NamedTuple

import numpy as np

from reveal_analyzer.arrays import Floats, Indices
from reveal_analyzer.derive.columns import CHANGE, Column, Plan
from reveal_analyzer.hypotheses.model import Certain, Condition, Expectation, Rule
from reveal_analyzer.kernels import backend
from reveal_analyzer.kernels import conditions as gate

FULL = 6.0  # spreads outside the past at which an expectation is wholly met


@dataclass(frozen=True)
class Hit:
    """A certain signature that holds: the rule and, by condition, the column that says so.

    Columns, not their places: an episode outlives the table it began with.
    """

    rule: Rule
    columns: tuple[Column, ...]


class Now(NamedTuple):
    """What conditions look at: this second, and the highest the accepted past held."""

    values: Floats
    highest: Floats
    cpus: int


class Signatures:
    """Evaluates the certain signatures of all rules, second by second, for one node."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        self._rules = [(rule, rule.certain) for rule in rules if rule.certain]
        self._second = 0
        self._met: dict[str, deque[int]] = {}  # the seconds in which each was, the last few
        self._plan: Plan | None = None
        self._places: dict[str, _Looks | None] = {}
        self._gate = _Gate.of([])

    def step(self, plan: Plan, now: Now) -> tuple[list[Hit], list[Hit]]:
        """(signatures that hold long enough, signatures whose conditions hold this second)."""
        if plan is not self._plan:
            self._plan = plan
            self._places = {rule.name: _find(certain, plan) for rule, certain in self._rules}
            self._gate = _Gate.of([self._places[rule.name] for rule, _ in self._rules])
        self._second += 1
        lasting, present = [], []
        for number in self._gate.open(now):
            rule, certain = self._rules[number]
            where = self._places[rule.name]
            columns = _met(where, now) if where else None
            if columns is not None:
                hit = Hit(rule, tuple(plan.columns[at] for at in columns))
                present.append(hit)
                if self._lasts(rule.name, certain):
                    lasting.append(hit)
        return lasting, present

    def _lasts(self, name: str, certain: Certain) -> bool:
        """Count a second in which it was met; whether it was in enough of the last ones."""
        met = self._met.setdefault(name, deque(maxlen=certain.need))
        met.append(self._second)
        return len(met) == certain.need and self._second - met[0] < certain.of


@dataclass(frozen=True)
class _Where:
    """A condition, its columns and, pairwise, those they are divided by."""

    condition: Condition
    columns: Indices
    divisors: Indices | None


@dataclass(frozen=True)
class _Looks:
    """Where the conditions of a signature look on this node."""

    conditions: list[_Where]
    any: list[_Where]
    unless: list[_Where]


@dataclass(frozen=True)
class _Gate:
    """The first condition of every signature (or any of its `any`), all at once: most close here.

    One row an entry: a column, what it is divided by (a column, -1: nothing; the CPUs), the
    limits of its condition, and whose condition it is.
    """

    owner: Indices
    entries: gate.Conditions

    @classmethod
    def of(cls, looks: Sequence[_Looks | None]) -> _Gate:
        entries = [
            (number, column, divisor, where.condition)
            for number, look in enumerate(looks) if look is not None
            for where in look.conditions[:1] or look.any
            for column, divisor in zip(where.columns, _or_none(where), strict=True)
        ]  # fmt: skip
        owner, columns, divisors = (
            np.array([entry[part] for entry in entries], np.intp) for part in range(3)
        )
        asked = [entry[3] for entry in entries]
        limits = np.array([[c.above, c.below, c.times] for c in asked], np.float64).reshape(-1, 3)
        per_cpu = np.array([bool(c.per) for c in asked], np.bool_)
        return cls(owner, gate.Conditions(columns, divisors, limits, per_cpu))

    def open(self, now: Now) -> list[int]:
        """The signatures whose first condition is met by any of its columns, in their order."""
        met = backend.current().matching(self.entries, now.values, now.highest, float(now.cpus))
        return sorted(set(self.owner[met].tolist())) if met.size else []


def _or_none(where: _Where) -> Indices:
    return np.full(where.columns.size, -1) if where.divisors is None else where.divisors


def _find(certain: Certain, plan: Plan) -> _Looks | None:
    """Where each condition looks; None where this node lacks one of the metrics."""

    def present(conditions: Sequence[Condition]) -> list[_Where]:
        found = (_where(condition, plan) for condition in conditions)
        return [where for where in found if where is not None]

    looks = _Looks(present(certain.conditions), present(certain.any), present(certain.unless))
    lacking = len(looks.conditions) < len(certain.conditions) or (certain.any and not looks.any)
    return None if lacking else looks


def _where(condition: Condition, plan: Plan) -> _Where | None:
    columns = matching(plan.columns, condition.metric, condition.feature, condition.instance)
    if not columns.size:
        return None
    if not condition.ratio_to:
        return _Where(condition, columns, None)
    other = {plan.columns[at].instance: at for at in matching(plan.columns, condition.ratio_to, "")}
    pairs = [
        (at, other[plan.columns[at].instance])
        for at in columns
        if plan.columns[at].instance in other
    ]
    if not pairs:
        return None
    top, bottom = zip(*pairs, strict=True)
    return _Where(condition, np.array(top, np.intp), np.array(bottom, np.intp))


def matching(
    columns: Sequence[Column], metric: str, feature: str = "", instance: str = ""
) -> Indices:
    """Columns of a metric; without a feature its level, rate or fold, never its change."""
    return np.array(
        [
            at
            for at, c in enumerate(columns)
            if c.metric.name == metric and _fits(c, feature, instance)
        ],
        np.intp,
    )


def _fits(column: Column, feature: str, instance: str) -> bool:
    if instance and not fnmatchcase(column.instance, instance):
        return False
    return column.feature == feature if feature else column.feature != CHANGE


def _met(looks: _Looks, now: Now) -> tuple[int, ...] | None:
    """The column that meets each condition, or None where one is not met."""
    found = []
    for where in looks.conditions:
        at = _best(where, now)
        if at is None:
            return None
        found.append(at)
    if looks.any:
        either = [at for where in looks.any if (at := _best(where, now)) is not None]
        if not either:
            return None
        found.append(either[0])
    return None if any(_best(where, now) is not None for where in looks.unless) else tuple(found)


def _best(where: _Where, now: Now) -> int | None:
    """The column that meets the condition most clearly, or None."""
    condition = where.condition
    values = now.values[where.columns]
    novel = values >= condition.times * now.highest[where.columns] if condition.times else True
    if where.divisors is not None:
        with np.errstate(all="ignore"):
            values = values / now.values[where.divisors]
    if condition.per:
        values = values / now.cpus
    good = (values >= condition.above) & (values <= condition.below) & novel
    if not good.any():
        return None
    return int(where.columns[int(np.argmax(np.where(good, values, -np.inf)))])


@dataclass(frozen=True)
class Evidence:
    """What an episode showed: per column mean value and peak excess up and down."""

    columns: tuple[Column, ...]
    values: Floats
    excess: Floats

    @cached_property
    def _by_metric(self) -> dict[str, list[int]]:
        places: dict[str, list[int]] = {}
        for at, column in enumerate(self.columns):
            places.setdefault(column.metric.name, []).append(at)
        return places

    def places(self, item: Expectation) -> Indices:
        """The columns an expectation is about."""
        mine = self._by_metric.get(item.metric, ())
        fitting = [at for at in mine if _fits(self.columns[at], item.feature, item.instance)]
        return np.array(fitting, np.intp)

    def place(self, column: Column) -> int | None:
        """Where a column of an earlier second is now."""
        same = self._by_metric.get(column.metric.name, ())
        return next((at for at in same if self.columns[at].label == column.label), None)


def confidence(rule: Rule, evidence: Evidence) -> float:
    """0 to 1: how much of what the rule expects is there, less what contradicts it.

    Optional evidence counts only where the node has the metric and it said anything; what is left
    over of the others must then carry it alone.
    """
    counted = [item for item in rule.expects if not item.optional or _spoke(item, evidence)]
    weight = sum(item.weight for item in counted)
    if not weight:
        return 0.0
    met = sum(item.weight * degree(item, evidence) for item in counted) / weight
    against = max((degree(item, evidence) for item in rule.contradicts), default=0.0)
    return float(met * (1.0 - against))


def _spoke(item: Expectation, evidence: Evidence) -> bool:
    """Whether any column of it had a value: a pattern of too few events has none."""
    return bool((~np.isnan(evidence.values[evidence.places(item)])).any())


def degree(item: Expectation, evidence: Evidence) -> float:
    """0 to 1: how far one expectation is met, by the instance that meets it best."""
    places = evidence.places(item)
    if not places.size:
        return 0.0
    if item.above is not None or item.below is not None:
        values = _over(item, evidence, places)
        high = values >= (-np.inf if item.above is None else item.above)
        low = values <= (np.inf if item.below is None else item.below)
        return float((high & low).any())
    moved = np.minimum(1.0, evidence.excess[int(item.direction == "down"), places] / FULL)
    if item.at_least is not None:
        moved = np.where(evidence.values[places] >= item.at_least, moved, 0.0)
    return float(moved.max())


def _over(item: Expectation, evidence: Evidence, places: Indices) -> Floats:
    """Values of these columns, divided where the expectation says so; NaN where they cannot be."""
    values = evidence.values[places]
    if not item.ratio_to:
        return values
    below = evidence.places(Expectation(item.ratio_to))
    by = {evidence.columns[at].instance: evidence.values[at] for at in below}
    whole = np.array([by.get(evidence.columns[at].instance, np.nan) for at in places])
    ratio: Floats = np.divide(values, whole, out=np.full(values.shape, np.nan), where=whole > 0)
    return ratio
