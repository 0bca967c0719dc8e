"""A recording of one node as a table: a row a second, a column a metric seen through a feature."""

from __future__ import annotations

import numpy as np

from reveal_analyzer.arrays import Floats, Indices
from reveal_analyzer.derive.columns import Column, Plan
from reveal_analyzer.derive.deriver import Deriver, Second
from reveal_analyzer.tables.scoring.table import Table
from reveal_contract.channels import ChannelTable
from reveal_contract.wire import Message


class Recorded:
    """Gathers the seconds of one node; columns may come and go with its channel tables."""

    def __init__(self) -> None:
        self.columns: dict[str, Column] = {}
        self._deriver = Deriver()
        self._seconds: list[tuple[int, Floats, Indices]] = []
        self._places: dict[int, tuple[Plan, Indices]] = {}  # a plan kept alive keeps its id

    def push(self, message: Message, table: ChannelTable) -> None:
        """Take in the next slice; one that starts no later than the last is left out."""
        second = self._deriver.second(message, table)
        if self._seconds and second.start_ns <= self._seconds[-1][0]:
            return  # the clock was set back: a second cannot stand in two rows
        self._seconds.append((second.start_ns, second.values, self._known(second)))

    def table(self) -> Table:
        """Values (seconds, columns) in base units, NaN where a column was not there."""
        values = np.full((len(self._seconds), len(self.columns)), np.nan)
        for row, (_, seen, places) in enumerate(self._seconds):
            values[row, places] = seen
        times = np.array([start for start, _, _ in self._seconds], np.int64)
        return Table(times, tuple(self.columns), values)

    def _known(self, second: Second) -> Indices:
        """Where this second's columns stand among all that were ever seen."""
        if id(second.plan) not in self._places:
            for label, column in zip(second.plan.labels, second.plan.columns, strict=True):
                self.columns.setdefault(label, column)
            at = {label: place for place, label in enumerate(self.columns)}
            places = np.array([at[label] for label in second.plan.labels], np.intp)
            self._places[id(second.plan)] = second.plan, places
        return self._places[id(second.plan)][1]
