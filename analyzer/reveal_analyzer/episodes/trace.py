"""Observations of an episode, accumulated per column over its anomalous seconds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reveal_analyzer.arrays import Floats, Floats32
from reveal_analyzer.derive.columns import ColumnPlan, previous_indices
from reveal_analyzer.hypotheses.signatures import ColumnStats

AnyFloats = Floats32 | Floats  # live scores use single precision, offline ones double


class ObservedSecond(NamedTuple):
    """One scored second, by column of ``plan``.

    ``excess`` (2, columns) is the distance above and below the baseline in spreads;
    ``weighted_excess`` (columns) is what counts for the score.
    """

    start_ns: int
    plan: ColumnPlan
    values: Floats
    excess: AnyFloats
    weighted_excess: AnyFloats
    baseline: Floats


class Trace:
    """Mean value, peak excess and baseline of every column over an episode."""

    def __init__(self) -> None:
        self._plan: ColumnPlan | None = None
        self._seconds = 0
        self._value_counts: Floats = np.zeros(0)  # seconds in which a column had a value
        self.sums: Floats = np.zeros(0)
        self.weighted_excess: Floats = np.zeros(0)
        self.excess: Floats = np.zeros((2, 0))
        self.baseline: Floats = np.zeros(0)

    def add(self, second: ObservedSecond) -> None:
        """Count one anomalous second."""
        if not second.excess.shape[1]:
            return
        if self._plan is None:
            self._start(second)
        elif second.plan is not self._plan:
            self._remap(second)
        self._seconds += 1
        self._value_counts += ~np.isnan(second.values)
        self.sums += np.nan_to_num(second.values)
        self.excess = np.maximum(self.excess, second.excess)
        self.weighted_excess = self.weighted_excess + second.weighted_excess

    @property
    def stats(self) -> ColumnStats:
        """Mean of each column over the seconds with a value (NaN if there is none), and peaks."""
        if self._plan is None:
            return ColumnStats((), np.zeros(0), np.zeros((2, 0)))
        counts = self._value_counts
        means = np.where(counts > 0, self.sums / np.maximum(counts, 1), np.nan)
        return ColumnStats(self._plan.columns, means, self.excess)

    @property
    def weights(self) -> Floats:
        """Mean weighted excess of each column: how much the finding rests on it."""
        return self.weighted_excess / max(self._seconds, 1) if self._plan else np.zeros(0)

    def _start(self, second: ObservedSecond) -> None:
        width = len(second.plan.columns)
        self._plan = second.plan
        self._value_counts, self.sums = np.zeros(width), np.zeros(width)
        self.weighted_excess, self.excess = np.zeros(width), np.zeros((2, width))
        self.baseline = second.baseline.copy()

    def _remap(self, second: ObservedSecond) -> None:
        """Carry the columns over by label after the channel table changed."""
        assert self._plan is not None
        source = previous_indices(second.plan.labels, self._plan.labels)
        self._plan = second.plan
        new = source < 0
        self._value_counts = np.where(new, 0.0, self._value_counts[source])
        self.sums = np.where(new, 0.0, self.sums[source])
        self.weighted_excess = np.where(new, 0.0, self.weighted_excess[source])
        self.excess = np.where(new, 0.0, self.excess[:, source])
        self.baseline = np.where(new, second.baseline, self.baseline[source])
