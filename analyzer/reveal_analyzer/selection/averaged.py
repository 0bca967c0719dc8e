"""The correlation matrix of a workload: the mean over its recordings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.arrays import Floats
from reveal_analyzer.selection.moments import Correlation
from reveal_analyzer.selection.resampled import Item


@dataclass(frozen=True, eq=False)
class Workload:
    """What recordings of one workload say together.

    ``r`` (items, items) is the mean over the runs that know it, 0 where none does; its diagonal
    is 1 where an item moved.
    """

    name: str
    items: tuple[Item, ...]
    r: Floats
    moved: NDArray[np.bool_]
    runs: int
    rows: int

    @cached_property
    def spread(self) -> Floats:
        """The variance of each item's correlations with the others that moved, (items,).

        Large where it tells much of some and little of others.
        """
        others = self.moved & ~np.eye(len(self.items), dtype=bool)
        count = np.maximum(others.sum(axis=1), 1)
        mean = np.where(others, self.r, 0.0).sum(axis=1) / count
        squares = np.where(others, self.r * self.r, 0.0).sum(axis=1) / count
        return np.asarray(squares - mean * mean)


def averaged(name: str, runs: Sequence[Correlation]) -> Workload:
    """The mean of the runs' matrices; an item may be missing in some of them."""
    items = {item.label: item for run in runs for item in run.items}
    at = {label: place for place, label in enumerate(items)}
    count = np.zeros((len(items), len(items)))
    total = np.zeros_like(count)
    moved = np.zeros(len(items), bool)
    for run in runs:
        places = np.array([at[item.label] for item in run.items], np.intp)
        known = ~np.isnan(run.r)
        grid = np.ix_(places, places)
        count[grid] += known
        total[grid] += np.where(known, run.r, 0.0)
        moved[places] |= run.moved
    mean = total / np.maximum(count, 1)
    np.fill_diagonal(mean, moved)
    return Workload(
        name=name,
        items=tuple(items.values()),
        r=mean,
        moved=moved,
        runs=len(runs),
        rows=sum(run.rows for run in runs),
    )
