"""Outliers over the minutes: what lasts becomes a case, is opened once and resolved by itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

from reveal_analyzer.configuration.watch import CHANGED
from reveal_analyzer.fleet.compare import Drift, Outlier
from reveal_analyzer.fleet.inventory import area
from reveal_analyzer.fleet.measures import measure
from reveal_analyzer.sinks import OPENED, RESOLVED
from reveal_contract.finding import FindingKind, Severity
from reveal_contract.metric import Subsystem

_LASTING = {True: 2, False: 3}  # minutes until a case opens: what is set up, what follows load
_CALM = 3  # minutes without it until it is resolved
_FORGOTTEN = 10  # minutes in which the node could not be compared
_QUIET = 5  # minutes between two changes of a case that are told
_MOST = 10  # signs kept


class Key(NamedTuple):
    """What a case is about: one node, one subsystem, harm or the mere setting."""

    node: str
    subsystem: Subsystem
    kind: FindingKind


@dataclass(frozen=True)
class Signs:
    """What speaks against one node in one subsystem in one minute, most first."""

    outliers: tuple[Outlier, ...] = ()
    drifts: tuple[Drift, ...] = ()

    @property
    def standing(self) -> bool:
        """Whether it is set up so, and two minutes tell as much as ten."""
        return bool(self.drifts) or any(one.standing for one in self.outliers)

    @property
    def first(self) -> Outlier | Drift:
        """What says most."""
        return self.outliers[0] if self.outliers else self.drifts[0]

    @property
    def severity(self) -> Severity:
        """A setting is said, not urged; what is missing for good weighs more than a bad hour."""
        if not self.outliers:
            return Severity.LOW
        worst = max(one.score for one in self.outliers if one.harm)
        if worst >= 4 and not self.standing:
            return Severity.HIGH
        return Severity.MEDIUM if worst >= 2 or self.standing else Severity.LOW


@dataclass(frozen=True)
class Case:
    """One thing that a node has, or suffers, and its peers do not.

    Minutes are the node's: ``first`` and ``last`` with it, ``judged`` the last compared;
    ``seen`` and ``calm`` count them.  ``told`` is when a change was told last.
    """

    key: Key
    signs: Signs
    first: int
    last: int
    judged: int
    seen: int = 1
    calm: int = 0
    opened: bool = False
    told: int = 0


def signs(outliers: Iterable[Outlier], drifts: Iterable[Drift]) -> dict[Key, Signs]:
    """By node, subsystem and kind.  Activity joins what it may explain and stands for nothing."""
    grouped: dict[Key, list[Outlier]] = {}
    for one in outliers:
        made = measure(one.metric)
        if made is not None:
            key = Key(one.node, made.row.subsystem, FindingKind.ANOMALY)
            grouped.setdefault(key, []).append(one)
    found = {
        key: Signs(outliers=_one_a_family(some))
        for key, some in grouped.items()
        if any(one.harm for one in some)
    }
    settings: dict[Key, list[Drift]] = {}
    for drift in drifts:
        key = Key(drift.node, area(drift.fact), FindingKind.CONFIGURATION)
        settings.setdefault(key, []).append(drift)
    return found | {key: Signs(drifts=tuple(some[:_MOST])) for key, some in settings.items()}


class Cases:
    """All cases of a fleet.  ``rows`` is their state as JSON values, ``load`` takes it back."""

    def __init__(self) -> None:
        self._cases: dict[Key, Case] = {}

    def step(self, found: Mapping[Key, Signs], judged: Mapping[str, int]) -> list[tuple[str, Case]]:
        """Take in a comparison; ``judged`` is the minute of every node that was compared.

        A node's minute counts once.  What happened comes back in a fixed order.
        """
        changes = []
        for key in sorted({*self._cases, *found}):
            case, minute = self._cases.get(key), judged.get(key.node)
            if minute is not None and (case is None or minute > case.judged):
                changes += self._judge(key, case, found.get(key), minute)
        return changes + self._forget(max(judged.values(), default=0))

    def rows(self) -> list[dict[str, Any]]:
        return [asdict(case) | {"key": list(key)} for key, case in sorted(self._cases.items())]

    def load(self, rows: Iterable[Any]) -> None:
        """Go on where another left off; a row that is none (of another version) is left out."""
        self._cases = {}
        for row in rows:
            try:
                case = _case(row)
            except (TypeError, ValueError, KeyError, IndexError):
                continue
            self._cases[case.key] = case

    def _judge(
        self, key: Key, case: Case | None, now: Signs | None, minute: int
    ) -> list[tuple[str, Case]]:
        if case is None:
            if now is not None:
                self._cases[key] = Case(key, now, minute, minute, minute)
            return []
        if now is None:
            return self._calmed(replace(case, calm=case.calm + 1, judged=minute))
        before = case
        case = replace(
            case, signs=now, last=minute, judged=minute, seen=case.seen + 1, calm=0
        )  # fmt: skip
        change = ""
        if not case.opened and case.seen >= _LASTING[now.standing]:
            change, case = OPENED, replace(case, opened=True, told=minute)
        elif case.opened and minute - case.told >= _QUIET and _other(before.signs, now):
            change, case = CHANGED, replace(case, told=minute)
        self._cases[key] = case
        return [(change, case)] if change else []

    def _calmed(self, case: Case) -> list[tuple[str, Case]]:
        if case.opened and case.calm < _CALM:
            self._cases[case.key] = case
            return []
        del self._cases[case.key]
        return [(RESOLVED, case)] if case.opened else []

    def _forget(self, minute: int) -> list[tuple[str, Case]]:
        gone = [case for case in self._cases.values() if minute - case.judged > _FORGOTTEN]
        for case in gone:
            del self._cases[case.key]
        return [(RESOLVED, case) for case in sorted(gone, key=lambda one: one.key) if case.opened]


def _one_a_family(outliers: Iterable[Outlier]) -> tuple[Outlier, ...]:
    """Harm before activity, the farthest of each family that votes as one."""
    chosen: dict[str, Outlier] = {}
    for one in sorted(outliers, key=lambda one: (not one.harm, not one.standing, -one.score)):
        made = measure(one.metric)
        assert made is not None
        chosen.setdefault(f"{made.row.vote} {one.job}", one)
    return tuple(chosen.values())[:_MOST]


def _other(before: Signs, now: Signs) -> bool:
    """Whether it weighs more than before, or other settings differ."""
    facts = {one.fact for one in before.drifts} != {one.fact for one in now.drifts}
    return facts or now.severity.rank > before.severity.rank


def _case(row: Any) -> Case:
    node, subsystem, kind = row["key"]
    if not isinstance(node, str):
        raise TypeError("a node is a text")
    told = row["signs"]
    made = Signs(
        tuple(Outlier(**one) for one in told["outliers"]),
        tuple(Drift(**one) for one in told["drifts"]),
    )
    made.severity, made.first  # noqa: B018 - raises where there is nothing to tell
    key = Key(node, Subsystem(subsystem), FindingKind(kind))
    return Case(**{**row, "key": key, "signs": made})
