"""Arithmetic that turns a slice into the values of one second: the numpy reference.

``numba_derive`` computes the same bits in one pass: both add numbers in the same order.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np

from reveal_analyzer.arrays import Bools, Floats, Indices, Ints
from reveal_analyzer.kernels.formulas import Program


class Ticks(NamedTuple):
    """Raw values of a slice: (ticks, fast channels), (slow channels), and what is missing."""

    fast: Ints
    fast_missing: Bools
    slow: Ints
    slow_missing: Bools


class Folds(NamedTuple):
    """Columns that are made of several channels: their largest value or their sum.

    ``channels`` holds the channels of all folds in one row, ``starts`` where each fold begins.
    """

    channels: Indices
    starts: Indices
    largest: Bools


class Recipe(NamedTuple):
    """How the channels of a table (fast, then slow) become columns.

    ``copied`` are channels that are a column as they are, ``changes`` channels whose change per
    second is a column.  ``folds`` and ``formulas`` follow.  ``width`` counts all columns; the last
    ones are left to the caller.
    """

    scale: Floats
    copied: Indices
    changes: Indices
    folds: Folds
    formulas: Program
    width: int


def derive_second(
    ticks: Ticks, durations: Floats, previous: Floats, recipe: Recipe
) -> tuple[Floats, Floats]:
    """Return the value of every channel in base units, and the columns.

    ``durations`` are the seconds that a value covers.  ``previous`` are the channels of the second
    before; if it is empty, every change is missing.  The columns beyond the formulas are not set.
    """
    seconds = _means(ticks) / durations * recipe.scale
    values = np.empty(recipe.width)
    copied_end = recipe.copied.size
    changes_end = copied_end + recipe.changes.size
    values[:copied_end] = seconds[recipe.copied]
    values[copied_end:changes_end] = np.nan
    if previous.size:
        values[copied_end:changes_end] = seconds[recipe.changes] - previous[recipe.changes]
    folds_end = changes_end + recipe.folds.starts.size
    values[changes_end:folds_end] = fold(seconds, recipe.folds)
    values[folds_end : folds_end + recipe.formulas.ends.size] = recipe.formulas.run(seconds)
    return seconds, values


def fold(seconds: Floats, folds: Folds) -> Floats:
    """Return one value per fold; missing values are ignored, unless all are missing."""
    if not folds.starts.size:
        return np.zeros(0)
    values = seconds[folds.channels]
    sizes = np.diff(folds.starts, append=folds.channels.size)
    owners = np.repeat(np.arange(sizes.size), sizes)
    missing = np.isnan(values)
    sums = np.bincount(owners, np.where(missing, 0.0, values), sizes.size)
    sums[np.logical_and.reduceat(missing, folds.starts)] = np.nan
    return np.where(folds.largest, np.fmax.reduceat(values, folds.starts), sums)


def _means(ticks: Ticks) -> Floats:
    """Return the mean of each fast channel over the ticks, and the slow channels as they are."""
    fast = ticks.fast.astype(np.float64)
    if ticks.fast_missing.any():
        fast[ticks.fast_missing] = np.nan
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # mean of a channel without any value
            means = np.nanmean(fast, axis=0)
    else:
        means = np.add.reduce(fast, axis=0) / len(fast)
    slow = ticks.slow.astype(np.float64)
    if ticks.slow_missing.any():
        slow[ticks.slow_missing] = np.nan
    return np.concatenate([means, slow])
