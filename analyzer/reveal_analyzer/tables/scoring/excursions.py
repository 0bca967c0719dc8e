"""Excursions of a metric: stretches of samples away from its normal level, to one side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reveal_analyzer.arrays import Bools, Floats, Indices
from reveal_analyzer.tables.scoring.scales import Scale
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


def in_spreads(values: Floats, scale: Scale) -> Floats:
    """Return the signed distance (n, m) from the center; 0 for metrics that never change."""
    spread = np.where(scale.spread > 0.0, scale.spread, np.inf)
    return np.asarray((values - scale.center) / spread)


def excursions(distance: Floats) -> Excursions:
    """Return the positive excursions of a metric (n,), given in spreads, NaN where missing.

    An excursion begins at four spreads and lasts until fewer than two, so that noise on it does
    not divide it.
    """
    firsts, ends = runs_of(distance > _STAY)
    if not len(firsts):
        return Excursions(firsts, ends, np.zeros(0))
    heights = np.fmax.reduceat(np.append(distance, np.nan), _interleaved(firsts, ends))[::2]
    found = Excursions(firsts, ends, np.asarray(heights))
    return found.selected(found.heights > BEGIN)


def _interleaved(firsts: Indices, ends: Indices) -> Indices:
    return np.stack([firsts, ends], axis=1).ravel()
