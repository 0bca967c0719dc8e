"""Guards: when a rhythm that was found must not be believed."""

from __future__ import annotations

import numpy as np

from reveal_analyzer.heartbeat.comb import Spectrum

STEADY = 0.03  # own scatter of the 10 s (or shortest) value beyond which nothing is said
LEAST_STEPS = 8  # in a window
LEAST_REFERENCE_S = 60
FOLLOW = 0.6, 1.7  # ratios in which a rhythm that moved is still the same
_MARGIN = 1.25
_TEETH = 4
# timers of programs fire on these: a job that steps on one to a thousandth is paced by it
_ROUND_S = (0.04, 0.05, 0.1, 0.125, 0.2, 0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 10.0)
_ROUND = 0.001


def is_alias(seen: Spectrum, period: float) -> bool:
    """Whether a rhythm faster than the sampling could look like this one.

    A counter's samples are integrals over the sampling time 1/rate, and what is counted is never
    negative: so a rhythm at f swings by at most twice the mean, and its samples by
    ``2 |sinc(f / rate)|`` of it.  What shows at g below half the rate may be one at rate - g;
    a tooth that swings more than that one could is at g.
    """
    return not any(
        _swing(seen, tooth / period) > _MARGIN * largest_alias(tooth / period, seen.rate)
        for tooth in range(1, _TEETH + 1)
        if tooth / period < seen.rate / 2
    )


def largest_alias(frequency: float, rate: float) -> float:
    """Amplitude over mean at ``frequency`` of the strongest rhythm beyond half of ``rate``."""
    return 2 * abs(float(np.sinc(1 - frequency / rate)))


def is_timer(period: float) -> bool:
    """Whether the period (s) is one of those that programs wait for."""
    return any(abs(period / around - 1) < _ROUND for around in _ROUND_S)


def steps_fit(window: float, period: float) -> bool:
    return window >= LEAST_STEPS * period


def _swing(seen: Spectrum, frequency: float) -> float:
    """Amplitude over mean of the line at a frequency, what the noise beside it holds taken off."""
    if seen.mean <= 0:
        return 0.0
    at, wide = round(frequency / seen.step), seen.wide
    line = seen.power[max(1, at - wide) : at + wide + 1]
    beside = np.concatenate([
        seen.power[max(1, at - 3 * wide) : max(1, at - wide)],
        seen.power[at + wide + 1 : at + 3 * wide + 1],
    ])  # fmt: skip
    floor = float(np.median(beside)) if beside.size else 0.0
    energy = max(0.0, float(line.sum()) - floor * line.size)
    return float(np.sqrt(2 * energy * seen.gain)) / seen.mean
