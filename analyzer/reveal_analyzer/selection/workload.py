"""The correlation matrix of a workload: the mean over its recordings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.arrays import Floats
from reveal_analyzer.selection.correlation import Correlation
from reveal_analyzer.selection.resampler import MetricInstance


@dataclass(frozen=True, eq=False)
class WorkloadCorrelation:
    """The combined recordings of one workload.

    ``r`` (items, items) is the mean over the runs that know it, 0 if none does; its diagonal is 1
    for items that moved.
    """

    name: str
    items: tuple[MetricInstance, ...]
    r: Floats
    moved: NDArray[np.bool_]
    runs: int
    rows: int

    @cached_property
    def spread(self) -> Floats:
        """Return the variance of each item's correlations with the others that moved, (items,).

        It is large if the item describes some others well and most others little.
        """
        others = self.moved & ~np.eye(len(self.items), dtype=bool)
        count = np.maximum(others.sum(axis=1), 1)
        mean = np.where(others, self.r, 0.0).sum(axis=1) / count
        squares = np.where(others, self.r * self.r, 0.0).sum(axis=1) / count
        return np.asarray(squares - mean * mean)


def average(name: str, runs: Sequence[Correlation]) -> WorkloadCorrelation:
    """Return the mean of the runs' matrices; an item may be missing in some of them."""
    items = {item.label: item for run in runs for item in run.items}
    index_of = {label: index for index, label in enumerate(items)}
    count = np.zeros((len(items), len(items)))
    total = np.zeros_like(count)
    moved = np.zeros(len(items), bool)
    for run in runs:
        indices = np.array([index_of[item.label] for item in run.items], np.intp)
        known = ~np.isnan(run.r)
        grid = np.ix_(indices, indices)
        count[grid] += known
        total[grid] += np.where(known, run.r, 0.0)
        moved[indices] |= run.moved
    mean = total / np.maximum(count, 1)
    np.fill_diagonal(mean, moved)
    return WorkloadCorrelation(
        name=name,
        items=tuple(items.values()),
        r=mean,
        moved=moved,
        runs=len(runs),
        rows=sum(run.rows for run in runs),
    )
