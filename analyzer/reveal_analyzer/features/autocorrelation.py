"""Autocorrelation with the mean and variance of the whole window (tsfresh's definition)."""

from __future__ import annotations

import numpy as np

from reveal_analyzer.arrays import Floats
from reveal_analyzer.features.prepared import Prepared

_LAGS = 3
_MAX_LAG = 10
# absolute, as in tsfresh: a ratio that moves by 1e-5 never has an autocorrelation
_NO_VARIANCE = 1e-8
_NO_VARIANCE_AGGREGATED = 1e-10


def autocorrelation(window: Prepared) -> tuple[Floats, ...]:
    """Return lags 1 to 3, then mean and variance of lags 1 to 10 (to ticks - 1 in a short window).

    Single lags are NaN, the aggregates 0, if the variance is nearly 0.
    """
    lags = min(_MAX_LAG, window.ticks - 1)
    by_lag = np.stack([_lagged(window, lag) for lag in range(1, lags + 1)])
    single = np.where(window.variance <= _NO_VARIANCE, np.nan, by_lag[:_LAGS])
    flat = window.variance < _NO_VARIANCE_AGGREGATED
    mean = by_lag.mean(0)
    off = by_lag - mean
    spread = (off * off).mean(0)
    return (*single, np.where(flat, 0.0, mean), np.where(flat, 0.0, spread))


def first_lag(window: Prepared) -> Floats:
    """Return only lag 1."""
    return np.where(window.variance <= _NO_VARIANCE, np.nan, _lagged(window, 1))


def _lagged(window: Prepared, lag: int) -> Floats:
    products = (window.centered[:-lag] * window.centered[lag:]).sum(0)
    return np.asarray(products / ((window.ticks - lag) * window.variance))
