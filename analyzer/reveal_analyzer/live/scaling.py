"""Scaling of columns, their weights by harm, and their pooling into scores of subsystems."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from reveal_analyzer.arrays import Floats, Floats32, Indices
from reveal_analyzer.derive.columns import (
    COLUMN_SETS,
    DEFAULT_MEMORY,
    Column,
    ColumnQuanta,
    PlanColumns,
)
from reveal_analyzer.derive.deriver import Second
from reveal_analyzer.kernels import live
from reveal_analyzer.kernels.live import MetricGroups
from reveal_analyzer.live.settings import LiveSettings
from reveal_contract.metric import Harm, Subsystem

_ACTIVITY_SHARE = 0.75  # of the least threshold
_SUBSYSTEMS = tuple(Subsystem)
_SUBSYSTEM_NUMBERS = {subsystem: number for number, subsystem in enumerate(_SUBSYSTEMS)}
_GroupKey = tuple[Subsystem, str]
Capacity = tuple[float, int]  # bytes of memory and number of CPUs


class ColumnScaling:
    """How values of a set of columns are scaled, weighted and pooled on a node of this size."""

    def __init__(
        self, second: Second, settings: LiveSettings, capacity: Capacity | None = None
    ) -> None:
        self.memory, self.cpus = capacity or _capacity(second)
        shared = _shared(second.plan.column_set, settings)
        self._quantum = shared.quanta.scaled(self.memory, self.cpus)
        self.weights, self.subsystems = shared.weights, shared.subsystems
        self._pooling = shared.pooling

    @staticmethod
    def capacity_of(second: Second, known: Capacity) -> Capacity:
        """Return the size of the node of a second; what was not read is as in ``known``."""
        return _capacity(second, known)

    def only(self, indices: Indices) -> ColumnScaling:
        """Return the scaling of these columns; the others are taken as within their range."""
        result = copy(self)
        result._quantum, result.weights = self._quantum[indices], self.weights[:, indices]
        result.subsystems = self.subsystems[indices]
        result._pooling = self._pooling.only(indices)
        return result

    def scale(self, values: Floats) -> Floats:
        """Return scaled values: linear below the amount that matters, logarithmic above."""
        scaled: Floats = np.arcsinh(values / self._quantum)
        return scaled

    @property
    def groups(self) -> MetricGroups:
        """Return which columns are pooled."""
        return self._pooling.groups

    def base_units(self, scaled: Floats | Floats32) -> Floats:
        """Return values in base units; the inverse of ``scale``."""
        values: Floats = np.sinh(scaled.astype(np.float64)) * self._quantum
        return values

    def weigh(self, excess: Floats32) -> Floats32:
        """Return excess (2, columns) weighted by harm; activity alone never reaches a threshold."""
        return live.weigh(excess, self.weights)

    def means(self, weighted: Floats32) -> Floats:
        """Return the mean of the worst groups of every subsystem."""
        return live.subsystem_means(weighted, self.groups)

    def scores(self, weighted: Floats32) -> dict[Subsystem, float]:
        """Return the same means by subsystem."""
        return self._pooling.scores(weighted)


class GroupPooling:
    """Pooling of columns: the worst column of a group stands for it, and the worst groups count.

    Instances that are independent devices (disks, NICs) form a group each; CPUs and folds do not.
    """

    def __init__(self, columns: Sequence[Column], top: int) -> None:
        numbers: dict[_GroupKey, int] = {}
        keys = [
            (column.metric.subsystem, f"{column.metric.metric_group}|{column.instance}")
            for column in columns
        ]
        # of each column its group, and of each group its subsystem
        self._group: Indices = np.array(
            [numbers.setdefault(key, len(numbers)) for key in keys], np.intp
        )
        self._owner: Indices = np.array(
            [_SUBSYSTEM_NUMBERS[owner] for owner, _ in numbers], np.intp
        )
        counts = np.bincount(self._owner, minlength=len(Subsystem))
        counted = np.clip(counts, 1, top).astype(np.float64)
        self.groups = _groups(self._group, self._owner, counted, top)

    def only(self, indices: Indices) -> GroupPooling:
        """Return the pooling of these columns; a mean still counts as many groups as before."""
        present, first, number = np.unique(
            self._group[indices], return_index=True, return_inverse=True
        )
        by_appearance = np.argsort(first)
        result = copy(self)
        result._group = np.argsort(by_appearance)[number]
        result._owner = self._owner[present[by_appearance]]
        result.groups = _groups(result._group, result._owner, self.groups.counted, self.groups.top)
        return result

    def scores(self, weighted: Floats32) -> dict[Subsystem, float]:
        """Return the mean of the ``top`` worst groups by subsystem; no value may be negative."""
        return by_subsystem(live.subsystem_means(weighted, self.groups))


@dataclass(frozen=True)
class _Shared:
    """What follows from the columns alone, whatever the size of the node is."""

    quanta: ColumnQuanta
    weights: Floats32
    subsystems: Indices
    pooling: GroupPooling


@lru_cache(maxsize=COLUMN_SETS)
def _shared(columns: PlanColumns, settings: LiveSettings) -> _Shared:
    return _Shared(
        ColumnQuanta.of(columns.columns),
        harm_weights(columns.columns, settings),
        subsystem_indices(columns.columns),
        GroupPooling(columns.columns, settings.top),
    )


def by_subsystem(means: Floats) -> dict[Subsystem, float]:
    """Return one value per subsystem as a mapping."""
    return dict(zip(_SUBSYSTEMS, means.tolist(), strict=True))


def subsystem_indices(columns: Sequence[Column]) -> Indices:
    """Return the number of each column's subsystem, in the order of ``Subsystem``."""
    return np.array([_SUBSYSTEM_NUMBERS[column.metric.subsystem] for column in columns], np.intp)


