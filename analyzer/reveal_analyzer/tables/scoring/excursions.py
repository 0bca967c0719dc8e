"""Excursions of a metric: stretches of samples away from its normal level, to one side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from reveal_analyzer.arrays import Bools, Floats, Indices
from reveal_analyzer.tables.scoring.scales import Scale, extremes
from reveal_analyzer.tables.scoring.spans import runs_of

BEGIN = 4.0  # spreads: noise hardly reaches them
_STAY = 2.0  # spreads: an excursion lasts while it exceeds them


@dataclass(frozen=True)
class Excursions:
    """First and end row of each excursion of a metric, end excluded, and its largest distance."""

    firsts: Indices
    ends: Indices
    heights: Floats

    def __len__(self) -> int:
        return len(self.firsts)

    def selected(self, chosen: Bools) -> Excursions:
        """Return some of the excursions."""
        return Excursions(self.firsts[chosen], self.ends[chosen], self.heights[chosen])

    @property
    def lengths(self) -> Indices:
        """Return the number of rows of each excursion."""
        return self.ends - self.firsts


def far_metrics(values: Floats, scale: Scale) -> Iterator[tuple[int, Floats]]:
    """Yield the metrics (n, m) that may have an excursion, and their signed distance (n,).

    It is 0 for metrics that never change.  Most metrics of a wide table have none.
    """
    spread = np.where(scale.spread > 0.0, scale.spread, np.inf)
    low, high = ((each - scale.center) / spread for each in extremes(values))
    for metric in np.flatnonzero((high > BEGIN) | (low < -BEGIN)).tolist():
        yield metric, (values[:, metric] - scale.center[metric]) / spread[metric]


def excursions(distance: Floats) -> Excursions:
    """Return the positive excursions of a metric (n,), given in spreads, NaN where missing.

    An excursion begins at four spreads and lasts until fewer than two, so that noise on it does
    not divide it.
    """
    far = np.flatnonzero(distance > BEGIN)
    if not len(far):
        return Excursions(far, far, np.zeros(0))
    firsts, ends = runs_of(distance > _STAY)
    # few runs reach that far, and their largest distance is that of such a sample
    runs, begins = np.unique(np.searchsorted(firsts, far, "right") - 1, return_index=True)
    heights = np.maximum.reduceat(distance[far], begins)
    return Excursions(firsts[runs], ends[runs], np.asarray(heights))
