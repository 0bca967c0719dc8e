"""Levels that came with an alarm and were learned as the new normal.

The score learns a lasting alarm as the node's new normal, so that it can detect other faults.  The
fault itself is still there.  It ends when the levels from before the alarm return, so the present
is also compared with the reference from before the alarm.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import compress

import numpy as np

from reveal_analyzer.arrays import Floats, Floats32, Indices
from reveal_analyzer.kernels.live import UNIT
from reveal_analyzer.live.column_map import ColumnMap
from reveal_analyzer.live.ranges import Ranges
from reveal_analyzer.live.scaling import ColumnScaling
from reveal_contract.metric import Subsystem

LONGEST_S = 24 * 3600  # after a day the new level is how the node is
CALM_S = 10  # seconds within the previous range after which the old levels have returned


@dataclass
class AlarmReference:
    """Ranges, own excess and thresholds as they were when an alarm began."""

    ranges: Ranges
    own_excess: Floats32
    thresholds: Floats
    highest: Floats  # of all columns, constant ones included

    def remap(self, column_map: ColumnMap, floors: Floats32, active: Indices) -> AlarmReference:
        """Return the same reference for another set of scored columns, ``active`` among all."""
        ranges = self.ranges.remap(column_map, floors)
        own_excess = column_map.excess(self.own_excess)
        # a column that did not exist before the alarm has no range to exceed
        unknown = (column_map.source < 0) & np.isinf(self.highest[active])
        ranges.spread[..., unknown] = np.inf
        return replace(self, ranges=ranges, own_excess=own_excess)

    def for_table(self, source: Indices) -> AlarmReference:
        """Return the same reference for another table; ``source`` is -1 for new columns."""
        highest = self.highest.take(source)
        highest[source < 0] = np.inf
        return replace(self, highest=highest)


class NewNormal:
    """Tracks whether the levels of a learned alarm are still there, second by second."""

    def __init__(self) -> None:
        self.returned = False  # set in the second in which the old levels have returned
        self._reference: AlarmReference | None = None
        self._seconds = 0
        self._calm = 0

    @property
    def reference(self) -> AlarmReference | None:
        """Return the reference from before the alarm that is tracked; None if there is none."""
        return self._reference

    def start(self, reference: AlarmReference) -> bool:
        """Start tracking an alarm; return False if another alarm is already tracked."""
        if self._reference is not None:
            return False
        self._reference, self._seconds, self._calm = reference, 0, 0
        return True

    def update(self, views: Floats32, scaling: ColumnScaling) -> frozenset[Subsystem]:
        """Return the subsystems that are still above their threshold from before the alarm."""
        self.returned = False
        if self._reference is None:
            return frozenset()
        excess = self._reference.ranges.excess(views)
        excess /= np.maximum(self._reference.own_excess, UNIT)
        over = scaling.means(scaling.weigh(excess)) > self._reference.thresholds
        above = frozenset(compress(Subsystem, over.tolist()))
        self._seconds += 1
        self._calm = 0 if above else self._calm + 1
        self.returned = self._calm >= CALM_S
        if self.returned or self._seconds >= LONGEST_S:
            self._reference = None
        return above

    def adopt_table(self, source: Indices) -> None:
        """Adopt another table: previous index of each of its columns, -1 for new ones."""
        if self._reference is not None:
            self._reference = self._reference.for_table(source)

    def remap(self, column_map: ColumnMap, floors: Floats32, active: Indices) -> None:
        """Adopt another set of scored columns, ``active`` among all."""
        if self._reference is not None:
            self._reference = self._reference.remap(column_map, floors, active)
