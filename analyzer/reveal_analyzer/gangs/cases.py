"""Ranks that delay their jobs, over the windows: each opens a finding once, and ends it: pure.

A case opens when the same rank delays its job in two of three windows in a row.  It ends after
three windows without it, and is unobserved when its job is not judged for a minute.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, NamedTuple

from reveal_analyzer.gangs.rank import WINDOW_S
from reveal_analyzer.gangs.straggler import Judgement, Straggler
from reveal_analyzer.state.records import restore_record, save_record
from reveal_analyzer.state.tree import StateError
from reveal_contract.finding import FindingChange
from reveal_contract.severity import of_slowdown

_OPENS_AFTER, _OPENS_WITHIN = 2, 3  # windows
_CALM_WINDOWS = 3
_UNOBSERVED_WINDOWS = 60 // WINDOW_S
_MOST_WINDOWS = 6  # the latest ones describe a case
_QUIET_WINDOWS = 60 // WINDOW_S  # between two reported changes


@dataclass(frozen=True, slots=True)
class GangCase:
    """A rank that delays its job.

    ``first`` and ``last`` are its first and last window, ``judged`` the last one of the job.
    ``percents`` are those of its latest windows.  ``reported`` is the window of the last report,
    and ``rank`` its severity; -1 before the first.
    """

    job: str
    straggler: Straggler
    first: int
    last: int
    judged: int
    percents: tuple[float, ...]
    reported: int = -1
    rank: int = -1
    is_unobserved: bool = False

    @property
    def key(self) -> tuple[str, str, str]:
        """The job, and the node and name of the rank."""
        return self.job, self.straggler.rank.node, self.straggler.rank.subject

    @property
    def percent(self) -> float:
        """By how many percent longer the job takes."""
        return median(self.percents)

    @property
    def is_open(self) -> bool:
        """Whether it was reported."""
        return self.reported >= 0


class GangChange(NamedTuple):
    """A change of a case."""

    change: FindingChange
    case: GangCase


class GangCases:
    """The cases of all jobs."""

    def __init__(self) -> None:
        self._cases: dict[tuple[str, str, str], GangCase] = {}

    @property
    def opened(self) -> list[GangCase]:
        """The cases that are open."""
        return [case for case in self._cases.values() if case.is_open]

    @property
    def last_window(self) -> int:
        """The last window in which a job with a case was judged; 0 without cases."""
        return max((case.judged for case in self._cases.values()), default=0)

    def update(self, judged: Mapping[str, Judgement], window: int) -> list[GangChange]:
        """Add a window, by job; return what opened, changed or ended."""
        changes = []
        for job, judgement in sorted(judged.items()):
            changes += self._add(job, judgement.straggler, window)
        return changes + self._unobserved(window)

    def rows(self) -> list[dict[str, Any]]:
        """Return the state of all cases."""
        return [save_record(case) for _, case in sorted(self._cases.items())]

    def load(self, rows: Iterable[Any]) -> None:
        """Continue from the rows of another leader; skip those that this version cannot use."""
        self._cases = {}
        for row in rows:
            try:
                case = restore_record(GangCase, row)
            except (StateError, KeyError, TypeError, ValueError):
                continue
            if case.percents:
                self._cases[case.key] = case

    def _add(self, job: str, straggler: Straggler | None, window: int) -> list[GangChange]:
        changes = []
        if straggler is not None:
            changes += self._add_straggler(job, straggler, window)
        for key, case in [*self._cases.items()]:
            if case.job == job and case.last < window:
                changes += self._add_calm(key, replace(case, judged=window), window)
        return changes

    def _add_straggler(self, job: str, straggler: Straggler, window: int) -> list[GangChange]:
        new = GangCase(job, straggler, window, window, window, (straggler.percent,))
        before = self._cases.get(new.key)
        if before is None:
            self._cases[new.key] = new
            return []
        percents = (*before.percents, straggler.percent)[-_MOST_WINDOWS:]
        case = replace(before, straggler=straggler, last=window, judged=window, percents=percents)
        change, rank = _change(case, window), of_slowdown(case.percent).rank
        if change is not None:
            case = replace(case, reported=window, rank=rank)
        self._cases[case.key] = case
        return [GangChange(change, case)] if change is not None else []

    def _add_calm(self, key: tuple[str, str, str], case: GangCase, window: int) -> list[GangChange]:
        most = _CALM_WINDOWS if case.is_open else _OPENS_WITHIN - 1
        if window - case.last < most:
            self._cases[key] = case
            return []
        del self._cases[key]
        return [GangChange(FindingChange.RESOLVED, case)] if case.is_open else []

    def _unobserved(self, window: int) -> list[GangChange]:
        since = window - _UNOBSERVED_WINDOWS
        gone = [self._cases.pop(key) for key in [
            key for key, case in self._cases.items() if case.judged < since
        ]]  # fmt: skip
        return [
            GangChange(FindingChange.RESOLVED, replace(case, is_unobserved=True))
            for case in gone
            if case.is_open
        ]


def _change(case: GangCase, window: int) -> FindingChange | None:
    """Return what is to be reported of a case after a window in which it was seen."""
    if not case.is_open:
        is_due = len(case.percents) >= _OPENS_AFTER
        return FindingChange.OPENED if is_due else None
    is_worse = of_slowdown(case.percent).rank > case.rank
    if is_worse and window - case.reported >= _QUIET_WINDOWS:
        return FindingChange.CHANGED
    return None
