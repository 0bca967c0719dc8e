"""Scatter of readings that overlap: how far one is from the step time by chance.

A reading over ten seconds shares nine of them with the one a second later.  Two minutes therefore
hold 120 readings and twelve independent ones, and the scatter of so few is known poorly.  The
differences of readings a few seconds apart are more in number: they differ only by the seconds
that entered and left the window.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

LEAST_SLOWDOWN = 1.5  # percent
_LEAST_LAG_S, _LAG_PERIODS = 3, 2.5  # a reading weighs the seconds at its ends over two periods
_SPREAD_PER_DEVIATION = 1.4826  # of a normal law
_MEDIAN_VARIANCE = 1.57  # of a median relative to that of a mean
# quantile of a normal law, and of Student's law with few degrees of freedom (Cornish-Fisher)
_QUANTILE, _FIRST, _SECOND = 4.0, 17.0, 64.0


@dataclass(frozen=True)
class ReadingScatter:
    """One spread of the readings over a window, in percent, from so many ``independent`` values."""

    percent: float
    independent: float

    def level(self, window: int, reference_s: float) -> float:
        """Return from how many percent a reading is a slowdown.

        The reference is known from ``reference_s`` seconds and scatters, too.
        """
        few = 1 / self.independent
        quantile = _QUANTILE + few * (_FIRST + few * _SECOND)
        reference = _MEDIAN_VARIANCE * window / reference_s
        return max(LEAST_SLOWDOWN, quantile * self.percent * math.sqrt(1 + reference))

    def over(self, own: int, window: int) -> ReadingScatter:
        """Return what independent steps leave of this scatter over ``own`` s in a longer window."""
        return ReadingScatter(self.percent * math.sqrt(own / window), self.independent)


def scatter(values: Sequence[float], window: int, period: float) -> ReadingScatter:
    """Return the scatter of readings (s), one a second, over a window (s) of steps of a period."""
    readings = np.array(values)
    around = _SPREAD_PER_DEVIATION * float(np.median(np.abs(readings - np.median(readings))))
    lag = min(max(_LEAST_LAG_S, math.ceil(_LAG_PERIODS * period)), window // 2)
    if len(readings) <= lag:
        return ReadingScatter(100 * around / period, 1.0)
    differences = _SPREAD_PER_DEVIATION * float(np.median(np.abs(readings[lag:] - readings[:-lag])))
    # ``lag`` seconds entered and ``lag`` left: of each, so much of the variance of a window
    spread = max(around, differences * math.sqrt(window / (2 * lag)))
    return ReadingScatter(100 * spread / period, max(1.0, len(readings) / lag))
