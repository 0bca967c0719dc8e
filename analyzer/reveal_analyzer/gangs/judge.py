"""Judges the windows of jobs, each once: pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from reveal_analyzer.gangs.baseline_work import BaselineWork
from reveal_analyzer.gangs.cases import GangCases
from reveal_analyzer.gangs.findings import finding, identity
from reveal_analyzer.gangs.rank import Rank, by_job
from reveal_analyzer.gangs.straggler import Judgement, is_synchronous, judge
from reveal_contract.finding import FindingChange, FindingUpdate

ABSENT_WINDOWS = 6  # after which a node has left
_SYNCHRONOUS_WINDOWS = 60  # for which a common rhythm is remembered: a fault may disturb it


class RankJudge:
    """Takes the last windows of nodes; a window of a job is judged when all its nodes have it.

    A node that is silent is waited for until the next window.
    """

    def __init__(self) -> None:
        self._cases = GangCases()
        self._windows: dict[str, int] = {}  # by job, the last one that was judged
        self._synchronous: dict[str, int] = {}  # by job, the last one with a common rhythm
        self._baseline: dict[str, BaselineWork] = {}  # by job

    @property
    def open(self) -> frozenset[str]:
        """The ids of the open findings."""
        return frozenset(identity(case) for case in self._cases.opened)

    def still_open(self) -> list[FindingUpdate]:
        """Return the last state of the open findings."""
        opened = self._cases.opened
        return [FindingUpdate(FindingChange.CHANGED, finding(case)) for case in opened]

    def rows(self) -> list[dict[str, Any]]:
        """Return the state of all cases."""
        return self._cases.rows()

    def load(self, rows: Iterable[Any]) -> None:
        """Continue from ``rows``; skip those that this version cannot use."""
        self._cases.load(rows)

    @property
    def last_window(self) -> int:
        """The last window in which a job with a case was judged; 0 without cases."""
        return self._cases.last_window

    def add(self, ranks: Mapping[str, Sequence[Rank]], ended: int = 0) -> list[FindingUpdate]:
        """Judge what is complete of the last windows, by node; return what changed.

        ``ended`` is a window that has ended, by the clock: a job may end while no node has ranks.
        """
        newest = max(newest_window(ranks), ended)
        self._forget(newest - ABSENT_WINDOWS)
        judged: dict[int, dict[str, Judgement]] = {}
        for job, own in by_job([rank for some in ranks.values() for rank in some]).items():
            window = _complete(own, newest)
            if window > self._windows.get(job, 0):
                self._windows[job] = window
                present = [rank for rank in own if rank.window == window]
                if len(present) > 1:
                    judged.setdefault(window, {})[job] = self._judged(job, present, window)
        windows = sorted(judged.items()) or [(newest - 1, {})]
        return [update for window, by in windows for update in self._updates(by, window)]

    def _judged(self, job: str, ranks: Sequence[Rank], window: int) -> Judgement:
        if is_synchronous(ranks):
            self._synchronous[job] = window
        since = window - self._synchronous.get(job, -_SYNCHRONOUS_WINDOWS)
        baseline = self._baseline.setdefault(job, BaselineWork())
        result = judge(ranks, synchronous=since < _SYNCHRONOUS_WINDOWS, baseline=baseline.desired())
        if result.straggler is None:
            baseline.add(ranks)
        return result

    def _updates(self, judged: Mapping[str, Judgement], window: int) -> list[FindingUpdate]:
        return [
            FindingUpdate(change, finding(case, resolved=change is FindingChange.RESOLVED))
            for change, case in self._cases.update(judged, window)
        ]

    def _forget(self, before: int) -> None:
        for job in [job for job, window in self._windows.items() if window < before]:
            del self._windows[job]
            self._synchronous.pop(job, None)
            self._baseline.pop(job, None)


def newest_window(ranks: Mapping[str, Sequence[Rank]]) -> int:
    """Return the last window of any node; 0 if there are no ranks."""
    return max((own[0].window for own in ranks.values() if own), default=0)


def _complete(ranks: Sequence[Rank], newest: int) -> int:
    """Return the window that all ranks of a job have; 0 while some still have the one before.

    Ranks whose nodes are silent for longer do not count.
    """
    windows = {rank.window for rank in ranks if rank.window >= newest - 1}
    return windows.pop() if len(windows) == 1 else 0
