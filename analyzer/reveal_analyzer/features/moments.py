"""Moments and order statistics, as defined by tsfresh 0.21 (skewness and kurtosis as in pandas)."""

from __future__ import annotations

import numpy as np

from reveal_analyzer.arrays import Floats
from reveal_analyzer.features.prepared import Prepared


def moments(window: Prepared) -> tuple[Floats, ...]:
    """Return sum, mean, variance, deviation, skewness, kurtosis, min, max, median, energy."""
    energy = (window.values * window.values).sum(0)
    return (window.total, *shape_moments(window), energy)


def shape_moments(window: Prepared) -> tuple[Floats, ...]:
    """Return mean, variance, deviation, skewness, kurtosis, min, max and median."""
    ordered = window.values.T.copy()  # ticks are neighbors in memory: sorted in half the time
    ordered.sort(axis=1)
    ticks = window.ticks
    return (
        window.mean,
        window.variance,
        np.sqrt(window.variance),
        _skewness(window),
        _kurtosis(window),
        ordered[:, 0],
        ordered[:, -1],
        0.5 * (ordered[:, (ticks - 1) // 2] + ordered[:, ticks // 2]),
    )


def _skewness(window: Prepared) -> Floats:
    """Return G1, corrected for bias as in pandas; NaN for a constant window."""
    n = window.ticks
    third = (window.squares * window.centered).sum(0)
    factor = n * np.sqrt(n - 1.0) / (n - 2.0)
    skewness = factor * third / (window.energy * np.sqrt(window.energy))
    return np.where(window.constant, np.nan, skewness)


def _kurtosis(window: Prepared) -> Floats:
    """Return G2 (excess), corrected for bias as in pandas; NaN for a constant window."""
    n = float(window.ticks)
    fourth = (window.squares * window.squares).sum(0)
    factor = n * (n + 1.0) * (n - 1.0) / ((n - 2.0) * (n - 3.0))
    normal = 3.0 * (n - 1.0) * (n - 1.0) / ((n - 2.0) * (n - 3.0))
    kurtosis = factor * fourth / (window.energy * window.energy) - normal
    return np.where(window.constant, np.nan, kurtosis)
