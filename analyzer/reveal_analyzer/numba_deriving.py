"""The arithmetic that makes a second of a slice by compiled loops: that of ``deriving``."""

from __future__ import annotations

import math

import numpy as np

from reveal_analyzer.compiling import kernel
from reveal_analyzer.deriving import Bools, Floats, Ints, Places, Recipe, Ticks


def derive(ticks: Ticks, lasts: Floats, before: Floats, recipe: Recipe) -> tuple[Floats, Floats]:
    """As ``deriving.derive``."""
    seconds, values = np.empty(recipe.scale.size), np.empty(recipe.width)
    _seconds(*ticks, lasts, recipe.scale, seconds)
    _columns(seconds, before, recipe.take, recipe.changes, values)
    _fold(seconds, *recipe.folds, values[recipe.take.size + recipe.changes.size :])
    return seconds, values


@kernel
def _seconds(
    fast: Ints,
    fast_missing: Bools,
    slow: Ints,
    slow_missing: Bools,
    lasts: Floats,
    scale: Floats,
    seconds: Floats,
) -> None:
    ticks, width = fast.shape
    sums = seconds[:width]
    sums[:] = 0.0
    missing = False
    for at in range(ticks):
        row, gone = fast[at], fast_missing[at]
        for channel in range(width):
            missing |= gone[channel]
            sums[channel] += float(row[channel])
    if missing:
        _known_means(fast, fast_missing, sums)
    else:
        for channel in range(width):
            sums[channel] /= ticks
    for at in range(slow.size):
        seconds[width + at] = np.nan if slow_missing[at] else float(slow[at])
    for channel in range(seconds.size):
        seconds[channel] = seconds[channel] / lasts[channel] * scale[channel]


@kernel
def _known_means(fast: Ints, missing: Bools, means: Floats) -> None:
    ticks, width = fast.shape
    for channel in range(width):
        total, known = 0.0, 0
        for at in range(ticks):
            if not missing[at, channel]:
                total += float(fast[at, channel])
                known += 1
        means[channel] = total / known


@kernel
def _columns(
    seconds: Floats, before: Floats, take: Places, changes: Places, values: Floats
) -> None:
    for at in range(take.size):
        values[at] = seconds[take[at]]
    for at in range(changes.size):
        channel = changes[at]
        values[take.size + at] = seconds[channel] - before[channel] if before.size else 0.0


@kernel
def _fold(
    seconds: Floats, channels: Places, starts: Places, largest: Bools, values: Floats
) -> None:
    for fold in range(starts.size):
        end = starts[fold + 1] if fold + 1 < starts.size else channels.size
        most, total = seconds[channels[starts[fold]]], 0.0
        for at in range(starts[fold], end):
            value = seconds[channels[at]]
            if not math.isnan(value):
                total += value
                most = most if most >= value else value
        values[fold] = most if largest[fold] else total
