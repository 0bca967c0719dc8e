"""Dickey-Fuller test with one lag in compiled loops: equal to ``stationarity`` to 1e-12."""

from __future__ import annotations

import math

import numpy as np

from reveal_analyzer.arrays import Floats
from reveal_analyzer.numba_jit import inlined, kernel

LANES = 64
_RANK = 1e-12  # these constants are those of ``stationarity``
_TAU_MIN, _TAU_SPLIT, _TAU_MAX = -18.83, -1.61, 2.74
_ROOT_HALF = math.sqrt(0.5)

# sums of a block, one row of ``sums`` each
_DOT, _TARGET, _STEPS, _LEVELS_BEFORE, _LEVELS, _RESIDUAL, _SUMS = range(7)


@kernel
def stationarity(window: Floats, means: Floats, out: Floats) -> None:
    """Write statistic, p-value and lag of every channel to ``out`` (3, channels), NaN for none.

    ``window`` is (ticks, channels), ``means`` those of its channels.
    """
    ticks, channels = window.shape
    rows = ticks - 2
    if rows < 4:  # no degree of freedom for a residual
        out[:] = math.nan
        return
    target = np.zeros((rows, LANES))
    steps = np.zeros((rows, LANES))
    levels = np.zeros((rows, LANES))
    sums = np.zeros((_SUMS, LANES))
    for first in range(0, channels, LANES):
        width = min(LANES, channels - first)
        for row in range(rows):
            for lane in range(width):
                before = window[row, first + lane]
                value = window[row + 1, first + lane]
                after = window[row + 2, first + lane]
                target[row, lane] = after - value
                steps[row, lane] = value - before
                levels[row, lane] = value - means[first + lane]
        _fit(target, steps, levels, sums)
        _write(rows - 3, sums, out[:, first : first + width])


@inlined
def _fit(target: Floats, steps: Floats, levels: Floats, sums: Floats) -> None:
    """Fit target ~ level + previous step + constant, by one projection after the other."""
    _center(target, sums)
    _center(steps, sums)
    _center(levels, sums)
    _product(target, target, sums, _TARGET)
    _product(steps, steps, sums, _STEPS)
    _normalize(steps, sums, _STEPS)
    _take_out(target, steps, sums)
    _product(levels, levels, sums, _LEVELS_BEFORE)
    _take_out(levels, steps, sums)
    _product(levels, levels, sums, _LEVELS)
    _normalize(levels, sums, _LEVELS)
    _take_out(target, levels, sums)
    _product(target, target, sums, _RESIDUAL)


@inlined
def _write(freedom: int, sums: Floats, out: Floats) -> None:
    for lane in range(out.shape[1]):
        sound = sums[_STEPS, lane] > _RANK * sums[_STEPS, lane]
        sound &= sums[_LEVELS, lane] > _RANK * sums[_LEVELS_BEFORE, lane]
        sound &= sums[_RESIDUAL, lane] > _RANK * sums[_TARGET, lane]
        tau = sums[_DOT, lane] / math.sqrt(sums[_RESIDUAL, lane] / freedom)
        out[0, lane] = tau if sound else math.nan
        out[1, lane] = _p_value(tau) if sound else math.nan
        out[2, lane] = 1.0 if sound else math.nan


@inlined
def _center(column: Floats, sums: Floats) -> None:
    rows = len(column)
    for lane in range(LANES):
        sums[_DOT, lane] = 0.0
    for row in range(rows):
        for lane in range(LANES):
            sums[_DOT, lane] += column[row, lane]
    for lane in range(LANES):
        sums[_DOT, lane] /= rows
    for row in range(rows):
        for lane in range(LANES):
            column[row, lane] -= sums[_DOT, lane]


@inlined
def _product(left: Floats, right: Floats, sums: Floats, into: int) -> None:
    for lane in range(LANES):
        sums[into, lane] = 0.0
    for row in range(len(left)):
        for lane in range(LANES):
            sums[into, lane] += left[row, lane] * right[row, lane]


@inlined
def _normalize(column: Floats, sums: Floats, squared: int) -> None:
    for lane in range(LANES):
        sums[_DOT, lane] = math.sqrt(sums[squared, lane])
    for row in range(len(column)):
        for lane in range(LANES):
            column[row, lane] /= sums[_DOT, lane]


@inlined
def _take_out(column: Floats, axis: Floats, sums: Floats) -> None:
    """Subtract the part of the column that the axis explains; its size stays in ``_DOT``."""
    _product(axis, column, sums, _DOT)
    for row in range(len(column)):
        for lane in range(LANES):
            column[row, lane] -= axis[row, lane] * sums[_DOT, lane]


@inlined
def _p_value(tau: float) -> float:
    """Return MacKinnon's approximation; 0.5 erfc(-z / sqrt 2) is the normal distribution."""
    if tau > _TAU_MAX:
        return 1.0
    if tau < _TAU_MIN:
        return 0.0
    if tau <= _TAU_SPLIT:
        z = 2.1659 + tau * (1.4412 + tau * 0.038269)
    else:
        z = 1.7339 + tau * (0.93202 + tau * (-0.12745 + tau * -0.010368))
    return 0.5 * math.erfc(-z * _ROOT_HALF)
