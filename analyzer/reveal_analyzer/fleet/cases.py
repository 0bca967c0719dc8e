"""Outliers over the minutes: what lasts becomes a case, is opened once and resolved by itself."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, NamedTuple, TypeVar, get_type_hints

from reveal_analyzer.fleet.inventory import HUGE_PAGES, area
from reveal_analyzer.fleet.measures import IDLE_PAGES, measure
from reveal_analyzer.fleet.outliers import Drift, Outlier
from reveal_contract import severity
from reveal_contract.finding import FindingChange, FindingKind, Severity
from reveal_contract.metric import Subsystem

CALM = 3  # minutes without it until it is resolved
_LASTING = {True: 2, False: 3}  # minutes until a case opens: what is set up, what follows load
_FORGOTTEN = 10  # minutes in which the node could not be compared
_QUIET = 5  # minutes between two changes of a case that are told
_MOST = 10  # signs kept
# settings that are the cause of what a metric shows
_CAUSES = {HUGE_PAGES: IDLE_PAGES}

Flat = TypeVar("Flat", Outlier, Drift)


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
        harmful = [one.score for one in self.outliers if one.harm]
        worst = max(harmful) if self.outliers else None
        return severity.of_outlier(worst, permanent=self.standing)

    @property
    def facts(self) -> tuple[str, ...]:
        return tuple(sorted(one.fact for one in self.drifts))


@dataclass(frozen=True)
class Case:
    """One thing that a node has, or suffers, and its peers do not.

    Minutes are the node's: ``first`` and ``last`` with it, ``judged`` the last compared;
    ``seen`` and ``calm`` count them.  ``told`` is when its finding was told last, and
    ``rank`` and ``facts`` what of.
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
    rank: int = 0
    facts: tuple[str, ...] = ()


CaseChange = tuple[FindingChange, Case]


def signs(outliers: Iterable[Outlier], drifts: Iterable[Drift]) -> dict[Key, Signs]:
    """By node, subsystem and kind.

    Activity joins what it may explain and stands for nothing by itself; so does a setting
    whose effect is there.
    """
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
    for drift in drifts:
        key = Key(drift.node, area(drift.fact), FindingKind.ANOMALY)
        effects = {one.metric for one in found[key].outliers} if key in found else set()
        if _CAUSES.get(drift.fact) not in effects:
            key = key._replace(kind=FindingKind.CONFIGURATION)
        before = found.get(key, Signs())
        found[key] = replace(before, drifts=(*before.drifts, drift)[:_MOST])
    return found


class Cases:
    """All cases of a fleet.  ``rows`` is their state as JSON values, ``load`` takes it back."""

    def __init__(self) -> None:
        self._cases: dict[Key, Case] = {}

    def step(
        self, found: Mapping[Key, Signs], judged: Mapping[str, int], now: int
    ) -> list[CaseChange]:
        """Take in a comparison; ``judged`` is the minute of every node that was compared.

        A node's minute counts once.  ``now`` is the minute most nodes are in.  What happened
        comes back in a fixed order.
        """
        changes = []
        for key in sorted({*self._cases, *found}):
            case, minute = self._cases.get(key), judged.get(key.node)
            if minute is None or (case is not None and minute <= case.judged):
                continue
            if (signs := found.get(key)) is not None:
                changes += self._seen(key, signs, case, minute)
            elif case is not None:
                changes += self._calmed(replace(case, calm=case.calm + 1, judged=minute))
        return changes + self._forget(now)

    @property
    def opened(self) -> list[Case]:
        """What was told and is not resolved."""
        return [case for case in self._cases.values() if case.opened]

    def rows(self) -> list[dict[str, Any]]:
        return [asdict(case) | {"key": list(key)} for key, case in sorted(self._cases.items())]

    def load(self, rows: Iterable[Any]) -> None:
        """Go on where another left off; a row that is none (of another version) is left out."""
        self._cases = {}
        for row in rows:
            try:
                case = _case(row)
            except (TypeError, ValueError, KeyError):
                continue
            self._cases[case.key] = case

    def _seen(self, key: Key, signs: Signs, before: Case | None, minute: int) -> list[CaseChange]:
        if before is None:
            self._cases[key] = Case(key, signs, minute, minute, minute)
            return []
        case = replace(
            before, signs=signs, last=minute, judged=minute, seen=before.seen + 1, calm=0
        )
        change = None
        if not case.opened and case.seen >= _LASTING[signs.standing]:
            change = FindingChange.OPENED
        elif case.opened and minute - case.told >= _QUIET and _is_news(case):
            change = FindingChange.CHANGED
        if change:
            rank = signs.severity.rank
            case = replace(case, opened=True, told=minute, rank=rank, facts=signs.facts)
        self._cases[key] = case
        return [(change, case)] if change else []

    def _calmed(self, case: Case) -> list[CaseChange]:
        if case.opened and case.calm < CALM:
            self._cases[case.key] = case
            return []
        del self._cases[case.key]
        return [(FindingChange.RESOLVED, case)] if case.opened else []

    def _forget(self, now: int) -> list[CaseChange]:
        gone = sorted(key for key, one in self._cases.items() if now - one.judged > _FORGOTTEN)
        cases = [self._cases.pop(key) for key in gone]
        return [(FindingChange.RESOLVED, case) for case in cases if case.opened]


def _one_a_family(outliers: Iterable[Outlier]) -> tuple[Outlier, ...]:
    """Harm before activity, the farthest of each family that votes as one."""
    chosen: dict[str, Outlier] = {}
    for one in sorted(outliers, key=lambda one: (not one.harm, not one.standing, -one.score)):
        made = measure(one.metric)
        assert made is not None
        chosen.setdefault(f"{made.row.vote} {one.job}", one)
    return tuple(chosen.values())[:_MOST]


def _is_news(case: Case) -> bool:
    """Whether it weighs more than was told, or other settings differ."""
    return case.signs.severity.rank > case.rank or case.signs.facts != case.facts


def _case(row: Any) -> Case:
    """Raises ``TypeError``, ``ValueError`` or ``KeyError`` for what is none."""
    node, subsystem, kind = row["key"]
    told = row["signs"]
    made = Signs(_all(Outlier, told["outliers"]), _all(Drift, told["drifts"]))
    if not (made.outliers or made.drifts) or any(measure(o.metric) is None for o in made.outliers):
        raise ValueError("nothing that this version knows")
    if made.outliers and not any(one.harm for one in made.outliers):
        raise ValueError("no harm")
    counted = ("first", "last", "judged", "seen", "calm", "told", "rank")
    return Case(
        key=Key(_text(node), Subsystem(subsystem), FindingKind(kind)),
        signs=made,
        opened=row["opened"] is True,
        facts=tuple(map(_text, row["facts"])),
        **{name: _count(row[name]) for name in counted},
    )


def _all(kind: type[Flat], rows: Sequence[Any]) -> tuple[Flat, ...]:
    """Records whose fields are numbers, texts and flags."""
    hints = get_type_hints(kind)
    for row in rows:
        for spec in fields(kind):
            wanted = (int, float) if hints[spec.name] is float else hints[spec.name]
            if not isinstance(row[spec.name], wanted):
                raise TypeError(f"{spec.name} is {ascii(row[spec.name])[:80]}")
    return tuple(kind(**row) for row in rows)


def _count(value: Any) -> int:
    if not isinstance(value, int):
        raise TypeError("it is no number")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("it is no text")
    return value
