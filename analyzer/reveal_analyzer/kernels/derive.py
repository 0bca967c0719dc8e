"""The arithmetic that makes a second of a slice, on plain arrays: the reference, in numpy.

``numba_deriving`` does the same in one pass, to the last bit: sums are taken one number after
the other in both.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np

from reveal_analyzer.arrays import Bools, Floats, Indices, Ints
from reveal_analyzer.kernels.formulas import Program


class Ticks(NamedTuple):
    """What a slice brings: (ticks, fast channels), (slow channels), and what is missing of it."""

    fast: Ints
    fast_missing: Bools
    slow: Ints
    slow_missing: Bools


class Folds(NamedTuple):
    """Columns made of several channels each: ``largest`` of them the largest, else their sum.

    ``channels`` of all of them in one row, ``starts`` where each column's begin.
    """

    channels: Indices
    starts: Indices
    largest: Bools


class Recipe(NamedTuple):
    """How the channels of a table (fast, then slow) become columns.

    ``take`` are columns that are a channel as it is, ``changes`` channels whose change is one.
    Then come ``folds`` and ``formulas``.  ``width`` counts all columns, those made otherwise last.
    """

    scale: Floats
    take: Indices
    changes: Indices
    folds: Folds
    formulas: Program
    width: int


def derive(ticks: Ticks, lasts: Floats, before: Floats, recipe: Recipe) -> tuple[Floats, Floats]:
    """A second of every channel in base units, and its columns, of which the last are left open.

    ``lasts`` are the seconds a value stands for; ``before`` the second before, empty where
    there is none: then nothing changed.
    """
    seconds = _means(ticks) / lasts * recipe.scale
    values = np.empty(recipe.width)
    taken = recipe.take.size
    changed = taken + recipe.changes.size
    values[:taken] = seconds[recipe.take]
    values[taken:changed] = 0.0
    if before.size:
        values[taken:changed] = seconds[recipe.changes] - before[recipe.changes]
    folded = changed + recipe.folds.starts.size
    values[changed:folded] = fold(seconds, recipe.folds)
    values[folded : folded + recipe.formulas.ends.size] = recipe.formulas.run(seconds)
    return seconds, values


def fold(seconds: Floats, folds: Folds) -> Floats:
    """One value a column; what is missing is neither the largest nor a part of the sum."""
    if not folds.starts.size:
        return np.zeros(0)
    values = seconds[folds.channels]
    sizes = np.diff(folds.starts, append=folds.channels.size)
    owners = np.repeat(np.arange(sizes.size), sizes)
    sums = np.bincount(owners, np.where(np.isnan(values), 0.0, values), sizes.size)
    return np.where(folds.largest, np.fmax.reduceat(values, folds.starts), sums)


def _means(ticks: Ticks) -> Floats:
    """All channels as they came: the mean of a fast one's ticks, a slow one's value."""
    fast = ticks.fast.astype(np.float64)
    if ticks.fast_missing.any():
        fast[ticks.fast_missing] = np.nan
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # a column missing throughout
            means = np.nanmean(fast, axis=0)
    else:
        means = np.add.reduce(fast, axis=0) / len(fast)
    slow = ticks.slow.astype(np.float64)
    if ticks.slow_missing.any():
        slow[ticks.slow_missing] = np.nan
    return np.concatenate([means, slow])
