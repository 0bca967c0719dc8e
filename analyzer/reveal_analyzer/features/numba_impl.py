"""All features of a window in compiled loops: equal to ``numpy_impl`` to 1e-12.

The window is divided into blocks of neighboring channels, the lanes.  Every inner loop runs over
the lanes of a block and becomes vector instructions; no reduction runs along a row.  A block's
window, deviations and sorted copy stay in the first-level cache.  Sums run in numpy's order, so a
sample is above the mean here exactly if it is there.
"""

from __future__ import annotations

import math

import numpy as np

from reveal_analyzer.arrays import Floats, Ints
from reveal_analyzer.features import numpy_impl
from reveal_analyzer.features.middle_network import middle_network
from reveal_analyzer.features.numba_stationarity import stationarity
from reveal_analyzer.features.table import FEATURES, FeatureFamily, first_row
from reveal_analyzer.numba_jit import inlined, kernel

LANES = 64  # fewer are unrolled, which is slower; with more, the block exceeds the cache
_ROWS = len(FEATURES)
_MOMENTS, _CHANGES, _COUNTS = map(
    first_row, (FeatureFamily.MOMENTS, FeatureFamily.CHANGES, FeatureFamily.COUNTS)
)
_TREND, _LAGGED = map(first_row, (FeatureFamily.TREND, FeatureFamily.AUTOCORRELATION))
_STATIONARY, _MEAN_ROW = first_row(FeatureFamily.STATIONARITY), 1
# numpy's own order of summation within these lengths (``prepared.pairwise_sum``)
_FIRST_PAIRWISE, _LAST_PAIRWISE = 8, 128

# sums of a block, one row of ``sums`` each
_TOTAL, _MEAN, _LOW, _HIGH, _ENERGY, _THIRD, _FOURTH, _RAW = range(8)
_SLANT, _ABOVE, _RUN, _LONGEST, _ABSOLUTE, _SQUARED, _CROSSED = range(8, 15)
_SCRATCH, _SUMS = 15, 17  # two scratch rows

_LAGS, _SINGLE_LAGS = 10, 3  # as in ``autocorrelation``
_NO_VARIANCE, _NO_VARIANCE_AGGREGATED = 1e-8, 1e-10


def features(window: Floats, adf_lag: int = 1) -> Floats:
    """Return every feature of every channel, as ``numpy_impl.features``.

    A Dickey-Fuller test with another lag than one is not compiled; numpy computes all features
    then.
    """
    if adf_lag != 1:
        return numpy_impl.features(window, adf_lag)
    numpy_impl.check_window(window)
    out = np.empty((_ROWS, window.shape[1]))
    _features(window, middle_network(len(window)), out)
    stationarity(window, out[_MEAN_ROW], out[_STATIONARY:])
    return out


@kernel
def _features(window: Floats, pairs: Ints, out: Floats) -> None:
    ticks, channels = window.shape
    values = np.zeros((ticks, LANES))
    centered = np.zeros((ticks, LANES))
    scratch = np.zeros((ticks, LANES))
    lagged = np.zeros((_LAGS, LANES))
    sums = np.zeros((_SUMS, LANES))
    for first in range(0, channels, LANES):
        width = min(LANES, channels - first)
        for tick in range(ticks):
            for lane in range(width):
                value = window[tick, first + lane]
                values[tick, lane] = value
                scratch[tick, lane] = value
        mine = out[:, first : first + width]
        _total(values, lagged, sums)
        _deviations(values, centered, sums)
        _steps(values, sums)
        _middle(scratch, pairs)
        _write_moments(scratch, sums, mine[_MOMENTS:])
        _write_changes(values, sums, mine[_CHANGES:])
        _write_counts(values, sums, mine[_COUNTS:])
        _write_trend(ticks, sums, mine[_TREND:])
        _write_lagged(centered, lagged, sums, mine[_LAGGED:])
        for lane in range(width):
            if not math.isfinite(sums[_TOTAL, lane]):
                for row in range(_ROWS):
                    mine[row, lane] = math.nan


@inlined
def _total(values: Floats, parts: Floats, sums: Floats) -> None:
    """Sum over ticks as numpy sums one contiguous series (``prepared.pairwise_sum``)."""
    ticks = len(values)
    begun = ticks - ticks % 8 if _FIRST_PAIRWISE <= ticks <= _LAST_PAIRWISE else 1
    if begun == 1:
        for lane in range(LANES):
            sums[_TOTAL, lane] = values[0, lane]
    else:
        for tick in range(8):
            for lane in range(LANES):
                parts[tick, lane] = values[tick, lane]
        for tick in range(8, begun):
            for lane in range(LANES):
                parts[tick % 8, lane] += values[tick, lane]
        for lane in range(LANES):
            early = (parts[0, lane] + parts[1, lane]) + (parts[2, lane] + parts[3, lane])
            late = (parts[4, lane] + parts[5, lane]) + (parts[6, lane] + parts[7, lane])
            sums[_TOTAL, lane] = early + late
    for tick in range(begun, ticks):
        for lane in range(LANES):
            sums[_TOTAL, lane] += values[tick, lane]


