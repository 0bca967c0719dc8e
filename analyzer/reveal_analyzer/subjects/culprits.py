"""Culprits of a case: the subjects whose growth explains it, and the victims that lost by it.

A culprit uses more than in the busier half of the minute before the onset.  Growth is compared by
amount and not by ratio: a daemon that doubles its little CPU time explains nothing.  All shares of
an answer are of one metric, in which the foremost culprit grew most.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from reveal_analyzer.subjects.comparison import (
    LEAST_CHANGE,
    Change,
    Comparison,
    Growth,
    MetricComparison,
)
from reveal_analyzer.subjects.directory import Directory, SubjectKey, is_process_group
from reveal_analyzer.subjects.finding_subjects import NamedSubjects, named_subjects
from reveal_contract import catalogue
from reveal_contract.finding import Confidence
from reveal_contract.metric import Harm, Subsystem

_MOST_NAMED = 5
_MOST_PRESENT = 3
_LEAST_PERCENT = 1  # share of a pod that is named only because it is there
_LEAST_PART = 0.1  # of the largest growth; less does not explain a finding
_KEPT_FACTOR = 1.25  # by how much another subject must exceed the culprit that is named already
# what a subject suffers: by itself, it makes no culprit of a fault without a known cause
_SUFFERED = frozenset({
    "cpu.subject.pressure", "memory.subject.pressure", "storage.subject.pressure",
    "network.subject.retrans_segs", "network.subject.drops",
})  # fmt: skip
# metrics that are searched where a hypothesis names none
_DEFAULT_METRICS = {
    Subsystem.CPU: ("cpu.subject.throttled_time", "cpu.subject.usage"),
    Subsystem.MEMORY: (
        "memory.subject.oom_kills", "memory.subject.limit_hits", "memory.subject.refaults",
        "memory.subject.scanned", "memory.subject.usage", "memory.subject.page_faults",
        "cpu.subject.usage",
    ),
    Subsystem.STORAGE: (
        "storage.subject.pressure", "storage.subject.read_bytes", "storage.subject.write_bytes",
    ),
    Subsystem.NETWORK: (
        "network.subject.retrans_segs", "network.subject.drops", "network.subject.rx_bytes",
        "network.subject.tx_bytes", "cpu.subject.usage",
    ),
    Subsystem.GPU: (
        "gpu.subject.sm_utilization", "gpu.subject.memory_used", "cpu.subject.usage",
    ),
}  # fmt: skip


@dataclass(frozen=True)
class CulpritQuery:
    """Which subjects to look for.

    ``metrics`` are the metrics that a hypothesis points to; if empty, the default metrics of the
    subsystem are used.  ``fell`` asks for the subjects that lost instead of those that grew.
    ``fall_counts`` names those that fell if nobody else explains a fault without a known cause.  In
    ``levels`` the level itself is the fault, whatever it was before.  ``instance`` restricts the
    search to one subject, if it names one.  ``others`` are the culprits of other open cases, none
    of which succeeds the culprit of this one.
    """

    metrics: Sequence[str]
    subsystem: Subsystem
    fell: bool = False
    fall_counts: bool = True
    levels: frozenset[str] = frozenset()
    instance: str = ""
    others: frozenset[str] = frozenset()

    @property
    def searched(self) -> Sequence[str]:
        """The metrics to search."""
        return self.metrics or _DEFAULT_METRICS[self.subsystem]


class Kept(NamedTuple):
    """The name of the culprit so far, if there is one.

    Once it is ``settled``, no other one is put before it, and nobody that was calm at the onset is
    named in its place.
    """

    name: str
    settled: bool = False


NOBODY = Kept("")


def find_culprits(
    query: CulpritQuery, comparison: Comparison, kept: Kept = NOBODY
) -> NamedSubjects:  # fmt: skip
    """Return the subjects that explain a case, most first; else pods that are only there.

    Nobody is named while the case is too young to tell.
    """
    tables = [
        MetricComparison(metric, comparison, from_zero=metric in query.levels)
        for metric in query.searched
    ]
    search = _Search(query, comparison, tables, kept)
    if query.fell:
        return search.fallen(Confidence.MEASURED) or search.nobody()
    # what ended may change a node, but it is no cause of a known fault
    may_count = query.fall_counts and not query.metrics
    fallen = search.fallen(Confidence.INFERRED) if may_count else None
    return search.grown() or search.harmful_now() or fallen or search.nobody()


def find_victims(metrics: Sequence[str], comparison: Comparison) -> tuple[str, ...]:
    """Return the names of the subjects to which these metrics did harm, most first.

    A metric without a harmful direction, such as CPU time, harms a subject that gets less.
    """
    loss: dict[str, float] = {}
    for metric in metrics:
        rising = catalogue.find(metric).harm is Harm.HIGHER
        for change in MetricComparison(metric, comparison).changes():
            lost = change.change if rising else -change.change
            loss[change.owner] = max(lost, loss.get(change.owner, 0.0))
    ranked = sorted(loss, key=lambda owner: (-loss[owner], owner))
    return tuple([owner for owner in ranked if loss[owner] >= LEAST_CHANGE][:_MOST_NAMED])


class _Found(NamedTuple):
    """Growth of one owner in one metric."""

    table: MetricComparison
    growth: Growth


@dataclass(frozen=True)
class _Search:
    """The ways in which subjects explain a case, from the surest to the least sure."""

    query: CulpritQuery
    comparison: Comparison
    tables: Sequence[MetricComparison]
    kept: Kept

    def grown(self) -> NamedSubjects | None:
        """Return those that grew, in the metric in which one of them grew most."""
        found = [
            _Found(table, growth)
            for table in self.tables
            for growth in table.growths()
            if self._is_asked(growth.changes) and not self._is_elsewhere(table, growth)
            if growth.early or not self.kept.settled or self.kept.name
        ]
        if not found:
            return None
        # names decide between equals, so that the order is the same in each second
        found.sort(key=lambda each: each.growth.owner)
        table, foremost = self._foremost(found)
        same = [
            each for each in found
            if each.table is table and each.growth.gain >= _LEAST_PART * foremost.gain
        ]  # fmt: skip
        same.sort(key=self._merit, reverse=True)
        # most of the growth belongs to no subject that is counted: these may only be part of it
        is_rest = table.elsewhere() > sum(each.growth.gain for each in same)
        inferred = is_rest or not self._explains(table.metric)
        if self.comparison.is_young and (inferred or self._is_inferred(foremost, table.metric)):
            return None  # who explains it may not have been read yet
        return self._named(
            table.metric,
            [
                (change, Confidence.INFERRED if inferred or not growth.early else None)
                for _, growth in same
                for change in growth.changes
            ],
        )

    def harmful_now(self) -> NamedSubjects | None:
        """Return those at a harmful level now, where the level itself is the fault."""
        for table in self.tables:
            if table.metric not in self.query.levels:
                continue
            changes = [
                change
                for change in table.present()
                if math.asinh(change.used / table.quantum) >= LEAST_CHANGE
            ]
            changes = [change for change in changes if self._is_asked([change])]
            changes.sort(key=lambda change: (-change.used, change.key.instance))
            if changes:
                return self._named(table.metric, [(change, None) for change in changes])
        return None

    def fallen(self, confidence: Confidence) -> NamedSubjects | None:
        """Return those that lost, in the metric in which one of them lost most."""
        fell = self.query.fell
        lost = [(table, change) for table in self.tables for change in table.losses(of_harm=fell)]
        if not lost:
            return None
        lost.sort(key=lambda each: (each[1].change, each[1].key.instance))
        first = lost[0][0]
        inferred = None if confidence is Confidence.MEASURED else confidence
        return self._named(
            first.metric, [(change, inferred) for table, change in lost if table is first]
        )

    def nobody(self) -> NamedSubjects:
        """Return who is only there; not in the first seconds, when the culprit may not be read."""
        if self.comparison.is_young and any(table.was_read for table in self.tables):
            return NamedSubjects(undecided=True)
        return self.present()

    def present(self) -> NamedSubjects:
        """Return the pods that run on the node, largest share first: nothing else is known."""
        table = next((each for each in self.tables if each.has_values), None)
        if table is None:
            return NamedSubjects()
        running = [
            change
            for change in table.present()
            if change.percent >= _LEAST_PERCENT and self._is_running_pod(change.key)
        ]
        running.sort(key=lambda change: (-change.percent, change.key.instance))
        known = [(change, Confidence.CO_LOCATED) for change in running[:_MOST_PRESENT]]
        return self._named(table.metric, known)

    def _merit(self, found: _Found) -> tuple[float, ...]:
        """Return the sort key of a growth: the amount counts between what is equally sure."""
        table, growth = found
        is_kept = growth.owner == self.kept.name
        gain = growth.gain / table.quantum * (_KEPT_FACTOR if is_kept else 1.0)
        return (
            is_kept and self.kept.settled,
            table.metric in self.query.levels,
            growth.early,
            self._explains(table.metric),
            math.asinh(gain),
        )

    def _explains(self, metric: str) -> bool:
        """Return whether growth of a metric may be the cause of a fault, and not its effect.

        Where the level of a metric is the fault, another metric only changed with it.
        """
        if self.query.levels:
            return metric in self.query.levels
        return bool(self.query.metrics) or metric not in _SUFFERED

    def _is_inferred(self, growth: Growth, metric: str) -> bool:
        """Return whether nothing measures the part of a subject."""
        key, directory = growth.changes[0].key, self.comparison.directory
        return _confidence(key, metric, self.query, directory) is Confidence.INFERRED

    def _is_asked(self, changes: Sequence[Change]) -> bool:
        asked = self._asked
        return asked is None or any(change.key == asked for change in changes)

    @cached_property
    def _asked(self) -> SubjectKey | None:
        """The only subject to search; None for all of them, or where a device is meant."""
        if not self.query.instance:
            return None
        asked = self.comparison.directory.key(self.query.instance, self.comparison.active.last_ns)
        return asked if any(asked in table for table in self.tables) else None

    def _is_elsewhere(self, table: MetricComparison, growth: Growth) -> bool:
        """Return whether what grew outside of all subjects dwarfs the growth of this one."""
        return growth.gain < _LEAST_PART * table.elsewhere()

    def _foremost(self, found: Sequence[_Found]) -> _Found:
        """Return what grew most; of a cgroup the process group in it that did, if one grew, too."""
        most = max(found, key=self._merit)
        if self.kept.settled and most.growth.owner == self.kept.name:
            return most
        is_inside, cgroup = self.comparison.directory.is_inside, most.growth.changes[0].key
        inner = [each for each in found if is_inside(each.growth.changes[0].key, cgroup)]
        return max(inner, key=self._merit, default=most)

    def _is_running_pod(self, key: SubjectKey) -> bool:
        identity = self.comparison.directory.identity(key)
        return identity is not None and bool(identity.namespace) and not identity.until_ns

    def _named(
        self, metric: str, changes: Sequence[tuple[Change, Confidence | None]]
    ) -> NamedSubjects:
        directory = self.comparison.directory
        known = [
            (change, confidence or _confidence(change.key, metric, self.query, directory))
            for change, confidence in changes[:_MOST_NAMED]
        ]
        return named_subjects(metric, known, directory)


def _confidence(
    key: SubjectKey, metric: str, query: CulpritQuery, directory: Directory
) -> Confidence:  # fmt: skip
    """Return how the part of a subject that changed is known.

    It is measured if the subject has its own counter of the requested metric, and inferred from
    another metric otherwise.
    """
    identity = directory.identity(key)
    # pods on the host network share its counters
    shared = identity is not None and identity.host_network
    if query.subsystem is Subsystem.NETWORK and shared:
        return Confidence.INFERRED
    proxy = not query.metrics and catalogue.find(metric).subsystem is not query.subsystem
    return Confidence.INFERRED if proxy or is_process_group(key) else Confidence.MEASURED
