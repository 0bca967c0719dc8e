"""Scaling of columns, their weights by harm, and their pooling into scores of subsystems."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from copy import copy

import numpy as np

from reveal_analyzer.arrays import Floats, Floats32, Indices
from reveal_analyzer.derive.columns import Column, quanta
from reveal_analyzer.derive.deriver import Second
from reveal_analyzer.kernels import live
from reveal_analyzer.kernels.live import MetricGroups
from reveal_analyzer.live.settings import LiveSettings
from reveal_contract.metric import Harm, Subsystem

_MEMORY_UNKNOWN = 16 << 30  # bytes
_ACTIVITY_SHARE = 0.75  # of the least threshold
_SUBSYSTEMS = tuple(Subsystem)
_GroupKey = tuple[Subsystem, str]
Capacity = tuple[float, int]  # bytes of memory and number of CPUs


class ColumnScaling:
    """How values of a set of columns are scaled, weighted and pooled on a node of this size."""

    def __init__(
        self, second: Second, settings: LiveSettings, capacity: Capacity | None = None
    ) -> None:
        columns = second.plan.columns
        self.memory, self.cpus = capacity or _capacity(second)
        self._quantum = quanta(columns, self.memory, self.cpus)
        self.weights = harm_weights(columns, settings)
        self.subsystems: Indices = subsystem_indices(columns)
        self._pooling = GroupPooling(columns, settings.top)

    @staticmethod
    def capacity_of(second: Second) -> Capacity:
        """Return the size of the node of a second."""
        return _capacity(second)

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

    def base_units(self, scaled: Floats32) -> Floats:
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
        keys = [
            (column.metric.subsystem, f"{column.metric.metric_group}|{column.instance}")
            for column in columns
        ]
        owners = Counter(owner for owner, _ in set(keys))
        counts = [owners[subsystem] for subsystem in Subsystem]
        self._keys = keys
        self.groups = _groups(keys, np.clip(counts, 1, top).astype(np.float64), top)

    def only(self, indices: Indices) -> GroupPooling:
        """Return the pooling of these columns; a mean still counts as many groups as before."""
        result = copy(self)
        result._keys = [self._keys[index] for index in indices]
        result.groups = _groups(result._keys, self.groups.counted, self.groups.top)
        return result

    def scores(self, weighted: Floats32) -> dict[Subsystem, float]:
        """Return the mean of the ``top`` worst groups by subsystem; no value may be negative."""
        return by_subsystem(live.subsystem_means(weighted, self.groups))


def by_subsystem(means: Floats) -> dict[Subsystem, float]:
    """Return one value per subsystem as a mapping."""
    return dict(zip(_SUBSYSTEMS, means.tolist(), strict=True))


def subsystem_indices(columns: Sequence[Column]) -> Indices:
    """Return the number of each column's subsystem, in the order of ``Subsystem``."""
    numbers = {subsystem: number for number, subsystem in enumerate(_SUBSYSTEMS)}
    return np.array([numbers[column.metric.subsystem] for column in columns], np.intp)


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


def _groups(keys: Sequence[_GroupKey], counted: Floats, top: int) -> MetricGroups:
    groups: dict[_GroupKey, list[int]] = {}
    for index, key in enumerate(keys):
        groups.setdefault(key, []).append(index)
    sizes = [len(indices) for indices in groups.values()]
    counts = Counter(owner for owner, _ in groups)
    return MetricGroups(
        order=np.array([index for indices in groups.values() for index in indices], np.intp),
        starts=np.cumsum([0, *sizes], dtype=np.intp)[:-1],
        by_subsystem=_table(list(groups), max([top, *counts.values()])),
        counted=counted,
        top=top,
    )


def _table(groups: list[_GroupKey], width: int) -> Indices:
    """Return (subsystems, width): the groups of a subsystem, padded with the number of groups."""
    table = np.full((len(Subsystem), width), len(groups), np.intp)
    owned: dict[Subsystem, list[int]] = {}
    for index, (owner, _) in enumerate(groups):
        owned.setdefault(owner, []).append(index)
    for row, subsystem in enumerate(Subsystem):
        mine = owned.get(subsystem, [])
        table[row, : len(mine)] = mine
    return table


def _capacity(second: Second) -> Capacity:
    """Return bytes of memory and number of CPUs, from the channels themselves.

    Large hosts have no channel for each CPU; recordings of older collectors no ``cpu.online``.
    """
    names = second.plan.channels
    levels = {
        c.metric: float(second.channels[index])
        for index, c in enumerate(names)
        if c.metric in ("memory.mem_total", "cpu.online")
    }
    memory, online = levels.get("memory.mem_total", 0.0), levels.get("cpu.online", 0.0)
    counted = sum(1 for c in names if c.metric == "cpu.user" and c.instance)
    cpus = int(online) if online > 0 else max(counted, 1)
    return memory if memory > 0 else float(_MEMORY_UNKNOWN), cpus