@inlined
def _deviations(values: Floats, centered: Floats, sums: Floats) -> None:
    """Compute deviations from the mean and their powers, extremes, and runs above the mean."""
    ticks = len(values)
    for row in range(_ENERGY, _SCRATCH):
        for lane in range(LANES):
            sums[row, lane] = 0.0
    for lane in range(LANES):
        sums[_MEAN, lane] = sums[_TOTAL, lane] / ticks
        sums[_LOW, lane] = values[0, lane]
        sums[_HIGH, lane] = values[0, lane]
    for tick in range(ticks):
        time = tick - (ticks - 1) / 2.0
        for lane in range(LANES):
            value = values[tick, lane]
            off = value - sums[_MEAN, lane]
            square = off * off
            centered[tick, lane] = off
            sums[_ENERGY, lane] += square
            sums[_THIRD, lane] += square * off
            sums[_FOURTH, lane] += square * square
            sums[_RAW, lane] += value * value
            sums[_SLANT, lane] += time * off
        for lane in range(LANES):
            value = values[tick, lane]
            low, high = sums[_LOW, lane], sums[_HIGH, lane]
            sums[_LOW, lane] = value if value < low else low
            sums[_HIGH, lane] = value if value > high else high
            above = 1.0 if value > sums[_MEAN, lane] else 0.0
            run = (sums[_RUN, lane] + 1.0) * above
            longest = sums[_LONGEST, lane]
            sums[_ABOVE, lane] += above
            sums[_RUN, lane] = run
            sums[_LONGEST, lane] = run if run > longest else longest


@inlined
def _steps(values: Floats, sums: Floats) -> None:
    """Compute the sizes of steps from tick to tick, and the crossings of zero."""
    for tick in range(1, len(values)):
        for lane in range(LANES):
            value, before = values[tick, lane], values[tick - 1, lane]
            step = value - before
            sums[_ABSOLUTE, lane] += abs(step)
            sums[_SQUARED, lane] += step * step
            sums[_CROSSED, lane] += 1.0 if (value > 0.0) != (before > 0.0) else 0.0


@inlined
def _middle(ordered: Floats, pairs: Ints) -> None:
    """Bring the middle two values of every lane to their index."""
    for pair in range(len(pairs)):
        low, high = pairs[pair, 0], pairs[pair, 1]
        for lane in range(LANES):
            left, right = ordered[low, lane], ordered[high, lane]
            ordered[low, lane] = left if left < right else right
            ordered[high, lane] = right if left < right else left


