"""The arithmetic that makes a second of a slice by compiled loops: that of ``deriving``."""

from __future__ import annotations

import math

import numpy as np

from reveal_analyzer.arrays import Bools, Floats, Indices, Ints, Ints8
from reveal_analyzer.kernels.derive import Recipe, Ticks
from reveal_analyzer.kernels.formulas import Step
from reveal_analyzer.numba_jit import kernel

# plain numbers, which the compiler takes for constants
_READ, _KNOWN, _NUMBER, _GIVEN = (
    int(step) for step in (Step.READ, Step.KNOWN, Step.NUMBER, Step.GIVEN)
)
_ADD, _SUBTRACT, _MULTIPLY, _DIVIDE = (
    int(step) for step in (Step.ADD, Step.SUBTRACT, Step.MULTIPLY, Step.DIVIDE)
)
_LARGER, _LARGER_KNOWN = int(Step.LARGER), int(Step.LARGER_KNOWN)


def derive(ticks: Ticks, lasts: Floats, before: Floats, recipe: Recipe) -> tuple[Floats, Floats]:
    """As ``deriving.derive``."""
    seconds, values = np.empty(recipe.scale.size), np.empty(recipe.width)
    _seconds(*ticks, lasts, recipe.scale, seconds)
    _columns(seconds, before, recipe.take, recipe.changes, values)
    first = recipe.take.size + recipe.changes.size
    _fold(seconds, *recipe.folds, values[first:])
    _run(*recipe.formulas, seconds, values[first + recipe.folds.starts.size :])
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
    seconds: Floats, before: Floats, take: Indices, changes: Indices, values: Floats
) -> None:
    for at in range(take.size):
        values[at] = seconds[take[at]]
    for at in range(changes.size):
        channel = changes[at]
        values[take.size + at] = seconds[channel] - before[channel] if before.size else 0.0


@kernel
def _fold(
    seconds: Floats, channels: Indices, starts: Indices, largest: Bools, values: Floats
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


@kernel
def _run(
    codes: Ints8, places: Indices, numbers: Floats, ends: Indices, seconds: Floats, values: Floats
) -> None:
    """As ``formulas.Program.run``."""
    stack = np.empty(max(codes.size, 1))
    at = 0
    for formula in range(ends.size):
        top = -1
        while at < ends[formula]:
            code = codes[at]
            if code <= _NUMBER:
                top += 1
                stack[top] = numbers[at] if code == _NUMBER else seconds[places[at]]
                if code == _KNOWN and math.isnan(stack[top]):
                    stack[top] = 0.0
            elif code == _GIVEN:
                top -= 2
                if not stack[top + 1] >= stack[top + 2]:
                    stack[top] = np.nan
            else:
                top -= 1
                stack[top] = _of_two(code, stack[top], stack[top + 1])
            at += 1
        values[formula] = stack[0]


@kernel
def _of_two(code: int, one: float, other: float) -> float:
    found = np.nan
    if code == _ADD:
        found = one + other
    elif code == _SUBTRACT:
        found = one - other
    elif code == _MULTIPLY:
        found = one * other
    elif code == _DIVIDE:
        if other != 0.0:
            found = one / other
    elif code == _LARGER_KNOWN:
        found = one if one >= other or math.isnan(other) else other
    elif not (math.isnan(one) or math.isnan(other)):
        found = max(one, other) if code == _LARGER else min(one, other)
    return found
