"""Comparison of what subjects use in the active seconds of a case with the time before it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from reveal_analyzer.subjects.directory import Directory, SubjectKey, is_process_group
from reveal_analyzer.subjects.means import NOTHING, Level, SubjectMeans
from reveal_analyzer.subjects.reference import SubjectReference
from reveal_analyzer.subjects.shares import Shares, split
from reveal_contract import catalogue
from reveal_contract.metric import Capacity, Harm

LEAST_CHANGE = 0.5  # asinh units; a subject that changed less is not named
_LEAST_EXCESS = 0.25  # asinh units over the busier half: more than one of its own busy phases
_ONSET_PART = 0.5  # of the growth by now; a subject that had grown less at the onset reacted
_NODE_MEMORY = 24 << 30  # bytes; the real size does not matter for a ranking
_RARE_EVENTS = "kills"
# the kernel counts what is written to stacked devices (LVM, RAID) once for each of them
_COUNTED_TWICE = "storage."


class Comparison(NamedTuple):
    """What subjects used in the active seconds of a case, at its onset, and before it.

    ``onset`` is None while the case is too young to separate its onset from what follows, and if it
    is not in memory.  While it ``is_young``, subjects that began with it may not have been read.
    """

    directory: Directory
    reference: SubjectReference
    active: SubjectMeans
    onset: SubjectMeans | None
    is_young: bool = False


@dataclass(frozen=True)
class Change:
    """Change of one metric of one subject from before to the active seconds.

    ``change`` is in asinh units from the mean before, and ``excess`` from the busiest seconds then;
    ``gain`` is the same excess as an amount.
    ``owner`` is the name of the pod, also for its containers, or of another subject.
    """

    key: SubjectKey
    owner: str
    used: float
    change: float
    excess: float
    gain: float
    percent: float
    percent_before: float


class Growth(NamedTuple):
    """Growth of a pod with all its containers, or of another subject; at least one change."""

    owner: str
    gain: float
    early: bool
    changes: tuple[Change, ...]


class MetricComparison:
    """One metric of all subjects.

    With ``from_zero``, a subject whose use before is unknown is compared with 0.
    """

    def __init__(self, metric: str, comparison: Comparison, *, from_zero: bool = False) -> None:
        row = catalogue.find(metric)
        self.metric = metric
        self.quantum = row.quantum * (_NODE_MEMORY if row.capacity is Capacity.MEMORY else 1.0)
        if row.unit == _RARE_EVENTS:  # one is worth to be named, however long the case lasts
            self.quantum /= max(comparison.active.seconds, 1)
        self._harmful = row.harm is Harm.HIGHER
        self._comparison, self._from_zero = comparison, from_zero
        self._directory = comparison.directory
        self._levels = comparison.reference.levels(metric, self._directory)
        self._used = self._used_now()
        self._now = self._split(self._used, comparison.active)
        means = {key: level.mean for key, level in self._levels.items()}
        self._before = self._split(means, comparison.reference.means)
        highs = self._busiest(comparison)
        self._highs = self._split(highs, comparison.reference.means)

    def __contains__(self, key: SubjectKey) -> bool:
        """Return whether a subject has a value of the metric."""
        return key in self._used

    @property
    def was_read(self) -> bool:
        """Whether some subject has a value in the active seconds."""
        return bool(self._used)

    @property
    def has_values(self) -> bool:
        """Whether some subject uses any of it."""
        return self._now.total > 0

    def changes(self) -> list[Change]:
        """Return the change of each subject whose use before the case is known.

        One that ended before the case has no part in it.  Neither has one that ended while another
        took over its instance.
        """
        directory, end_ns = self._directory, self._comparison.reference.end_ns
        there = [key for key in self._used if directory.existed_after(key, end_ns)]
        latest = {key.instance for key in there if directory.is_latest(key)}
        changes = (
            self._change(key, self._level(key))
            for key in there
            if directory.is_latest(key) or key.instance not in latest
        )
        return [change for change in changes if change is not None]

    def present(self) -> list[Change]:
        """Return the subjects, as if they had not changed."""
        shares = ((key, self._percent(self._now, key)) for key in self._used)
        return [
            Change(key, self._owner(key), self._used[key], 0.0, 0.0, 0.0, percent, percent)
            for key, percent in shares
        ]

    def growths(self) -> list[Growth]:
        """Return what grew clearly, by owner."""
        by_owner: dict[str, list[Change]] = {}
        for change in self.changes():
            if change.change >= LEAST_CHANGE and change.excess >= _LEAST_EXCESS:
                by_owner.setdefault(change.owner, []).append(change)
        return [self._growth(owner, changes) for owner, changes in by_owner.items()]

    def losses(self, *, of_harm: bool) -> list[Change]:
        """Return what fell clearly; less of a harmful metric only counts with ``of_harm``."""
        if self._harmful and not of_harm:
            return []
        return [change for change in self.changes() if change.change <= -LEAST_CHANGE]

    def elsewhere(self) -> float:
        """Return by how much the host's counter grew outside of all subjects."""
        hosts = self._comparison.reference.means.host
        if self.metric.startswith(_COUNTED_TWICE) or self.metric not in hosts:
            return 0.0
        return self._now.unattributed - self._before.unattributed

    def _growth(self, owner: str, changes: list[Change]) -> Growth:
        changes.sort(key=lambda change: (-change.gain, change.key.instance))
        early = any(self._grew_early(change) for change in changes)
        return Growth(owner, sum(each.gain for each in changes), early, tuple(changes))

    def _grew_early(self, change: Change) -> bool:
        """Return whether a subject grew from the onset on; who grew later reacted to the case."""
        onset, directory = self._comparison.onset, self._directory
        # an idle process is read every few seconds only: its growth shows late
        if onset is None or is_process_group(change.key):
            return True
        used = [
            level.mean
            for key, level in onset.of(self.metric).items()
            if self._owner(directory.current(key, onset.last_ns)) == change.owner
        ]
        if not used:  # it was not there yet, or it was not read
            return directory.may_live(change.key, onset.last_ns)
        level = self._level(change.key) or NOTHING
        return max(used) - level.high >= _ONSET_PART * change.gain

    def _busiest(self, comparison: Comparison) -> dict[SubjectKey, float]:
        """Return what each subject used before in its busiest seconds, as many as are active."""
        active, before = comparison.active.seconds, comparison.reference.means.seconds
        return {key: level.busiest(active, before) for key, level in self._levels.items()}

    def _used_now(self) -> dict[SubjectKey, float]:
        """Return what each subject uses; 0 for one of the reference that has ended."""
        used = {key: level.mean for key, level in self._comparison.active.of(self.metric).items()}
        if not used:  # the metric was not read
            return {}
        last_ns = self._comparison.active.last_ns
        for key in self._levels.keys() - used.keys():
            if not self._directory.may_live(key, last_ns):
                used[key] = 0.0
        return used

    def _level(self, key: SubjectKey) -> Level | None:
        if key in self._levels:
            return self._levels[key]
        reference = self._comparison.reference
        level = reference.level_of_absent(self.metric, key, self._directory)
        return NOTHING if level is None and self._from_zero else level

    def _change(self, key: SubjectKey, level: Level | None) -> Change | None:
        if level is None:
            return None
        name = self._directory.unique_name(key)
        used, before = self._now.own.get(name, 0.0), self._before.own.get(name, 0.0)
        high = max(before, self._highs.own.get(name, 0.0))
        now, then, busiest = (math.asinh(each / self.quantum) for each in (used, before, high))
        return Change(
            key, self._owner(key), used, now - then, now - busiest, used - high,
            self._percent(self._now, key), self._percent(self._before, key),
        )  # fmt: skip

    def _owner(self, key: SubjectKey) -> str:
        return self._directory.display_name(key)

    def _percent(self, shares: Shares, key: SubjectKey) -> float:
        return shares.percent(self._directory.unique_name(key))

    def _split(self, values: dict[SubjectKey, float], means: SubjectMeans) -> Shares:
        by_name = {self._directory.unique_name(key): value for key, value in values.items()}
        parents = self._directory.parents_of(by_name)
        return split(by_name, parents, means.host.get(self.metric, math.nan))
