"""Cases of a fleet: deviations of a node that last open a finding once, and resolve it later."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, NamedTuple, TypeVar, get_type_hints

from reveal_analyzer.fleet.compared import ComparedNodes
from reveal_analyzer.fleet.inventory import HUGE_PAGES, subsystem_of_fact
from reveal_analyzer.fleet.measures import IDLE_PAGES, measure
from reveal_analyzer.fleet.outliers import Drift, Outlier
from reveal_contract import severity
from reveal_contract.finding import FindingChange, FindingKind, Severity
from reveal_contract.metric import Subsystem

CALM_MINUTES = 3  # without a deviation until the case is resolved
# minutes until a case opens, by whether it is standing: one that follows the load takes longer
_OPENS_AFTER = {True: 2, False: 3}
_FORGOTTEN_MINUTES = 10  # in which the node could not be compared
_QUIET_MINUTES = 5  # between two reported changes of a case
_MOST_KEPT = 10  # outliers, and settings
_LOST_WORK = Subsystem.CPU  # of a part of a job that does less of everything: one case
# settings that explain what a metric shows
_EFFECTS = {HUGE_PAGES: IDLE_PAGES}
# names of fields in saved rows, which analyzers of other versions read
_ROW_NAMES = {
    "deviations": "signs", "minutes": "seen", "reported_minute": "told", "expected": "usual",
}  # fmt: skip

Flat = TypeVar("Flat", Outlier, Drift)


class CaseKey(NamedTuple):
    """What a case is about: one node, one subsystem, and harm or a mere setting."""

    node: str
    subsystem: Subsystem
    kind: FindingKind


@dataclass(frozen=True)
class Deviations:
    """How one node differs from its peers in one subsystem in one minute, most first."""

    outliers: tuple[Outlier, ...] = ()
    drifts: tuple[Drift, ...] = ()

    @property
    def standing(self) -> bool:
        """Whether the cause is the node's setup, so that it shows after two minutes."""
        return bool(self.drifts) or any(outlier.standing for outlier in self.outliers)

    @property
    def first(self) -> Outlier | Drift:
        """The most significant one."""
        return self.outliers[0] if self.outliers else self.drifts[0]

    @property
    def severity(self) -> Severity:
        harmful = [outlier.score for outlier in self.outliers if outlier.harm]
        worst = max(harmful) if self.outliers else None
        return severity.of_outlier(worst, permanent=self.standing)

    @property
    def facts(self) -> tuple[str, ...]:
        """The names of the settings that differ, sorted."""
        return tuple(sorted(drift.fact for drift in self.drifts))


@dataclass(frozen=True)
class FleetCase:
    """One deviation of a node from its peers, over the minutes.

    ``first`` and ``last`` are the node's minutes with the deviation, ``judged`` is the last one
    compared; ``minutes`` counts those with it, ``calm`` those without it since.
    ``reported_minute`` is that of the last report, ``rank`` and ``facts`` its severity and
    settings.
    """

    key: CaseKey
    deviations: Deviations
    first: int
    last: int
    judged: int
    minutes: int = 1
    calm: int = 0
    opened: bool = False
    reported_minute: int = 0
    rank: int = 0
    facts: tuple[str, ...] = ()


CaseChange = tuple[FindingChange, FleetCase]


def deviations(outliers: Iterable[Outlier], drifts: Iterable[Drift]) -> dict[CaseKey, Deviations]:
    """Group outliers and settings by node, subsystem and kind.

    Activity is kept only beside the harm that it may explain.  A setting joins the outlier that it
    explains, and is a case of its own otherwise.
    """
    grouped: dict[CaseKey, list[Outlier]] = {}
    for outlier in outliers:
        known = measure(outlier.metric)
        if known is not None:
            subsystem = _LOST_WORK if outlier.lost else known.row.subsystem
            key = CaseKey(outlier.node, subsystem, FindingKind.ANOMALY)
            grouped.setdefault(key, []).append(outlier)
    found = {
        key: Deviations(outliers=_worst_by_group(some))
        for key, some in grouped.items()
        if any(outlier.harm for outlier in some)
    }
    for drift in drifts:
        key = CaseKey(drift.node, subsystem_of_fact(drift.fact), FindingKind.ANOMALY)
        effects = {outlier.metric for outlier in found[key].outliers} if key in found else set()
        if _EFFECTS.get(drift.fact) not in effects:
            key = key._replace(kind=FindingKind.CONFIGURATION)
        before = found.get(key, Deviations())
        found[key] = replace(before, drifts=(*before.drifts, drift)[:_MOST_KEPT])
    return found


