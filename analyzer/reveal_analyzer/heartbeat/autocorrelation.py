"""Long steps: the period at the highest autocorrelation near the known one.

A step longer than 2.5 s has too few periods for its phase.  The summed autocorrelation of the
counters has a peak at the step's length and another at twice that, which is twice as exact.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reveal_analyzer.arrays import Floats
from reveal_analyzer.heartbeat.comb import clipped, parabola_peak

_MOST_RATIO = 1.4  # of the known lag, in both directions
_TINY = 1e-12


def periods(
    channels: Sequence[Floats], rate: float, period: float, windows: tuple[int, ...]
) -> dict[int, float]:
    """Return the period (s) near ``period`` over each window (s) that the last values fill."""
    found = {}
    for window in windows:
        count = int(window * rate)
        parts = [channel[-count:] for channel in channels if len(channel) >= count]
        if not parts:
            continue
        summed = sum((_autocorrelation(part) for part in parts), np.zeros(count))
        lag = _peak_lag(summed, rate * period)
        if lag is not None:
            found[window] = lag / rate
    return found


def _autocorrelation(values: Floats) -> Floats:
    """Return the unbiased autocorrelation by lag; 1 at lag 0."""
    count = len(values)
    off = clipped(values)
    transformed = np.fft.rfft(off - off.mean(), 1 << (2 * count - 1).bit_length())
    raw = np.fft.irfft(transformed * transformed.conj())[:count]
    unbiased: Floats = raw / (raw[0] + _TINY) * count / (count - np.arange(count))
    return unbiased


def _peak_lag(correlation: Floats, lag: float) -> float | None:
    """Return the lag of the highest value near ``lag``, in samples."""
    low, high = int(lag / _MOST_RATIO), int(lag * _MOST_RATIO) + 1
    if low < 1 or high >= len(correlation):
        return None
    index = low + int(np.argmax(correlation[low:high]))
    # a maximum at the edge belongs to a peak outside
    if not low < index < high - 1:
        return None
    once = parabola_peak(correlation[index - 1 : index + 2], index)
    # the second peak needs enough values behind its lag
    if 2.2 * once >= 0.6 * len(correlation):
        return once
    low, high = int(1.9 * once), int(2.1 * once) + 2
    index = low + int(np.argmax(correlation[low:high]))
    if not low < index < high - 1:
        return once
    return parabola_peak(correlation[index - 1 : index + 2], index) / 2
