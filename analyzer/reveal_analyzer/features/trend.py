"""Least-squares line through the window, as ``scipy.stats.linregress`` gives it."""

from __future__ import annotations

import numpy as np

from reveal_analyzer.arrays import Floats
from reveal_analyzer.features.prepared import Prepared


def trend(window: Prepared) -> tuple[Floats, ...]:
    """Return slope, standard error, intercept, r and p-value of a line through the ticks 0, 1, ...

    A constant window has slope 0 and no r, error or p-value (NaN).
    """
    n = window.ticks
    times_variance = _times_variance(n)
    covariance = _covariance(window)
    slope = np.where(window.constant, 0.0, covariance / times_variance)
    r = np.clip(covariance / np.sqrt(times_variance * window.variance), -1.0, 1.0)
    r[window.constant] = np.nan
    error = np.sqrt((1.0 - r * r) * window.variance / times_variance / (n - 2))
    return slope, error, window.mean - slope * (n - 1) / 2.0, r, slope_p_value(r, n)


def slope_alone(window: Prepared) -> Floats:
    """Return only the slope of that line."""
    slope = _covariance(window) / _times_variance(window.ticks)
    return np.where(window.constant, 0.0, slope)


def _covariance(window: Prepared) -> Floats:
    times = np.arange(window.ticks) - (window.ticks - 1) / 2.0
    return np.asarray((times @ window.centered) / window.ticks)


def _times_variance(ticks: int) -> float:
    return (ticks * ticks - 1) / 12.0


def slope_p_value(r: Floats, ticks: int) -> Floats:
    """Return the two-sided p-value of a correlation by Student's t with ticks - 2.

    The distribution has a finite form (Abramowitz and Stegun 26.7.3 and 26.7.4) in the angle whose
    sine is r, so no incomplete beta function is needed.  It is exact to 1e-16 absolute, so p-values
    below about 1e-7 lose relative digits.
    """
    freedom = ticks - 2
    sine, cosine_squared = np.abs(r), 1.0 - r * r
    if freedom % 2 == 0:
        return np.maximum(0.0, 1.0 - sine * _series(cosine_squared, freedom // 2, odd=False))
    cosine = np.sqrt(cosine_squared)
    inner = sine * cosine * _series(cosine_squared, (freedom - 1) // 2, odd=True)
    angle = np.arctan2(sine, cosine)
    return np.maximum(0.0, 1.0 - (angle + inner) * (2.0 / np.pi))


def _series(cosine_squared: Floats, terms: int, *, odd: bool) -> Floats:
    """Return 1 + c/2 + 1*3 c^2/(2*4) + ..., or 1 + 2c/3 + 2*4 c^2/(3*5) + ... for odd freedom."""
    total = np.zeros_like(cosine_squared)
    for k in range(terms - 1, 0, -1):
        ratio = 2 * k / (2 * k + 1) if odd else (2 * k - 1) / (2 * k)
        total = (1.0 + total) * (cosine_squared * ratio)
    return total + 1.0 if terms else total