class FleetCases:
    """All cases of a fleet; ``rows`` returns their state as JSON values, ``load`` restores it."""

    def __init__(self) -> None:
        self._cases: dict[CaseKey, FleetCase] = {}

    def update(
        self, found: Mapping[CaseKey, Deviations], compared: ComparedNodes, now: int
    ) -> list[CaseChange]:
        """Add a comparison; return what opened, changed or resolved, in a fixed order.

        Each minute of a node counts once.  A case that the comparison did not cover waits.
        ``now`` is the minute of most nodes.
        """
        changes = []
        for key in sorted({*self._cases, *found}):
            case, minute = self._cases.get(key), compared.minute(key.node)
            if minute is None or (case is not None and minute <= case.judged):
                continue
            if (current := found.get(key)) is not None:
                changes += self._add_minute(key, current, case, minute)
            elif case is not None and compared.covers(case.deviations.first):
                changes += self._add_calm(replace(case, calm=case.calm + 1, judged=minute))
            elif case is not None and not case.opened:
                del self._cases[key]
        return changes + self._expire(now)

    @property
    def opened(self) -> list[FleetCase]:
        """The cases that were reported and are not resolved."""
        return [case for case in self._cases.values() if case.opened]

    def rows(self) -> list[dict[str, Any]]:
        """Return the state of all cases."""
        return [_row(case) for _, case in sorted(self._cases.items())]

    def load(self, rows: Iterable[Any]) -> None:
        """Continue from the rows of another leader; skip those that this version cannot use."""
        self._cases = {}
        for row in rows:
            try:
                case = _case(row)
            except (TypeError, ValueError, KeyError):
                continue
            self._cases[case.key] = case

    def _add_minute(
        self, key: CaseKey, current: Deviations, before: FleetCase | None, minute: int
    ) -> list[CaseChange]:
        if before is None:
            self._cases[key] = FleetCase(key, current, minute, minute, minute)
            return []
        case = replace(
            before, deviations=current, last=minute, judged=minute, minutes=before.minutes + 1,
            calm=0,
        )  # fmt: skip
        change = None
        if not case.opened and case.minutes >= _OPENS_AFTER[current.standing]:
            change = FindingChange.OPENED
        elif case.opened and minute - case.reported_minute >= _QUIET_MINUTES and _is_news(case):
            change = FindingChange.CHANGED
        if change:
            rank = current.severity.rank
            case = replace(
                case, opened=True, reported_minute=minute, rank=rank, facts=current.facts
            )
        self._cases[key] = case
        return [(change, case)] if change else []

    def _add_calm(self, case: FleetCase) -> list[CaseChange]:
        if case.opened and case.calm < CALM_MINUTES:
            self._cases[case.key] = case
            return []
        del self._cases[case.key]
        return [(FindingChange.RESOLVED, case)] if case.opened else []

    def _expire(self, now: int) -> list[CaseChange]:
        """Resolve the cases of nodes that have not been compared for long."""
        gone = sorted(
            key for key, case in self._cases.items() if now - case.judged > _FORGOTTEN_MINUTES
        )
        cases = [self._cases.pop(key) for key in gone]
        return [(FindingChange.RESOLVED, case) for case in cases if case.opened]


def _worst_by_group(outliers: Iterable[Outlier]) -> tuple[Outlier, ...]:
    """Return the worst outlier of each metric group and job, harm before activity."""
    chosen: dict[str, Outlier] = {}
    for outlier in sorted(outliers, key=lambda o: (not o.harm, not o.standing, -o.score)):
        known = measure(outlier.metric)
        assert known is not None
        chosen.setdefault(f"{known.row.metric_group} {outlier.job}", outlier)
    return tuple(chosen.values())[:_MOST_KEPT]


def _is_news(case: FleetCase) -> bool:
    """Return whether the severity rose, or other settings differ, since the last report."""
    return case.deviations.severity.rank > case.rank or case.deviations.facts != case.facts


def _row(case: FleetCase) -> dict[str, Any]:
    row: dict[str, Any] = _renamed(asdict(case))
    return row | {"key": list(case.key)}


def _renamed(value: Any) -> Any:
    """Return nested values with the names of saved rows."""
    if isinstance(value, dict):
        return {_ROW_NAMES.get(name, name): _renamed(item) for name, item in value.items()}
    if isinstance(value, tuple):
        return [_renamed(item) for item in value]
    return value


def _case(row: Any) -> FleetCase:
    """Return the case of a row; raise ``TypeError``, ``ValueError`` or ``KeyError``."""
    node, subsystem, kind = row["key"]
    saved = row["signs"]
    found = Deviations(_all(Outlier, saved["outliers"]), _all(Drift, saved["drifts"]))
    if not (found.outliers or found.drifts):
        raise ValueError("no deviation")
    if any(measure(outlier.metric) is None for outlier in found.outliers):
        raise ValueError("a metric that this version does not know")
    if found.outliers and not any(outlier.harm for outlier in found.outliers):
        raise ValueError("no harm")
    counted = ("first", "last", "judged", "minutes", "calm", "reported_minute", "rank")
    return FleetCase(
        key=CaseKey(_text(node), Subsystem(subsystem), FindingKind(kind)),
        deviations=found,
        opened=row["opened"] is True,
        facts=tuple(map(_text, row["facts"])),
        **{name: _count(row[_ROW_NAMES.get(name, name)]) for name in counted},
    )


def _all(kind: type[Flat], rows: Sequence[Any]) -> tuple[Flat, ...]:
    """Return records whose fields are numbers, strings and flags."""
    return tuple(_record(kind, row) for row in rows)


def _record(kind: type[Flat], row: Any) -> Flat:
    hints = get_type_hints(kind)
    names = {spec.name: _ROW_NAMES.get(spec.name, spec.name) for spec in fields(kind)}
    if not isinstance(row, dict) or row.keys() - set(names.values()):
        raise TypeError("it has a field that this version does not know")
    for name, saved in names.items():
        expected = (int, float) if hints[name] is float else hints[name]
        if not isinstance(row[saved], expected):
            raise TypeError(f"{saved} is {ascii(row[saved])[:80]}")
    return kind(**{name: row[saved] for name, saved in names.items()})


def _count(value: Any) -> int:
    if not isinstance(value, int):
        raise TypeError("it is not a number")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("it is not a string")
    return value
