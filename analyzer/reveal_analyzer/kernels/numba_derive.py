"""Arithmetic that turns a slice into the values of one second, in compiled loops."""

from __future__ import annotations

import math

import numpy as np

from reveal_analyzer.arrays import Bools, Floats, Indices, Ints, Ints8
from reveal_analyzer.kernels.derive import Recipe, Ticks
from reveal_analyzer.kernels.formulas import Opcode
from reveal_analyzer.numba_jit import kernel

# plain integers, as numba compiles them into constants
_READ, _READ_OR_ZERO, _NUMBER, _GUARDED = (
    int(step) for step in (Opcode.READ, Opcode.READ_OR_ZERO, Opcode.NUMBER, Opcode.GUARDED)
)
_ADD, _SUBTRACT, _MULTIPLY, _DIVIDE = (
    int(step) for step in (Opcode.ADD, Opcode.SUBTRACT, Opcode.MULTIPLY, Opcode.DIVIDE)
)
_MAXIMUM, _MAXIMUM_KNOWN = int(Opcode.MAXIMUM), int(Opcode.MAXIMUM_KNOWN)


def derive_second(
    ticks: Ticks, durations: Floats, previous: Floats, recipe: Recipe
) -> tuple[Floats, Floats]:
    """Return the value of every channel and the columns; see ``derive.derive_second``."""
    seconds, values = np.empty(recipe.scale.size), np.empty(recipe.width)
    _seconds(*ticks, durations, recipe.scale, seconds)
    _copy_and_change(seconds, previous, recipe.copied, recipe.changes, values)
    first = recipe.copied.size + recipe.changes.size
    _fold(seconds, *recipe.folds, values[first:])
    _run_program(*recipe.formulas, seconds, values[first + recipe.folds.starts.size :])
    return seconds, values


@kernel
def _seconds(
    fast: Ints,
    fast_missing: Bools,
    slow: Ints,
    slow_missing: Bools,
    durations: Floats,
    scale: Floats,
    seconds: Floats,
) -> None:
    ticks, width = fast.shape
    sums = seconds[:width]
    sums[:] = 0.0
    missing = False
    for tick in range(ticks):
        row, gone = fast[tick], fast_missing[tick]
        for channel in range(width):
            missing |= gone[channel]
            sums[channel] += float(row[channel])
    if missing:
        _known_means(fast, fast_missing, sums)
    else:
        for channel in range(width):
            sums[channel] /= ticks
    for tick in range(slow.size):
        seconds[width + tick] = np.nan if slow_missing[tick] else float(slow[tick])
    for channel in range(seconds.size):
        seconds[channel] = seconds[channel] / durations[channel] * scale[channel]


@kernel
def _known_means(fast: Ints, missing: Bools, means: Floats) -> None:
    ticks, width = fast.shape
    for channel in range(width):
        total, known = 0.0, 0
        for tick in range(ticks):
            if not missing[tick, channel]:
                total += float(fast[tick, channel])
                known += 1
        means[channel] = total / known


@kernel
def _copy_and_change(
    seconds: Floats, previous: Floats, copied: Indices, changes: Indices, values: Floats
) -> None:
    for index in range(copied.size):
        values[index] = seconds[copied[index]]
    for index in range(changes.size):
        channel = changes[index]
        last = previous[channel] if previous.size else np.nan
        values[copied.size + index] = seconds[channel] - last


@kernel
def _fold(
    seconds: Floats, channels: Indices, starts: Indices, largest: Bools, values: Floats
) -> None:
    for fold in range(starts.size):
        end = starts[fold + 1] if fold + 1 < starts.size else channels.size
        most, total = seconds[channels[starts[fold]]], 0.0
        for index in range(starts[fold], end):
            value = seconds[channels[index]]
            if not math.isnan(value):
                total += value
                most = most if most >= value else value
        # the largest of missing values is missing, and so is their sum
        values[fold] = most if largest[fold] or math.isnan(most) else total


@kernel
def _run_program(
    codes: Ints8, channels: Indices, numbers: Floats, ends: Indices, seconds: Floats, values: Floats
) -> None:
    """Run a program; see ``formulas.Program.run``."""
    stack = np.empty(max(codes.size, 1))
    step = 0
    for formula in range(ends.size):
        top = -1
        while step < ends[formula]:
            code = codes[step]
            if code <= _NUMBER:
                top += 1
                stack[top] = numbers[step] if code == _NUMBER else seconds[channels[step]]
                if code == _READ_OR_ZERO and math.isnan(stack[top]):
                    stack[top] = 0.0
            elif code == _GUARDED:
                top -= 2
                if not stack[top + 1] >= stack[top + 2]:
                    stack[top] = np.nan
            else:
                top -= 1
                stack[top] = _apply(code, stack[top], stack[top + 1])
            step += 1
        values[formula] = stack[0]


@kernel
def _apply(code: int, left: float, right: float) -> float:
    result = np.nan
    if code == _ADD:
        result = left + right
    elif code == _SUBTRACT:
        result = left - right
    elif code == _MULTIPLY:
        result = left * right
    elif code == _DIVIDE:
        if right != 0.0:
            result = left / right
    elif code == _MAXIMUM_KNOWN:
        result = left if left >= right or math.isnan(right) else right
    elif not (math.isnan(left) or math.isnan(right)):
        result = max(left, right) if code == _MAXIMUM else min(left, right)
    return result
