"""What an episode showed, column by column, gathered over its anomalous seconds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.arrays import Floats
from reveal_analyzer.derive.columns import Plan, places_before
from reveal_analyzer.hypotheses.signatures import Evidence

Measured = NDArray[np.float32] | Floats  # live in single precision, in hindsight in double


class Observed(NamedTuple):
    """One scored second: values, silenced excess (2, columns) and weighed excess (columns)."""

    start_ns: int
    plan: Plan
    values: Floats
    excess: Measured
    shown: Measured
    baseline: Floats


class Trace:
    """Mean value, peak excess and baseline of every column over an episode."""

    def __init__(self) -> None:
        self._plan: Plan | None = None
        self._seconds = 0
        self._known: Floats = np.zeros(0)
        self.sums: Floats = np.zeros(0)
        self.shown: Floats = np.zeros(0)
        self.excess: Floats = np.zeros((2, 0))
        self.baseline: Floats = np.zeros(0)

    def add(self, seen: Observed) -> None:
        """Count one anomalous second."""
        if not seen.excess.shape[1]:
            return
        if self._plan is None:
            self._begin(seen)
        elif seen.plan is not self._plan:
            self._follow(seen)
        self._seconds += 1
        self._known += ~np.isnan(seen.values)
        self.sums += np.nan_to_num(seen.values)
        self.excess = np.maximum(self.excess, seen.excess)
        self.shown = self.shown + seen.shown

    @property
    def evidence(self) -> Evidence:
        """For hypotheses: the means over the seconds with a value (NaN: none), and the peaks."""
        if self._plan is None:
            return Evidence((), np.zeros(0), np.zeros((2, 0)))
        means = np.where(self._known > 0, self.sums / np.maximum(self._known, 1), np.nan)
        return Evidence(self._plan.columns, means, self.excess)

    @property
    def weight(self) -> Floats:
        """Mean weighed excess of every column: what the finding rests on."""
        return self.shown / max(self._seconds, 1) if self._plan else np.zeros(0)

    def _begin(self, seen: Observed) -> None:
        width = len(seen.plan.columns)
        self._plan = seen.plan
        self._known, self.sums, self.shown = np.zeros(width), np.zeros(width), np.zeros(width)
        self.excess = np.zeros((2, width))
        self.baseline = seen.baseline.copy()

    def _follow(self, seen: Observed) -> None:
        """Columns changed in the middle of the episode: carry over by label."""
        assert self._plan is not None
        source = places_before(seen.plan.labels, self._plan.labels)
        self._plan = seen.plan
        new = source < 0
        self._known = np.where(new, 0.0, self._known[source])
        self.sums = np.where(new, 0.0, self.sums[source])
        self.shown = np.where(new, 0.0, self.shown[source])
        self.excess = np.where(new, 0.0, self.excess[:, source])
        self.baseline = np.where(new, seen.baseline, self.baseline[source])
