"""A recording of one node as a table: one row per second, one column per metric and feature."""

from __future__ import annotations

import numpy as np

from reveal_analyzer.arrays import Floats, Indices
from reveal_analyzer.derive.columns import DEFAULT_MEMORY, Column, ColumnPlan, quanta
from reveal_analyzer.derive.deriver import Deriver, Second
from reveal_analyzer.live.scaling import Capacity, ColumnScaling
from reveal_analyzer.tables.scoring.table import Table
from reveal_contract.channels import ChannelTable
from reveal_contract.wire import Message


class RecordingTable:
    """Collects the seconds of one node; columns may come and go with its channel tables."""

    def __init__(self) -> None:
        self.columns: dict[str, Column] = {}
        self._deriver = Deriver()
        self._seconds: list[tuple[int, Floats, Indices]] = []
        self._indices: dict[int, tuple[ColumnPlan, Indices]] = {}  # a plan in use keeps its id
        self._capacity: Capacity = (DEFAULT_MEMORY, 1)

    def push(self, message: Message, table: ChannelTable) -> Second:
        """Add the next slice and return its second.

        A slice that starts no later than the last one is not added.
        """
        second = self._deriver.second(message, table)
        # where the clock was set back: a second cannot be in two rows
        if not self._seconds or second.start_ns > self._seconds[-1][0]:
            self._seconds.append((second.start_ns, second.values, self._known(second)))
        return second

    def table(self) -> Table:
        """Return values (seconds, columns) in base units, NaN where a column did not exist."""
        values = np.full((len(self._seconds), len(self.columns)), np.nan)
        for row, (_, observed, indices) in enumerate(self._seconds):
            values[row, indices] = observed
        times = np.array([start for start, _, _ in self._seconds], np.int64)
        return Table(times, tuple(self.columns), values)

    def quanta(self) -> dict[str, float]:
        """Return the amount of each column that begins to matter on this node, in base units."""
        amounts = quanta(tuple(self.columns.values()), *self._capacity)
        return dict(zip(self.columns, amounts.tolist(), strict=True))

    def _known(self, second: Second) -> Indices:
        """Return the indices of this second's columns among all columns so far."""
        if id(second.plan) not in self._indices:
            self._capacity = ColumnScaling.capacity_of(second, self._capacity)
            for label, column in zip(second.plan.labels, second.plan.columns, strict=True):
                self.columns.setdefault(label, column)
            index_of = {label: index for index, label in enumerate(self.columns)}
            indices = np.array([index_of[label] for label in second.plan.labels], np.intp)
            self._indices[id(second.plan)] = second.plan, indices
        return self._indices[id(second.plan)][1]
