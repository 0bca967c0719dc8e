"""Tracking: the frequency of a line is the slope of its phase.

The counter is demodulated at the frequency it was last seen at, two periods wide; phases some
time apart tell by how much it differs.  What an evaluation or a checkpoint shifts is trimmed.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from reveal_analyzer.arrays import Complexes, Floats
from reveal_analyzer.heartbeat.comb import tamed

_WIDE = 2  # periods under the window: a Hann window then has its zeros at 0 and at the overtone
_A_PERIOD = 8  # phases taken
_APART_S = 0.4  # of two phases that make a slope, or one period where that is longer
_TRIM = 4.5  # median deviations
_TINY = 1e-30


def periods(
    values: Floats, rate: float, period: float, windows: tuple[int, ...]
) -> dict[int, float]:
    """The period (s) over each window (s) that the last values fill, near ``period``."""
    frequency = 1 / period
    size = max(5, int(_WIDE * rate * period)) | 1
    if size >= len(values):
        return {}
    hop = max(1, int(rate * period / _A_PERIOD))
    turned = _demodulated(values, frequency / rate, size, hop)
    phase, amplitude = np.unwrap(np.angle(turned)), np.abs(turned)
    found = {}
    for window in windows:
        count = (int(window * rate) - size) // hop + 1
        slope = _slope(phase, amplitude, count, _lag(rate, period) // hop, size // hop)
        if slope is not None:
            true = frequency + slope * rate / (2 * np.pi * hop)
            if true > 0:
                found[window] = 1 / true
    return found


def _lag(rate: float, period: float) -> int:
    return int(max(period, _APART_S) * rate)


def _demodulated(values: Floats, turns: float, size: int, hop: int) -> Complexes:
    """The line at ``turns`` a sample: complex, one value a hop, the last at the end."""
    window = np.hanning(size + 2)[1:-1]
    angle = -2j * np.pi * turns
    carrier = np.exp(angle * np.arange(size)) * (window / window.sum())
    kernel = np.column_stack([carrier.real, carrier.imag])
    skip = (len(values) - size) % hop
    stretches = sliding_window_view(tamed(values)[skip:], size)[::hop]
    parts = stretches @ kernel
    turned: Complexes = np.exp(angle * hop * np.arange(len(parts)))
    turned *= parts[:, 0] + 1j * parts[:, 1]
    return turned


def _slope(phase: Floats, amplitude: Floats, count: int, lag: int, size: int) -> float | None:
    """Radians a hop over the last ``count`` phases, the runaways trimmed, strong ones counting."""
    lag = max(1, lag)
    if count < lag + size // 2 or count > len(phase):
        return None
    lag = min(lag, count // 2)
    here, strong = phase[-count:], amplitude[-count:]
    slopes = (here[lag:] - here[:-lag]) / lag
    weights = np.minimum(strong[lag:], strong[:-lag])
    off = np.abs(slopes - np.median(slopes))
    kept = off <= _TRIM * np.median(off) + 1e-12
    return float(np.dot(slopes[kept], weights[kept]) / (weights[kept].sum() + _TINY))
