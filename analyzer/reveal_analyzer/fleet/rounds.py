"""The leader's work: round after round over the summaries of all nodes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import median_low
from typing import NamedTuple

from reveal_analyzer.fleet.cases import Case, Cases, signs
from reveal_analyzer.fleet.exchange import KEPT_SECONDS, Exchange
from reveal_analyzer.fleet.findings import finding, identity
from reveal_analyzer.fleet.jobs import slow
from reveal_analyzer.fleet.outliers import LEAST, Drift, Outlier, drifts, outliers, ranked
from reveal_analyzer.fleet.summary import Summary
from reveal_analyzer.fleet.workload import Member, counted
from reveal_contract.finding import FindingChange, FindingUpdate

BATCH = 64  # summaries a step, of half a millisecond each
PORTION = 2000  # nodes compared a step, in one or more of its parts
_ABSENT = 150.0  # s without news: two minutes were missed
_REJOINS = 120.0  # s for which a node that came back, or is new, is left alone
_SETTLING = 150.0  # s after which a node that was not there yet is new
_SKEW = 3  # minutes that a node's clock may differ from most


@dataclass(frozen=True, slots=True)
class Pace:
    """Between two rounds lie so many seconds, and for each node so many more."""

    pause: float = 10.0
    each: float = 0.015


@dataclass
class _Node:
    summary: Summary
    told: float  # when it last had news
    joined: float = -math.inf


class Judged(NamedTuple):
    """What stands apart, most first, and the minute of each node that was compared."""

    outliers: list[Outlier]
    drifts: list[Drift]
    minutes: dict[str, int]


def judge(summaries: Iterable[Summary]) -> Judged:
    """Everything that stands apart."""
    return together(parts(summaries))


def parts(summaries: Iterable[Summary]) -> Iterator[Judged]:
    """The same part after part: of four thousand nodes each takes some ten milliseconds."""
    classes: dict[str, list[Summary]] = {}
    for one in summaries:
        if one.kind:
            classes.setdefault(one.kind, []).append(one)
    for group in classes.values():
        if len(group) >= LEAST:
            minutes = {one.node: one.minute for one in group}
            for found in chain(outliers(group), slow(group)):
                yield Judged(found, [], minutes)
            yield Judged([], drifts(group), minutes)


def together(found: Iterable[Judged]) -> Judged:
    made = Judged([], [], {})
    for part in found:
        made.outliers.extend(part.outliers)
        made.drifts.extend(part.drifts)
        made.minutes.update(part.minutes)
    return made._replace(outliers=ranked(made.outliers))


class Comparison:
    """Reads all summaries, a batch a step, and compares the nodes when they are read.

    Methods raise what redis-py raises when Redis is away; the round goes on afterwards.
    """

    def __init__(self, exchange: Exchange, now: float, pace: Pace | None = None) -> None:
        self._exchange, self._pace = exchange, pace or Pace()
        self._since = self._due = now
        self._nodes: dict[str, _Node] = {}
        self._todo: list[str] | None = None
        self._parts: Iterator[Judged] | None = None  # of the comparison under way
        self._judged: list[Judged] = []
        self._usual = 0
        self._cases = Cases()
        self._cases.load(exchange.load_cases())
        self._unsaved = False
        self.open = self._opened()

    def step(self, now: float) -> list[FindingUpdate]:
        """Go on with the round, or begin one that is due; what it found when it ends."""
        self.save()
        if self._parts is not None:
            return self._judge(self._parts)
        if self._todo is None:
            if now < self._due:
                return []
            self._todo = self._exchange.nodes()
        for summary in self._exchange.get(self._todo[:BATCH]).values():
            self._take(summary, now)
        self._todo = self._todo[BATCH:]
        if self._todo:
            return []
        self._todo = None
        self._due = now + max(self._pace.pause, self._pace.each * len(self._nodes))
        self._forget([n for n, one in self._nodes.items() if now - one.told > KEPT_SECONDS])
        present, self._usual = self._present(now)
        self._judged = []
        return self._judge(parts(present))

    def save(self) -> None:
        """Keep for the next leader what has been told by now."""
        if self._unsaved:
            self._exchange.save_cases(self._cases.rows())
            self._unsaved = False

    def _take(self, summary: Summary, now: float) -> None:
        known = self._nodes.get(summary.node)
        if known is None:
            joined = now if now - self._since > _SETTLING else -math.inf
            self._nodes[summary.node] = _Node(summary, now, joined)
        elif summary.minute != known.summary.minute:
            back = now - known.told > _ABSENT
            joined = now if back else known.joined
            self._nodes[summary.node] = _Node(summary, now, joined)

    def _judge(self, left: Iterator[Judged]) -> list[FindingUpdate]:
        """Go on comparing; what came of it once nothing is left."""
        self._parts, done = None, 0  # what raises is not gone on with
        for part in left:
            self._judged.append(part)
            done += len(part.minutes)
            if done >= PORTION:
                self._parts = left
                return []
        found = together(self._judged)
        changes = self._cases.step(signs(found.outliers, found.drifts), found.minutes, self._usual)
        self._unsaved = True
        self.open = self._opened()
        return [self._news(change, case) for change, case in changes]

    def _present(self, now: float) -> tuple[list[Summary], int]:
        """Who can be compared: heard of, no newcomer, with a clock like most; their minute."""
        here = [
            one.summary
            for one in self._nodes.values()
            if now - one.told <= _ABSENT and now - one.joined >= _REJOINS
        ]
        if not here:
            return [], 0
        usual = median_low(one.minute for one in here)
        return [one for one in here if abs(one.minute - usual) <= _SKEW], usual

    def _forget(self, nodes: Sequence[str]) -> None:
        self._exchange.drop(nodes)
        for node in nodes:
            del self._nodes[node]

    def _opened(self) -> frozenset[str]:
        """The ids of the findings that are open."""
        return frozenset(identity(case) for case in self._cases.opened)

    def _news(self, change: FindingChange, case: Case) -> FindingUpdate:
        known = self._nodes.get(case.key.node)
        members = _members(case, known.summary) if known else ()
        return FindingUpdate(
            change, finding(case, members, resolved=change is FindingChange.RESOLVED)
        )


def _members(case: Case, summary: Summary) -> tuple[Member, ...]:
    """Whose work it is that suffers: the job's, else all that the node works for."""
    if case.signs.standing:
        return ()
    named = [one.job for one in case.signs.outliers if one.job in summary.jobs]
    working = [n for n, job in summary.jobs.items() if counted(n, job) in summary.workload]
    jobs = named[:1] or working
    return tuple(member for name in jobs for member in summary.jobs[name].members)
