"""Tracking: the frequency of a line is the slope of its phase.

The counter is demodulated at the last known frequency with a window of two periods.  The slope of
the phase is the difference from that frequency.  Slopes that an evaluation or a checkpoint shifts
are trimmed.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from reveal_analyzer.arrays import Complexes, Floats
from reveal_analyzer.heartbeat.comb import clipped

_WINDOW_PERIODS = 2  # a Hann window of two periods has its zeros at 0 and at the first harmonic
_PHASES_A_PERIOD = 8
_LAG_S = 0.4  # between the two phases of a slope, or one period if that is longer
_TRIM = 4.5  # median deviations
_TINY = 1e-30


def periods(
    values: Floats, rate: float, period: float, windows: tuple[int, ...]
) -> dict[int, float]:
    """Return the period (s) near ``period`` over each window (s) that the last values fill."""
    frequency = 1 / period
    size = max(5, int(_WINDOW_PERIODS * rate * period)) | 1
    if size >= len(values):
        return {}
    hop = max(1, int(rate * period / _PHASES_A_PERIOD))
    line = _demodulated(values, frequency / rate, size, hop)
    phase, amplitude = np.unwrap(np.angle(line)), np.abs(line)
    lag = int(max(period, _LAG_S) * rate)
    found = {}
    for window in windows:
        count = (int(window * rate) - size) // hop + 1
        slope = _slope(phase, amplitude, count, lag // hop, size // hop)
        if slope is not None:
            corrected = frequency + slope * rate / (2 * np.pi * hop)
            if corrected > 0:
                found[window] = 1 / corrected
    return found


def line_age(values: Floats, rate: float, period: float) -> float:
    """Return for how many seconds the line of a period (s) has been there, until the end."""
    size = max(5, int(_WINDOW_PERIODS * rate * period)) | 1
    if size >= len(values):
        return 0.0
    hop = max(1, int(rate * period / _PHASES_A_PERIOD))
    amplitude = np.abs(_demodulated(values, 1 / (period * rate), size, hop))
    # half of a window has the line when it is at half of its height
    absent = np.flatnonzero(amplitude < np.median(amplitude[-len(amplitude) // 4 :]) / 2)
    first = int(absent[-1]) + 1 if absent.size else 0
    return min(len(values), (len(amplitude) - first) * hop + size // 2) / rate


def _demodulated(values: Floats, cycles: float, size: int, hop: int) -> Complexes:
    """Return the line at ``cycles`` per sample: complex, one value per hop, the last at the end."""
    window = np.hanning(size + 2)[1:-1]
    angle = -2j * np.pi * cycles
    carrier = np.exp(angle * np.arange(size)) * (window / window.sum())
    kernel = np.column_stack([carrier.real, carrier.imag])
    skip = (len(values) - size) % hop
    stretches = sliding_window_view(clipped(values)[skip:], size)[::hop]
    parts = stretches @ kernel
    line: Complexes = np.exp(angle * hop * np.arange(len(parts)))
    line *= parts[:, 0] + 1j * parts[:, 1]
    return line


def _slope(phase: Floats, amplitude: Floats, count: int, lag: int, size: int) -> float | None:
    """Return the mean slope in radians per hop over the last ``count`` phases.

    Slopes are weighted by amplitude, and outliers are trimmed.
    """
    lag = max(1, lag)
    if count < lag + size // 2 or count > len(phase):
        return None
    lag = min(lag, count // 2)
    last, strong = phase[-count:], amplitude[-count:]
    slopes = (last[lag:] - last[:-lag]) / lag
    weights = np.minimum(strong[lag:], strong[:-lag])
    off = np.abs(slopes - np.median(slopes))
    kept = off <= _TRIM * np.median(off) + 1e-12
    return float(np.dot(slopes[kept], weights[kept]) / (weights[kept].sum() + _TINY))