@inlined
def _write_moments(ordered: Floats, sums: Floats, out: Floats) -> None:
    ticks = len(ordered)
    n = float(ticks)
    skew = n * math.sqrt(n - 1.0) / (n - 2.0)
    peaked = n * (n + 1.0) * (n - 1.0) / ((n - 2.0) * (n - 3.0))
    normal = 3.0 * (n - 1.0) * (n - 1.0) / ((n - 2.0) * (n - 3.0))
    for lane in range(out.shape[1]):
        energy = sums[_ENERGY, lane]
        low, high = sums[_LOW, lane], sums[_HIGH, lane]
        flat = low == high
        out[0, lane] = sums[_TOTAL, lane]
        out[1, lane] = sums[_MEAN, lane]
        out[2, lane] = energy / n
        out[3, lane] = math.sqrt(energy / n)
        skewness = skew * sums[_THIRD, lane] / (energy * math.sqrt(energy))
        kurtosis = peaked * sums[_FOURTH, lane] / (energy * energy) - normal
        out[4, lane] = math.nan if flat else skewness
        out[5, lane] = math.nan if flat else kurtosis
        out[6, lane] = low
        out[7, lane] = high
        out[8, lane] = 0.5 * (ordered[(ticks - 1) // 2, lane] + ordered[ticks // 2, lane])
        out[9, lane] = sums[_RAW, lane]


@inlined
def _write_changes(values: Floats, sums: Floats, out: Floats) -> None:
    ticks = len(values)
    for lane in range(out.shape[1]):
        absolute, squared = sums[_ABSOLUTE, lane], sums[_SQUARED, lane]
        variance = sums[_ENERGY, lane] / ticks
        out[0, lane] = absolute / (ticks - 1)
        out[1, lane] = absolute
        out[2, lane] = (values[ticks - 1, lane] - values[0, lane]) / (ticks - 1)
        out[3, lane] = 0.0 if variance == 0.0 else math.sqrt(squared / variance)
        out[4, lane] = math.sqrt(squared)


@inlined
def _write_counts(values: Floats, sums: Floats, out: Floats) -> None:
    ticks = len(values)
    near, far = _SCRATCH, _SCRATCH + 1
    for lane in range(LANES):
        sums[near, lane] = 0.0
        sums[far, lane] = 0.0
    for tick in range(1, ticks - 1):
        for lane in range(LANES):
            value = values[tick, lane]
            peak = (value > values[tick - 1, lane]) & (value > values[tick + 1, lane])
            sums[near, lane] += 1.0 if peak else 0.0
    for tick in range(3, ticks - 3):
        for lane in range(LANES):
            value = values[tick, lane]
            left = (value > values[tick - 1, lane]) & (value > values[tick - 2, lane])
            right = (value > values[tick + 1, lane]) & (value > values[tick + 2, lane])
            edge = (value > values[tick - 3, lane]) & (value > values[tick + 3, lane])
            sums[far, lane] += 1.0 if left & right & edge else 0.0
    for lane in range(out.shape[1]):
        out[0, lane] = sums[_ABOVE, lane]
        out[1, lane] = sums[_LONGEST, lane]
        out[2, lane] = sums[_CROSSED, lane]
        out[3, lane] = sums[near, lane]
        out[4, lane] = sums[far, lane]


@inlined
def _write_trend(ticks: int, sums: Floats, out: Floats) -> None:
    times_variance = (ticks * ticks - 1) / 12.0
    for lane in range(LANES):
        covariance = sums[_SLANT, lane] / ticks
        variance = sums[_ENERGY, lane] / ticks
        r = covariance / math.sqrt(times_variance * variance)
        r = 1.0 if r > 1.0 else r
        r = -1.0 if r < -1.0 else r
        sums[_SCRATCH, lane] = math.nan if sums[_LOW, lane] == sums[_HIGH, lane] else r
    _series(ticks - 2, sums)
    for lane in range(out.shape[1]):
        r = sums[_SCRATCH, lane]
        variance = sums[_ENERGY, lane] / ticks
        flat = sums[_LOW, lane] == sums[_HIGH, lane]
        slope = 0.0 if flat else sums[_SLANT, lane] / ticks / times_variance
        out[0, lane] = slope
        out[1, lane] = math.sqrt((1.0 - r * r) * variance / times_variance / (ticks - 2))
        out[2, lane] = sums[_MEAN, lane] - slope * (ticks - 1) / 2.0
        out[3, lane] = r
        out[4, lane] = _slope_p_value(r, ticks - 2, sums[_SCRATCH + 1, lane])


@inlined
def _series(freedom: int, sums: Floats) -> None:
    """Compute the finite series of Student's t (``trend.slope_p_value``) by lane."""
    odd = freedom % 2
    terms = (freedom - odd) // 2
    for lane in range(LANES):
        sums[_SCRATCH + 1, lane] = 0.0
    for k in range(terms - 1, 0, -1):
        ratio = 2.0 * k / (2.0 * k + 1.0) if odd else (2.0 * k - 1.0) / (2.0 * k)
        for lane in range(LANES):
            r = sums[_SCRATCH, lane]
            sums[_SCRATCH + 1, lane] = (1.0 + sums[_SCRATCH + 1, lane]) * ((1.0 - r * r) * ratio)
    if terms > 0:
        for lane in range(LANES):
            sums[_SCRATCH + 1, lane] += 1.0


@inlined
def _slope_p_value(r: float, freedom: int, series: float) -> float:
    sine = abs(r)
    if freedom % 2 == 0:
        p = 1.0 - sine * series
    else:
        cosine = math.sqrt(1.0 - r * r)
        p = 1.0 - (math.atan2(sine, cosine) + sine * cosine * series) * (2.0 / math.pi)
    return 0.0 if p < 0.0 else p


@inlined
def _write_lagged(centered: Floats, lagged: Floats, sums: Floats, out: Floats) -> None:
    ticks = len(centered)
    lags = min(_LAGS, ticks - 1)
    for lag in range(1, lags + 1):
        for lane in range(LANES):
            sums[_SCRATCH, lane] = 0.0
        for tick in range(ticks - lag):
            for lane in range(LANES):
                sums[_SCRATCH, lane] += centered[tick, lane] * centered[tick + lag, lane]
        for lane in range(LANES):
            variance = sums[_ENERGY, lane] / ticks
            lagged[lag - 1, lane] = sums[_SCRATCH, lane] / ((ticks - lag) * variance)
    for lane in range(out.shape[1]):
        variance = sums[_ENERGY, lane] / ticks
        for lag in range(_SINGLE_LAGS):
            single = lagged[lag, lane]
            out[lag, lane] = math.nan if variance <= _NO_VARIANCE else single
        mean, spread = 0.0, 0.0
        for lag in range(lags):
            mean += lagged[lag, lane]
        mean /= lags
        for lag in range(lags):
            spread += (lagged[lag, lane] - mean) * (lagged[lag, lane] - mean)
        flat = variance < _NO_VARIANCE_AGGREGATED
        out[3, lane] = 0.0 if flat else mean
        out[4, lane] = 0.0 if flat else spread / lags
