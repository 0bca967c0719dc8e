"""Seconds in quarantine: they join the baseline unless a fault shows meanwhile."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from reveal_analyzer.arrays import Bools, Floats, Floats32, Indices
from reveal_analyzer.live.column_map import ColumnMap, flagged


@dataclass(slots=True)
class QuarantinedSecond:
    """A second that may join the baseline, by active column; None where nothing is marked.

    ``excess`` (2, columns) and ``scores`` are None before there were ranges.  ``left_out`` columns
    do not join the history, ``lasting`` ones not the own excess, and ``unlearned`` subsystems not
    the scores.
    """

    views: Floats32
    excess: Floats32 | None = None
    scores: Floats | None = None
    left_out: Bools | None = None
    lasting: Bools | None = None
    unlearned: Bools | None = None

    def leave_out(self, columns: Bools) -> None:
        """Keep these columns out of the history."""
        self.left_out = columns if self.left_out is None else self.left_out | columns

    def mark_lasting(self, columns: Bools) -> None:
        """Keep these columns out of the own excess."""
        self.lasting = columns if self.lasting is None else self.lasting | columns

    def mark_unlearned(self, subsystems: Bools) -> None:
        """Keep the scores of these subsystems out of the thresholds."""
        known = self.unlearned
        self.unlearned = subsystems if known is None else known | subsystems

    def remap(self, column_map: ColumnMap) -> None:
        """Adopt another set of active columns."""
        self.views = column_map.levels(self.views)
        if self.excess is not None:
            self.excess = column_map.excess(self.excess)
        if self.left_out is not None:
            self.left_out = column_map.flags(self.left_out)
        if self.lasting is not None:
            self.lasting = column_map.flags(self.lasting)


class Quarantine:
    """The last seconds, oldest first."""

    def __init__(self) -> None:
        self._waiting: deque[QuarantinedSecond] = deque()

    def __iter__(self) -> Iterator[QuarantinedSecond]:
        return iter(self._waiting)

    def append(self, second: QuarantinedSecond) -> None:
        self._waiting.append(second)

    def last(self, count: int) -> list[QuarantinedSecond]:
        """Return the last ``count`` seconds, newest first."""
        return list(islice(reversed(self._waiting), count))

    def released(self, hold: int) -> Iterator[QuarantinedSecond]:
        """Remove and return the oldest seconds until ``hold`` are left."""
        while len(self._waiting) > hold:
            yield self._waiting.popleft()

    def leave_out(self, columns: Indices, width: int, but: int) -> None:
        """Leave columns, of ``width`` active ones, out of all but the last ``but`` seconds."""
        flags = flagged(columns, width)
        for waiting in islice(self._waiting, max(0, len(self._waiting) - but)):
            waiting.leave_out(flags)

    def remap(self, column_map: ColumnMap) -> None:
        """Adopt another set of active columns."""
        for waiting in self._waiting:
            waiting.remap(column_map)