def harm_weights(columns: Sequence[Column], settings: LiveSettings) -> Floats32:
    """Return (3, columns): weights of an excess upward and downward, and the cap of the result.

    Harm counts fully in the harmful direction and not at all in the other.  Activity counts little,
    and its cap keeps it below every threshold, however unusual it is.
    """
    activity = settings.activity, settings.activity, _ACTIVITY_SHARE * settings.limit
    rows = [_weights(column.harm, column.metric.weight) or activity for column in columns]
    return np.array(rows, np.float32).reshape(-1, 3).T.copy()


def _weights(harm: Harm, weight: float) -> tuple[float, float, float] | None:
    """Return the weights of harm upward and downward, and no cap; ``None`` for activity."""
    if harm is Harm.HIGHER:
        return weight, 0.0, np.inf
    return (0.0, weight, np.inf) if harm is Harm.LOWER else None


def _groups(group: Indices, owner: Indices, counted: Floats, top: int) -> MetricGroups:
    """Return the groups of columns, by the group of each and the subsystem of each group."""
    sizes = np.bincount(group, minlength=owner.size)
    return MetricGroups(
        order=np.argsort(group, kind="stable"),
        starts=np.cumsum(sizes) - sizes,
        by_subsystem=_table(owner, top),
        counted=counted,
        top=top,
    )


def _table(owner: Indices, top: int) -> Indices:
    """Return (subsystems, width): the groups of a subsystem, padded with the number of groups."""
    owned = [np.flatnonzero(owner == number) for number in range(len(Subsystem))]
    width = max(top, *(each.size for each in owned))
    table = np.full((len(Subsystem), width), owner.size, np.intp)
    for row, mine in zip(table, owned, strict=True):
        row[: mine.size] = mine
    return table


def _capacity(second: Second, known: Capacity | None = None) -> Capacity:
    """Return bytes of memory and number of CPUs, from the channels themselves.

    What was not read in this second is as in ``known``.  Large hosts have no channel for each CPU;
    recordings of older collectors no ``cpu.online``.
    """
    names = second.plan.channels
    levels = {
        c.metric: float(second.channels[index])
        for index, c in enumerate(names)
        if c.metric in ("memory.mem_total", "cpu.online")
    }
    memory, online = levels.get("memory.mem_total", 0.0), levels.get("cpu.online", 0.0)
    if known is not None:
        memory, online = (
            before if math.isnan(now) else now
            for now, before in zip((memory, online), known, strict=True)
        )
    counted = sum(1 for c in names if c.metric == "cpu.user" and c.instance)
    cpus = int(online) if online > 0 else max(counted, 1)
    return memory if memory > 0 else DEFAULT_MEMORY, cpus
