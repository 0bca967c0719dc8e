"""A level that came with an alarm and stayed: held against the past from before the alarm.

The score takes an alarm that lasts as this node's new normal, so that it stays awake for other
faults.  The fault is still there; it ends when the levels from before return.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import compress

import numpy as np

from reveal_analyzer.arrays import Floats, Floats32, Indices
from reveal_analyzer.kernels.live import UNIT
from reveal_analyzer.live.ranges import Ranges
from reveal_analyzer.live.remap import Shift
from reveal_analyzer.live.scaling import Weighing
from reveal_contract.metric import Subsystem

MOST_S = 24 * 3600  # after a day it is how the node is
CALM_S = 10  # seconds within the past from before: it has returned


@dataclass
class Before:
    """The reference of an alarm, as it was when the alarm began."""

    ranges: Ranges
    own_excess: Floats32
    cuts: Floats
    highest: Floats  # of all columns

    def moved(self, shift: Shift, floors: Floats32, places: Indices) -> Before:
        """The same reference of other columns that are judged: those at these places."""
        ranges, own_excess = self.ranges.moved(shift, floors), shift.excess(self.own_excess)
        unknown = (shift.source < 0) & np.isinf(self.highest[places])
        ranges.spread[..., unknown] = np.inf  # in excess of nothing
        return replace(self, ranges=ranges, own_excess=own_excess)

    def of_columns(self, source: Indices) -> Before:
        """All columns are others; -1 are new ones, of which nothing is known."""
        highest = self.highest.take(source)
        highest[source < 0] = np.inf
        return replace(self, highest=highest)


class Staying:
    """What of an alarm is still there, second by second."""

    def __init__(self) -> None:
        self.returned = False  # in the second in which the levels from before have
        self._before: Before | None = None
        self._seconds = 0
        self._calm = 0

    @property
    def before(self) -> Before | None:
        """The reference from before what stays; None while nothing does."""
        return self._before

    def begin(self, before: Before) -> bool:
        """An alarm has lasted so long that its level is learned; of two the first counts.

        Whether it is this one.
        """
        if self._before is not None:
            return False
        self._before, self._seconds, self._calm = before, 0, 0
        return True

    def step(self, views: Floats32, weighing: Weighing) -> frozenset[Subsystem]:
        """The subsystems that are still as far outside the past from before as alarms are."""
        self.returned = False
        if self._before is None:
            return frozenset()
        excess = self._before.ranges.excess(views)
        excess /= np.maximum(self._before.own_excess, UNIT)
        over = weighing.means(weighing.shown(excess)) > self._before.cuts
        there = frozenset(compress(Subsystem, over.tolist()))
        self._seconds += 1
        self._calm = 0 if there else self._calm + 1
        self.returned = self._calm >= CALM_S
        if self.returned or self._seconds >= MOST_S:
            self._before = None
        return there

    def follow(self, source: Indices) -> None:
        """All columns are others: where each came from, -1 for new ones."""
        if self._before is not None:
            self._before = self._before.of_columns(source)

    def move(self, shift: Shift, floors: Floats32, places: Indices) -> None:
        """The columns that are judged changed: they are those at these places."""
        if self._before is not None:
            self._before = self._before.moved(shift, floors, places)
