"""Columns without a value: how long each has not been read."""

from __future__ import annotations

import numpy as np

from reveal_analyzer.arrays import Bools, Indices, Ints, has_nan
from reveal_analyzer.derive.deriver import Second

UNOBSERVED_S = 3  # seconds without a value after which a column is unobserved


class MissingColumns:
    """Counts the seconds in which nothing was read of each column.

    A derived column may have no value although all its channels were read: without anything to
    share, there is no share.  It is observed all the same.
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
        if not has_nan(second.channels):  # nearly always
            if not self._idle:
                self.start(second.values.size)
            return
        unread = _unread(second)
        self._idle = False
        self._seconds = (self._seconds + 1) * unread
        unobserved = self._seconds > UNOBSERVED_S
        self.unobserved = unobserved if unobserved.any() else self._none

    def remap(self, source: Indices) -> None:
        """Adopt another table: previous index of each of its columns, -1 for new ones."""
        seconds = self._seconds
        self.start(source.size)
        if seconds.any():
            self._seconds, self._idle = np.where(source < 0, 0, seconds[source]), False


def _unread(second: Second) -> Bools:
    """Return the columns without a value of which a channel was not read."""
    plan, unread = second.plan, np.isnan(second.values)
    missing = np.isnan(second.channels)
    derived = unread[plan.first_derived :]
    if derived.any():
        columns, channels = plan.derived_inputs
        inputs = np.bincount(columns, missing[channels], unread.size) > 0
        derived &= inputs[plan.first_derived :]
    return unread
