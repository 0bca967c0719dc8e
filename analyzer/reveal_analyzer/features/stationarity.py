"""Augmented Dickey-Fuller test with a constant and a fixed number of lags.

Equal to ``statsmodels.tsa.stattools.adfuller(x, maxlag=lag, regression="c", autolag=None)``.  If
the regression of a window is rank-deficient (one spike, two values) or leaves no residual, there is
no statistic: NaN here, rounding noise in statsmodels.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr

from reveal_analyzer.arrays import Bools, Floats
from reveal_analyzer.features.prepared import Prepared

_RANK = 1e-12  # a column or residual below this share of its energy is rounding

# MacKinnon (1994), "Approximate asymptotic distribution functions for unit-root and
# cointegration tests", one variable with a constant
_TAU_MIN, _TAU_SPLIT, _TAU_MAX = -18.83, -1.61, 2.74
_SMALL_P = (2.1659, 1.4412, 0.038269)
_LARGE_P = (1.7339, 0.93202, -0.12745, -0.010368)


def stationarity(window: Prepared, lag: int) -> tuple[Floats, ...]:
    """Return test statistic, p-value and the lag used; NaN if there is no statistic."""
    statistic = _statistic(window, lag)
    used = np.where(np.isnan(statistic), np.nan, float(lag))
    return statistic, p_value(statistic), used


def p_value(statistic: Floats) -> Floats:
    """Return MacKinnon's approximate p-value of the statistic."""
    small = np.polynomial.polynomial.polyval(statistic, _SMALL_P)
    large = np.polynomial.polynomial.polyval(statistic, _LARGE_P)
    p = ndtr(np.where(statistic <= _TAU_SPLIT, small, large))
    return np.where(statistic > _TAU_MAX, 1.0, np.where(statistic < _TAU_MIN, 0.0, p))


def _statistic(window: Prepared, lag: int) -> Floats:
    """Return the t value of the level in: step ~ level + ``lag`` earlier steps + constant.

    Levels are centered on the window's mean first, as a level of 1e9 would cost seven digits.
    """
    steps, count = window.steps, window.ticks - 1
    rows = count - lag
    freedom = rows - (lag + 2)
    if freedom < 1:
        return np.full(window.mean.shape, np.nan)
    target = _center(steps[lag:])
    energy = _dot(target, target)
    axes: list[Floats] = []
    full_rank = np.ones(window.mean.shape, np.bool_)
    for back in range(1, lag + 1):
        axis, sound = _axis(_center(steps[lag - back : count - back]), axes)
        target = target - axis * _dot(axis, target)
        axes.append(axis)
        full_rank &= sound
    axis, sound = _axis(_center(window.centered[lag:-1]), axes)
    along = _dot(axis, target)
    target = target - axis * along
    residual = _dot(target, target)
    full_rank &= sound & (residual > _RANK * energy)
    return np.where(full_rank, along / np.sqrt(residual / freedom), np.nan)


def _axis(column: Floats, axes: list[Floats]) -> tuple[Floats, Bools]:
    """Return the unit vector of the part of ``column`` that no earlier axis explains, if any.

    The second result marks the channels that have such a part.
    """
    before = _dot(column, column)
    for axis in axes:
        column = column - axis * _dot(axis, column)
    left = _dot(column, column)
    return column / np.sqrt(left), left > _RANK * before


def _center(column: Floats) -> Floats:
    return np.asarray(column - column.mean(0))


def _dot(left: Floats, right: Floats) -> Floats:
    return np.asarray((left * right).sum(0))
