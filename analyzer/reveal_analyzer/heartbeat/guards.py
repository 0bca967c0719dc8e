"""Guards: when a rhythm that was found must not be believed."""

from __future__ import annotations

import math

import numpy as np

from reveal_analyzer.heartbeat.comb import Spectrum

MOST_SCATTER = 0.03  # of the step time over the shortest window; beyond it nothing is reported
LEAST_STEPS = 8  # in a window
LEAST_STEPS_KNOWN = 3  # in the longest window, of a job whose reference is known
LEAST_REFERENCE_S = 20
SAME_RHYTHM = 0.6, 1.7  # ratios of periods within which a rhythm that moved is the same
_MARGIN = 1.25
_TEETH = 4
# programs' timers have intervals of one digit, or of one and a half: 0.3, 1.5 and 2.5 s
_TIMER_TOLERANCE = 0.001
_EIGHTH_S = 0.125


def is_alias(spectrum: Spectrum, period: float, end: float | None = None) -> bool:
    """Return whether a rhythm faster than the sampling could look like this one.

    ``end`` (Hz): only what this one has below it counts.

    The samples of a counter are integrals over the sampling time 1/rate, and what it counts is
    never negative.  A rhythm at f therefore swings by at most twice the mean, and its samples by
    ``2 |sinc(f / rate)|`` of the mean.  A line at g below half the rate may be the alias of a
    rhythm at rate - g.  If a tooth swings more than that rhythm could, it is at g.
    """
    return not any(
        _swing(spectrum, tooth / period) > _MARGIN * largest_alias(tooth / period, spectrum.rate)
        for tooth in range(1, _TEETH + 1)
        if tooth / period < min(spectrum.rate / 2, end or math.inf)
    )


def largest_alias(frequency: float, rate: float) -> float:
    """Return the largest amplitude over mean at ``frequency`` of a rhythm beyond ``rate`` / 2."""
    return 2 * abs(float(np.sinc(1 - frequency / rate)))


def is_timer(period: float) -> bool:
    """Return whether the period (s) is round, as the intervals of timers are."""
    digit = 10.0 ** math.floor(math.log10(period * (1 + _TIMER_TOLERANCE)))
    round_period = round(2 * period / digit) * digit / 2
    return any(abs(period / timer - 1) < _TIMER_TOLERANCE for timer in (round_period, _EIGHTH_S))


def steps_fit(window: float, period: float, least: int = LEAST_STEPS) -> bool:
    """Return whether enough steps fit into a window (s)."""
    return window >= least * period


def is_same_rhythm(period: float, known: float) -> bool:
    """Return whether a period is close enough to a known one to be the same rhythm."""
    return SAME_RHYTHM[0] < period / known < SAME_RHYTHM[1]


def _swing(spectrum: Spectrum, frequency: float) -> float:
    """Return amplitude over mean of the line at a frequency, less the noise on both sides."""
    if spectrum.mean <= 0:
        return 0.0
    center, width = round(frequency / spectrum.step), spectrum.line_width
    line = spectrum.power[max(1, center - width) : center + width + 1]
    noise = np.concatenate([
        spectrum.power[max(1, center - 3 * width) : max(1, center - width)],
        spectrum.power[center + width + 1 : center + 3 * width + 1],
    ])  # fmt: skip
    floor = float(np.median(noise)) if noise.size else 0.0
    energy = max(0.0, float(line.sum()) - floor * line.size)
    return float(np.sqrt(2 * energy * spectrum.gain)) / spectrum.mean
