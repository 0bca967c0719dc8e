"""Rounds of the leader: read the summaries of all nodes, compare them, and update the cases."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import median_low
from typing import NamedTuple

from reveal_analyzer.fleet.cases import FleetCase, FleetCases, deviations
from reveal_analyzer.fleet.compared import ComparedNodes
from reveal_analyzer.fleet.exchange import KEPT_SECONDS, Exchange
from reveal_analyzer.fleet.findings import finding, identity
from reveal_analyzer.fleet.grouping import WorkloadGroups
from reveal_analyzer.fleet.jobs import parts_by_job, slow_parts
from reveal_analyzer.fleet.outliers import (
    LEAST,
    Drift,
    Outlier,
    drifts,
    outliers,
    ranked,
    same_workload,
)
from reveal_analyzer.fleet.summary import Summary
from reveal_analyzer.fleet.workload import JobMember, is_work
from reveal_contract.finding import FindingChange, FindingUpdate

BATCH = 64  # summaries per step, of half a millisecond each
NODES_PER_STEP = 2000  # compared in one step, in one or more parts
_ABSENT_S = 150.0  # without a new summary: two minutes were missed
_REJOIN_S = 120.0  # for which a node that is new or came back is not compared
_SETTLING_S = 150.0  # since the first round, after which an unknown node counts as new
_MOST_SKEW = 3  # minutes that a node's clock may differ from the median


@dataclass(frozen=True, slots=True)
class RoundTiming:
    """Seconds between two rounds: at least ``pause``, and ``each`` for every node."""

    pause: float = 10.0
    each: float = 0.015


@dataclass
class _Node:
    summary: Summary
    updated: float  # when its last new summary was read
    joined: float = -math.inf


class Differences(NamedTuple):
    """Outliers and differing settings, most first, and the nodes that were compared."""

    outliers: list[Outlier]
    drifts: list[Drift]
    compared: ComparedNodes


def compare_all(summaries: Iterable[Summary]) -> Differences:
    """Return all differences between nodes."""
    return merged(parts(summaries))


def parts(summaries: Iterable[Summary]) -> Iterator[Differences]:
    """Yield the differences in parts: each takes about ten milliseconds for 4000 nodes."""
    classes: dict[str, list[Summary]] = {}
    for summary in summaries:
        if summary.kind:
            classes.setdefault(summary.kind, []).append(summary)
    for group in classes.values():
        if len(group) >= LEAST:
            compared = ComparedNodes.of(group, same_workload(group), parts_by_job(group))
            for found in chain(outliers(group), slow_parts(group)):
                yield Differences(found, [], compared)
            yield Differences([], drifts(group), compared)


def merged(found: Iterable[Differences]) -> Differences:
    """Return the differences of all parts."""
    result = Differences([], [], ComparedNodes())
    classes: dict[int, ComparedNodes] = {}
    for part in found:
        result.outliers.extend(part.outliers)
        result.drifts.extend(part.drifts)
        classes[id(part.compared)] = part.compared
    for compared in classes.values():
        result.compared.update(compared)
    return result._replace(outliers=ranked(result.outliers))


class ComparisonRounds:
    """Reads all summaries, a batch per step, and then compares the nodes, a part per step.

    Methods raise what redis-py raises when Redis is unavailable; the round continues afterwards.
    """

    def __init__(self, exchange: Exchange, now: float, timing: RoundTiming | None = None) -> None:
        self._exchange, self._timing = exchange, timing or RoundTiming()
        self._since = self._due = now
        self._nodes: dict[str, _Node] = {}
        self._unread: list[str] | None = None  # nodes, while a round reads summaries
        self._parts: Iterator[Differences] | None = None  # while a round compares
        self._found: list[Differences] = []
        self._common_minute = 0
        self._cases = FleetCases()
        self._cases.load(exchange.cases.load())
        self._groups = WorkloadGroups()
        self._groups.load(exchange.groups.load())
        self._unsaved = False
        self.open = self._open_ids()

    def advance(self, now: float) -> list[FindingUpdate]:
        """Continue the round, or begin the next; return the changes when it ends."""
        self.save()
        if self._parts is not None:
            return self._compare(self._parts)
        if self._unread is None:
            if now < self._due:
                return []
            self._unread = self._exchange.summaries.nodes()
        for summary in self._exchange.summaries.get(self._unread[:BATCH]).values():
            self._add(summary, now)
        self._unread = self._unread[BATCH:]
        if self._unread:
            return []
        self._unread = None
        self._due = now + max(self._timing.pause, self._timing.each * len(self._nodes))
        self._drop([n for n, node in self._nodes.items() if now - node.updated > KEPT_SECONDS])
        present, self._common_minute = self._present(now)
        self._found = []
        return self._compare(parts(self._groups.assign(present)))

    def save(self) -> None:
        """Save the cases and groups for the next leader, if they may have changed."""
        if self._unsaved:
            self._exchange.cases.save(self._cases.rows())
            summaries = (node.summary for node in self._nodes.values())
            self._exchange.groups.save(self._groups.rows(summaries))
            self._unsaved = False

    def _add(self, summary: Summary, now: float) -> None:
        known = self._nodes.get(summary.node)
        if known is None:
            # all nodes are unknown to a new leader: only later ones are new
            joined = now if now - self._since > _SETTLING_S else -math.inf
            self._nodes[summary.node] = _Node(summary, now, joined)
        elif summary.minute != known.summary.minute:
            is_back = now - known.updated > _ABSENT_S
            joined = now if is_back else known.joined
            self._nodes[summary.node] = _Node(summary, now, joined)

    def _compare(self, remaining: Iterator[Differences]) -> list[FindingUpdate]:
        """Continue comparing; return the changes when nothing remains."""
        self._parts, done = None, 0  # a part that raises ends the round
        for part in remaining:
            self._found.append(part)
            done += len(part.compared.summaries)
            if done >= NODES_PER_STEP:
                self._parts = remaining
                return []
        found = merged(self._found)
        current = deviations(found.outliers, found.drifts)
        changes = self._cases.update(current, found.compared, self._common_minute)
        self._unsaved = True
        self.open = self._open_ids()
        return [self._update(change, case) for change, case in changes]

    def _present(self, now: float) -> tuple[list[Summary], int]:
        """Return the summaries of nodes that can be compared, and the median of their minutes.

        Such a node has a recent summary, did not join lately, and has a clock like most.
        """
        here = [
            node.summary
            for node in self._nodes.values()
            if now - node.updated <= _ABSENT_S and now - node.joined >= _REJOIN_S
        ]
        if not here:
            return [], 0
        common = median_low(summary.minute for summary in here)
        return [summary for summary in here if abs(summary.minute - common) <= _MOST_SKEW], common

    def _drop(self, nodes: Sequence[str]) -> None:
        self._exchange.summaries.drop(nodes)
        self._groups.drop(nodes)
        for node in nodes:
            del self._nodes[node]

    def _open_ids(self) -> frozenset[str]:
        return frozenset(identity(case) for case in self._cases.opened)

    def _update(self, change: FindingChange, case: FleetCase) -> FindingUpdate:
        known = self._nodes.get(case.key.node)
        members = _members(case, self._groups.assigned(known.summary)) if known else ()
        resolved = change is FindingChange.RESOLVED
        return FindingUpdate(change, finding(case, members, resolved=resolved))


def _members(case: FleetCase, summary: Summary) -> tuple[JobMember, ...]:
    """Return the subjects that suffer: those of the outlier's job, else of the whole workload."""
    if case.deviations.standing:
        return ()
    of_jobs = [o.job for o in case.deviations.outliers if o.job in summary.jobs]
    working = [name for name in summary.jobs if is_work(name, summary.workload)]
    names = of_jobs[:1] or working
    return tuple(member for name in names for member in summary.jobs[name].members)
