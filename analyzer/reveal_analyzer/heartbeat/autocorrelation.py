"""Long steps: the highest autocorrelation near the known lag.

A step of over 2.5 s turns too seldom for its phase; the counters' autocorrelations, summed, peak
at its length and, twice as exactly, at twice that.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reveal_analyzer.arrays import Floats
from reveal_analyzer.heartbeat.comb import summit, tamed

_NEAR = 1.4  # to either side of the known lag
_TINY = 1e-12


def periods(
    channels: Sequence[Floats], rate: float, period: float, windows: tuple[int, ...]
) -> dict[int, float]:
    """The period (s) over each window (s) that the last values fill, near ``period``."""
    found = {}
    for window in windows:
        count = int(window * rate)
        parts = [channel[-count:] for channel in channels if len(channel) >= count]
        if not parts:
            continue
        peak = _peak(sum((_correlation(part) for part in parts), np.zeros(count)), rate * period)
        if peak is not None:
            found[window] = peak / rate
    return found


def _correlation(values: Floats) -> Floats:
    """Autocorrelation by lag, 1 at lag 0, evened for the values a lag leaves."""
    count = len(values)
    off = tamed(values)
    transformed = np.fft.rfft(off - off.mean(), 1 << (2 * count - 1).bit_length())
    raw = np.fft.irfft(transformed * transformed.conj())[:count]
    evened: Floats = raw / (raw[0] + _TINY) * count / (count - np.arange(count))
    return evened


def _peak(correlation: Floats, lag: float) -> float | None:
    """The lag of the highest value near ``lag``, in samples."""
    low, high = int(lag / _NEAR), int(lag * _NEAR) + 1
    if low < 1 or high >= len(correlation):
        return None
    at = low + int(np.argmax(correlation[low:high]))
    if not low < at < high - 1:
        return None
    once = summit(correlation[at - 1 : at + 2], at)
    if 2.2 * once >= 0.6 * len(correlation):
        return once
    low, high = int(1.9 * once), int(2.1 * once) + 2
    at = low + int(np.argmax(correlation[low:high]))
    return summit(correlation[at - 1 : at + 2], at) / 2 if low < at < high - 1 else once
