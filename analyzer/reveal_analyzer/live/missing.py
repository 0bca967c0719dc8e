"""Columns without a value: how long each has not been read."""

from __future__ import annotations

import numpy as np

from reveal_analyzer.arrays import Bools, Indices, Ints
from reveal_analyzer.derive.columns import ColumnPlan
from reveal_analyzer.derive.deriver import Second

UNOBSERVED_S = 3  # seconds without a value after which a column is unobserved


class MissingColumns:
    """Counts the seconds in which nothing was read of each column.

    A ratio of which both sides were read has no value while nothing happens (a disk without
    requests has no mean time of a request).  It is observed all the same.
    """

    def __init__(self) -> None:
        self.start(0)

    def start(self, columns: int) -> None:
        """Start with columns that were read until now."""
        self._seconds: Ints = np.zeros(columns, np.int64)
        self._none: Bools = np.zeros(columns, np.bool_)
        self.unobserved: Bools = self._none
        self._idle = True

    def update(self, second: Second) -> None:
        """Count a second."""
        unread = np.isnan(second.values)
        if not unread.any():
            if not self._idle:
                self.start(second.values.size)
            return
        self._idle = False
        self._seconds = (self._seconds + 1) * unread
        unobserved = self._seconds > UNOBSERVED_S
        if unobserved.any():
            plan = second.plan
            unobserved[plan.ratio_columns] &= _missing_input(plan, np.isnan(second.channels))
        self.unobserved = unobserved if unobserved.any() else self._none

    def remap(self, source: Indices) -> None:
        """Adopt another table: previous index of each of its columns, -1 for new ones."""
        seconds = self._seconds
        self.start(source.size)
        if seconds.size and seconds.any():
            self._seconds, self._idle = np.where(source < 0, 0, seconds[source]), False


def _missing_input(plan: ColumnPlan, unread: Bools) -> Bools:
    """Return for each ratio whether any channel that it reads has no value."""
    owners, channels = plan.ratio_inputs
    count = plan.recipe.formulas.ends.size
    return np.bincount(owners, unread[channels], count) > 0
