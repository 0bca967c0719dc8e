"""Constant columns: they are neither stored nor scored until they change.

On most hosts every second column is constant.  Everything learned about such a column follows from
its level, so it can continue as if it had been stored all the time.  Activating a column costs as
much as a second of the node, so a column that changed after it was constant waits longer until it
is constant again.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from reveal_analyzer.arrays import Bools, Floats, Floats32, Indices
from reveal_analyzer.derive.columns import Column, ColumnPlan, previous_indices
from reveal_analyzer.derive.deriver import Second
from reveal_analyzer.kernels import backend
from reveal_analyzer.live.column_map import ColumnMap, positions
from reveal_analyzer.live.scaling import Capacity, ColumnScaling
from reveal_analyzer.live.settings import LiveSettings
from reveal_analyzer.state.labels import pack_labels, unpack_labels
from reveal_analyzer.state.tree import (
    StateError,
    StateTree,
    array,
    finite_array,
    integer,
    number,
)

_SAME_SIZE = 0.1  # relative difference of memory up to which a saved scale is used
MIN_COLUMNS = 16  # columns set constant together: fewer do not pay for moving the others


@dataclass(frozen=True, eq=False)
class SavedColumns:
    """What is saved of ``ConstantColumns``; the plan itself is not."""

    labels: tuple[str, ...]
    constant: Bools
    reactivated: Bools
    level: Floats
    capacity: Capacity

    @classmethod
    def of(cls, tree: StateTree) -> SavedColumns:
        labels = unpack_labels(tree, "labels")
        if not labels:
            raise StateError("'labels' are none")
        memory = number(tree, "memory")
        if memory <= 0:
            raise StateError("'memory' is not positive")
        shape = (len(labels),)
        return cls(
            labels,
            array(tree, "constant", np.bool_, shape),
            array(tree, "reactivated", np.bool_, shape),
            finite_array(tree, "level", np.float64, shape),
            (memory, integer(tree, "cpus", least=1)),
        )

    @property
    def active(self) -> tuple[str, ...]:
        """Return the labels of the columns that are not constant."""
        labels = self.labels
        return tuple([labels[index] for index in np.flatnonzero(~self.constant).tolist()])

    def fits(self, second: Second) -> bool:
        """Return whether the node has about the size that it had."""
        memory, cpus = self.capacity
        memory_now, cpus_now = ColumnScaling.capacity_of(second, self.capacity)
        return cpus == cpus_now and math.isclose(memory, memory_now, rel_tol=_SAME_SIZE)


@dataclass(frozen=True, eq=False)
class ConstantColumns:
    """The columns of a plan, and which of them are active: stored and scored.

    ``constant``, ``reactivated`` and ``level`` (the value a constant column stays at) cover all
    columns.  ``active`` are the indices of those that are not constant, ``scaling`` is theirs and
    ``whole`` that of all.  ``reactivated`` columns changed after they were constant.
    """

    plan: ColumnPlan
    whole: ColumnScaling
    constant: Bools
    reactivated: Bools
    level: Floats
    active: Indices
    scaling: ColumnScaling

    @classmethod
    def none(
        cls, second: Second, settings: LiveSettings, capacity: Capacity | None = None
    ) -> ConstantColumns:
        """Return the state in which all columns are active, for a node of this second's size."""
        whole, width = ColumnScaling(second, settings, capacity), len(second.plan.columns)
        constant, reactivated = np.zeros(width, np.bool_), np.zeros(width, np.bool_)
        return cls(
            second.plan, whole, constant, reactivated, np.zeros(width), np.arange(width), whole
        )

    @property
    def columns(self) -> tuple[Column, ...]:
        """Return all columns."""
        return self.plan.columns

    @property
    def labels(self) -> tuple[str, ...]:
        """Return the labels of the active columns."""
        labels = self.plan.labels
        return tuple([labels[index] for index in self.active.tolist()])

    @property
    def scaled_levels(self) -> Floats32:
        """Return the scaled levels of the active columns from when they were constant."""
        return self.scaling.scale(self.level[self.active]).astype(np.float32)

    @cached_property
    def positions(self) -> Indices:
        """Return the position of every column among the active ones, -1 for constant ones."""
        return positions(self.active, len(self.columns))

    @cached_property
    def all_scaled_levels(self) -> Floats32:
        """Return the scaled levels of all columns from when they were constant."""
        return self.whole.scale(self.level).astype(np.float32)

    def rounded_levels(self) -> Floats:
        """Return the levels of all columns in base units, in the precision of the history."""
        return self.whole.base_units(self.all_scaled_levels)

    def for_table(self, second: Second, settings: LiveSettings) -> ConstantColumns:
        """Return the state for another plan's columns; new columns are active."""
        size = ColumnScaling.capacity_of(second, (self.whole.memory, self.whole.cpus))
        result = ConstantColumns.none(second, settings, size)
        source = result.source(self)
        constant, reactivated = (
            (source >= 0) & flags[source] for flags in (self.constant, self.reactivated)
        )
        level = np.where(source >= 0, self.level[source], 0.0)
        return replace(result, reactivated=reactivated, level=level)._with(constant)

    @classmethod
    def restored(
        cls, second: Second, settings: LiveSettings, saved: SavedColumns
    ) -> ConstantColumns:
        """Return the state for a second's columns from saved ones; new columns are active."""
        result = cls.none(second, settings, saved.capacity)
        source = previous_indices(result.plan.labels, saved.labels)
        known = source >= 0
        constant, reactivated = saved.constant[source] & known, saved.reactivated[source] & known
        level = np.where(known, saved.level[source], 0.0)
        return replace(result, reactivated=reactivated, level=level)._with(constant)

    def save(self) -> StateTree:
        """Return labels and levels, and of which size of node the scale is."""
        return {
            "labels": pack_labels(self.plan.labels),
            "constant": self.constant,
            "reactivated": self.reactivated,
            "level": self.level,
            "memory": self.whole.memory,
            "cpus": self.whole.cpus,
        }

    def source(self, previous: ConstantColumns) -> Indices:
        """Return the previous index of each of all columns, -1 for new ones."""
        return previous_indices(self.plan.labels, previous.plan.labels)

    def activate_changed(self, values: Floats) -> ConstantColumns:
        """Activate constant columns that changed in this second; a missing value is no change."""
        changed = backend.current().changed_columns(values, self.level, self.constant)
        if not changed.size:
            return self
        constant, reactivated = self.constant.copy(), self.reactivated.copy()
        constant[changed], reactivated[changed] = False, True
        return replace(self, reactivated=reactivated)._with(constant)

    def deactivate(
        self, calm: Bools, values: Floats, stored: Floats32, *, again: bool
    ) -> ConstantColumns:
        """Make the ``calm`` active columns constant, at their value in this second.

        ``stored`` are the scaled levels in the history; a column whose value differs stays active.
        Reactivated columns stay active too, unless ``again`` is set.
        """
        level = np.where(np.isnan(values), 0.0, values)
        same = self.scaling.scale(level[self.active]).astype(np.float32) == stored
        chosen = self.active[calm & same & (again | ~self.reactivated[self.active])]
        if chosen.size < MIN_COLUMNS:
            return self
        constant = self.constant.copy()
        constant[chosen] = True
        level = np.where(constant & ~self.constant, level, self.level)
        return replace(self, level=level)._with(constant)

    def column_map(self, previous: ConstantColumns) -> ColumnMap:
        """Return the mapping from the previously active columns to those active now."""
        return ColumnMap(previous_indices(self.labels, previous.labels), self.scaled_levels)

    def _with(self, constant: Bools) -> ConstantColumns:
        active = np.flatnonzero(~constant)
        scaling = self.whole.only(active)
        return replace(self, constant=constant, active=active, scaling=scaling)
