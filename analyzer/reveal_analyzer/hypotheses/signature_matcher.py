"""Matching of certain signatures against the seconds of one node.

A signature matches for each device, pod or other subject separately: two disks that are slow are
two causes.  The instance is that of the column that meets the first condition; metrics of the host
and of its CPUs have none.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from reveal_analyzer.arrays import Floats, Indices
from reveal_analyzer.derive.columns import COLUMN_SETS, Column, ColumnPlan, PlanColumns
from reveal_analyzer.hypotheses.bound_signature import (
    BoundCondition,
    BoundSignature,
    ConditionInputs,
    Met,
    bind,
    met_by,
    once_open,
)
from reveal_analyzer.hypotheses.model import CertainSignature, HypothesisRule
from reveal_analyzer.kernels import backend, conditions
from reveal_analyzer.state.tree import StateTree, array, integer, sections, text
from reveal_contract.finding import Severity
from reveal_contract.severity import of_loss
from reveal_contract.time_units import NS_PER_SECOND

MOST_INSTANCES = 8  # of one signature in one second, the highest values first
_LONGEST_HOLD_S = 60  # as the format of hypotheses allows


class CaseKey(NamedTuple):
    """Identifies the cause of a certain signature: its rule, and the device or subject."""

    rule: str
    instance: str = ""


class Harmed(NamedTuple):
    """A subject that lost to another one, and the share of the time that it wanted."""

    subject: str
    share: float


@dataclass(frozen=True)
class SignatureMatch:
    """A certain signature that matches: its rule and, by condition, the column that met it.

    It holds columns instead of their indices, because an episode outlives a channel table.
    ``value`` is that of the first column.  The first column may be that of a single subject, which
    a plan has only as part of a sum.  ``harmed``, most first, is known of a match of the ledger:
    ``instance`` is measured to take their time, and may be a ``newcomer``.
    """

    rule: HypothesisRule
    columns: tuple[Column, ...]
    instance: str = ""
    value: float = float("nan")
    harmed: tuple[Harmed, ...] = ()
    newcomer: bool = False

    @property
    def key(self) -> CaseKey:
        return CaseKey(self.rule.name, self.instance)

    @property
    def severity(self) -> Severity:
        """The severity of the harm, if that is known, else that of its rule."""
        if self.harmed:
            return of_loss(self.harmed[0].share)
        return self.rule.certain.severity if self.rule.certain else Severity.LOW


class Matches(NamedTuple):
    """``sustained`` signatures have matched for as long as they ask, ``present`` ones match now."""

    sustained: list[SignatureMatch]
    present: list[SignatureMatch]

    def joined(self, others: Matches) -> Matches:
        """Return these matches and others of the same second."""
        return Matches(self.sustained + others.sustained, self.present + others.present)


_NONE_KEPT: Mapping[CaseKey, Floats] = MappingProxyType({})


class SignatureMatcher:
    """Matches the certain signatures of all rules against the seconds of one node."""

    def __init__(self, rules: Sequence[HypothesisRule]) -> None:
        self._rules = [(rule, rule.certain) for rule in rules if rule.certain]
        self._certain = _Signatures(tuple(certain for _, certain in self._rules))
        self._numbers = {rule.name: number for number, (rule, _) in enumerate(self._rules)}
        self._now_ns = 0
        self._met: dict[CaseKey, deque[int]] = {}  # the last times at which it matched
        self._plan: ColumnPlan | None = None
        self._bound: Sequence[BoundSignature | None] = ()
        self._prefilter = _Prefilter.of([])

    def save(self) -> StateTree:
        """Return the times at which signatures matched lately."""
        self._forget_old()
        return {
            "now_ns": self._now_ns,
            "met": [
                {"rule": key.rule, "instance": key.instance, "times": np.array(met, np.int64)}
                for key, met in self._met.items()
            ],
        }

    def restore(self, tree: StateTree) -> None:
        """Continue with the times of a state tree; raises ``StateError``."""
        known, met = {rule.name: certain for rule, certain in self._rules}, {}
        for row in sections(tree, "met"):
            key = CaseKey(text(row, "rule"), text(row, "instance"))
            times = array(row, "times", np.int64, (None,))
            if key.rule in known and times.size:
                met[key] = deque(times.tolist(), maxlen=known[key.rule].need)
        self._now_ns, self._met = integer(tree, "now_ns"), met

    def match(
        self,
        plan: ColumnPlan,
        inputs: ConditionInputs,
        kept: Mapping[CaseKey, Floats] = _NONE_KEPT,
        harmless: Collection[str] = (),
    ) -> Matches:
        """Match one second.

        ``kept`` holds, for signatures with an open case, the highest values from before that case:
        a fault that became normal is still the same fault.  ``harmless`` are the parts of lost time
        that nobody loses now: only open cases of rules that ask for such a loss match.
        """
        if plan is not self._plan:
            self._plan = plan
            self._bound, self._prefilter = _bound(self._certain, plan.column_set)
        self._advance(inputs.start_ns)
        candidates = self._prefilter.candidates(inputs)
        if harmless:
            candidates = [k for k in candidates if not self._asks_for(k, harmless)]
        if kept:
            open_rules = {self._numbers[key.rule] for key in kept if key.rule in self._numbers}
            candidates = sorted({*candidates, *open_rules})
        sustained, present = [], []
        for number in candidates:
            for match in self._matches(number, plan, inputs, kept):
                present.append(match)
                if self._is_sustained(match):
                    sustained.append(match)
        return Matches(sustained, present)

    def _asks_for(self, number: int, parts: Collection[str]) -> bool:
        """Return whether a rule matches only if somebody loses one of these parts."""
        rule, certain = self._rules[number]
        return certain.needs_loss and rule.lost_part in parts

    def _advance(self, start_ns: int | None) -> None:
        now_ns = self._now_ns + NS_PER_SECOND if start_ns is None else start_ns
        if now_ns < self._now_ns:  # the clock was set back
            self._met.clear()
        self._now_ns = now_ns

    def _matches(
        self,
        number: int,
        plan: ColumnPlan,
        inputs: ConditionInputs,
        kept: Mapping[CaseKey, Floats],
    ) -> list[SignatureMatch]:
        """Return the matches of one rule, by instance."""
        bound, (rule, _) = self._bound[number], self._rules[number]
        if bound is None:
            return []
        own = {key.instance: highest for key, highest in kept.items() if key.rule == rule.name}
        met = [each for each in met_by(bound, plan, inputs) if each.instance not in own]
        for instance, highest in own.items():
            # what another fault does later does not explain what was there before it
            established = once_open(bound)
            again = met_by(established, plan, inputs._replace(highest=highest))
            met += [each for each in again if each.instance == instance]
        open_here = own.keys() | self._open_instances(rule.name)
        return [
            SignatureMatch(rule, each.columns, each.instance, each.value)
            for each in _highest(met, open_here)
        ]

    def _open_instances(self, rule: str) -> set[str]:
        """Return the instances that matched lately: they keep their place among the highest."""
        return {key.instance for key in self._met if key.rule == rule}

    def _is_sustained(self, match: SignatureMatch) -> bool:
        """Count a second that matched; return whether enough of the last seconds did."""
        certain = match.rule.certain
        assert certain is not None
        if match.key not in self._met:
            self._forget_old()
        met = self._met.setdefault(match.key, deque(maxlen=certain.need))
        met.append(self._now_ns)
        return certain.holds(met, self._now_ns)

    def _forget_old(self) -> None:
        """Forget signatures that have not matched within the longest hold."""
        since_ns = self._now_ns - _LONGEST_HOLD_S * NS_PER_SECOND
        self._met = {key: met for key, met in self._met.items() if met[-1] >= since_ns}


def _highest(met: Sequence[Met], first: Collection[str]) -> list[Met]:
    """Return the instances with the highest values; those of ``first`` come before others."""
    if len(met) <= 1:
        return list(met)
    ranked = sorted(met, key=lambda each: (each.instance not in first, -each.value))
    return ranked[:MOST_INSTANCES]


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
    def of(cls, signatures: Sequence[BoundSignature | None]) -> _Prefilter:
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


class _Signatures:
    """Signatures of one process, known by identity: to hash all their conditions takes long."""

    def __init__(self, members: tuple[CertainSignature, ...]) -> None:
        self.members = members
        self._ids = tuple(map(id, members))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Signatures) and self._ids == other._ids

    def __hash__(self) -> int:
        return hash(self._ids)


@lru_cache(maxsize=COLUMN_SETS)
def _bound(
    signatures: _Signatures, columns: PlanColumns
) -> tuple[Sequence[BoundSignature | None], _Prefilter]:
    """Return the signatures bound to columns, for all nodes that have these."""
    bound = tuple(bind(certain, columns) for certain in signatures.members)
    return bound, _Prefilter.of(bound)


def _divisors_or_none(bound: BoundCondition) -> Indices:
    return np.full(bound.columns.size, -1) if bound.divisors is None else bound.divisors
