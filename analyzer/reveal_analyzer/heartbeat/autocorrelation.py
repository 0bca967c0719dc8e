"""Long steps: the lag at which a counter repeats itself, where it does.

A step longer than 2.5 s has too few periods for its phase.  The autocorrelation of the counters
has a peak at the step's length.  An evaluation, a checkpoint or a stall within the window moves
that peak: what is before it and after it does not repeat at this lag.  The products are therefore
summed over stretches of one step, and stretches that do not match what follows are left out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from reveal_analyzer.arrays import Floats
from reveal_analyzer.heartbeat.comb import clipped, parabola_peak

_NEAR = 0.15  # of the lag: single steps scatter by less
_SAMPLES = 25  # a step, at least: more make the lag no more exact
_STRETCHES = 4  # begin in each step
_MATCHES = 0.4  # of the median height: a stretch that matches what follows it
_SAME = 0.05  # of a lag: the height of its peak is searched so near
_LEAST_SAMPLES = 8  # in a step, to see its peak
_TINY = 1e-12


def periods(
    channels: Sequence[Floats],
    rate: float,
    period: float,
    windows: tuple[int, ...],
    reach: float,
) -> dict[int, float]:
    """Return the period (s) over each window (s) that the last values fill.

    It is searched up to ``reach`` times the known one, in both directions.
    """
    size = _group_size(rate, period)
    coarse, rate = [_summed(channel, size) for channel in channels], rate / size
    found = {}
    for window in windows:
        count = int(window * rate)
        parts = [_normalized(channel[-count:]) for channel in coarse if len(channel) >= count]
        if not parts:
            continue
        summed = sum((_autocorrelation(part) for part in parts), np.zeros(count))
        lag = _peak_lag(summed, rate * period, reach)
        if lag is not None:
            found[window] = _matching_lag(parts, lag) / rate
    return found


def last_step(values: Floats, rate: float, period: float) -> float | None:
    """Return how long one of the last steps took (s), if what it repeats matches it.

    Steps of about ``period`` s are at least two and a half times in the values.
    """
    size = _group_size(rate, period)
    part, lag = _normalized(_summed(values, size)), round(rate / size * period)
    low, high = _reach(lag)
    heights = _sums(_products(part, low, high), lag)
    if not heights.size:
        return None
    last, best = heights[:, -1], heights.max(axis=0)
    index = int(np.argmax(last))
    if best[-1] <= _MATCHES * np.median(best) or not 0 < index < len(last) - 1:
        return None
    return parabola_peak(last[index - 1 : index + 2], low + index) * size / rate


def repeats_better(
    values: Floats, rate: float, period: float, than: float, times: float = 1.0
) -> bool:
    """Return whether a counter repeats itself more exactly after one period (s) than another.

    More is ``times`` the autocorrelation.  It is true of counters that are read too rarely to
    tell.
    """
    if rate * than < _LEAST_SAMPLES:
        return True
    correlation = _autocorrelation(_normalized(values))
    return _height(correlation, rate * period) > times * _height(correlation, rate * than)


def _height(correlation: Floats, lag: float) -> float:
    near = correlation[int(lag * (1 - _SAME)) : int(lag * (1 + _SAME)) + 2]
    return float(near.max(initial=0.0))


def _group_size(rate: float, period: float) -> int:
    """Return how many values are summed into one sample."""
    return max(1, int(rate * period / _SAMPLES))


def _summed(values: Floats, size: int) -> Floats:
    """Return the sums of each ``size`` values, the last at the end."""
    whole: Floats = values[len(values) % size :].reshape(-1, size).sum(axis=1)
    return whole


def _normalized(values: Floats) -> Floats:
    """Return the values without outliers, with a mean of 0 and squares that sum up to 1."""
    off = clipped(values)
    off -= off.mean()
    unit: Floats = off / np.sqrt(np.dot(off, off) + _TINY)
    return unit


def _autocorrelation(values: Floats) -> Floats:
    """Return the unbiased autocorrelation by lag; 1 at lag 0."""
    count = len(values)
    transformed = np.fft.rfft(values, 1 << (2 * count - 1).bit_length())
    raw = np.fft.irfft(transformed * transformed.conj())[:count]
    unbiased: Floats = raw * count / (count - np.arange(count))
    return unbiased


def _peak_lag(correlation: Floats, lag: float, reach: float) -> int | None:
    """Return the lag of the highest value near ``lag``, in samples."""
    low, high = int(lag / reach), int(lag * reach) + 1
    if low < 1 or high >= len(correlation):
        return None
    index = low + int(np.argmax(correlation[low:high]))
    # a maximum at the edge belongs to a peak outside
    return index if low < index < high - 1 else None


def _matching_lag(parts: Sequence[Floats], lag: int) -> float:
    """Return the lag near one at which the stretches repeat that match what follows them."""
    low, high = _reach(lag)
    products: Floats = np.sum([_products(part, low, high) for part in parts], axis=0)
    heights = _sums(products, lag)
    if not heights.size:
        return float(lag)
    best = heights.max(axis=0)
    total = heights[:, best > _MATCHES * np.median(best)].sum(axis=1)
    index = int(np.argmax(total))
    if not 0 < index < len(total) - 1:
        return float(lag)
    return parabola_peak(total[index - 1 : index + 2], low + index)


def _reach(lag: int) -> tuple[int, int]:
    """Return the shortest and the longest lag of single steps."""
    reach = int(_NEAR * lag) + 1
    return max(1, lag - reach), lag + reach


def _products(values: Floats, low: int, high: int) -> Floats:
    """Return by lag and time the products of values that are this lag apart."""
    count = len(values) - high
    shifted = sliding_window_view(values[low:], count)[: high - low + 1]
    products: Floats = shifted * values[:count]
    return products


def _sums(products: Floats, size: int) -> Floats:
    """Return the sums over stretches of ``size`` values, some of which begin in each step."""
    running = np.cumsum(products, axis=1)
    sums: Floats = (running[:, size:] - running[:, :-size])[:, :: max(1, size // _STRETCHES)]
    return sums
