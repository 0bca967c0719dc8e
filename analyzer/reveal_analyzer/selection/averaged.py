"""The correlation matrix of a workload: the mean over its recordings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.selection.moments import Correlation
from reveal_analyzer.selection.resampled import Floats, Item


@dataclass(frozen=True, eq=False)
class Workload:
    """What recordings of one workload say together.

    ``r`` (items, items) is the mean over the runs that know it, 0 where none does; its diagonal
    is 1 where an item moved.  ``scatter`` (items,) is the variance of an item's correlations
    from run to run, the mean over the others; 0 where there is one run only.
    """

    name: str
    items: tuple[Item, ...]
    r: Floats
    scatter: Floats
    moved: NDArray[np.bool_]
    runs: int
    rows: int


def averaged(name: str, runs: Sequence[Correlation]) -> Workload:
    """The mean of the runs' matrices; an item may be missing in some of them."""
    items = {item.label: item for run in runs for item in run.items}
    at = {label: place for place, label in enumerate(items)}
    count = np.zeros((len(items), len(items)))
    total, squares = np.zeros_like(count), np.zeros_like(count)
    moved = np.zeros(len(items), bool)
    for run in runs:
        places = np.array([at[item.label] for item in run.items], np.intp)
        known = ~np.isnan(run.r)
        r = np.where(known, run.r, 0.0)
        grid = np.ix_(places, places)
        count[grid] += known
        total[grid] += r
        squares[grid] += r * r
        moved[places] |= run.moved
    mean = total / np.maximum(count, 1)
    np.fill_diagonal(mean, moved)
    return Workload(
        name=name,
        items=tuple(items.values()),
        r=mean,
        scatter=_scatter(count, mean, squares),
        moved=moved,
        runs=len(runs),
        rows=sum(run.rows for run in runs),
    )


def _scatter(count: Floats, mean: Floats, squares: Floats) -> Floats:
    several = count > 1
    np.fill_diagonal(several, False)
    variance = np.where(several, squares / np.maximum(count, 1) - mean * mean, 0.0)
    # rounded: what differs by the order of a sum must not decide who stays
    return np.asarray(np.round(variance.sum(axis=1) / np.maximum(several.sum(axis=1), 1), 9))
