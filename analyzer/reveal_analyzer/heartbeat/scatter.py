"""Scatter of readings that overlap: how far one is from the step time by chance.

A reading over ten seconds shares nine of them with the one a second later.  Two minutes therefore
hold 120 readings and twelve independent ones, and the scatter of so few is known poorly.  The
differences of readings a few seconds apart are more in number: they differ only by the seconds
that entered and left the window.

Of steps that take seconds even those are few.  There the lengths of single steps tell the scatter.
Differences are taken between steps close to each other: a slowdown that begins while the job is
learned changes few of them.
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
_STEP_LAG_PERIODS = 1.5  # between two steps that have no second in common
_STEP_PARTS = 1.1  # one spread of steps, by that of stretches that hold the ends of two steps
_INNER_PART = 0.683  # of a normal law lies within one spread
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
        reference = _MEDIAN_VARIANCE * window / reference_s
        return max(LEAST_SLOWDOWN, self.chance * math.sqrt(1 + reference))

    @property
    def chance(self) -> float:
        """How many percent a reading may differ by chance from a step time that is known."""
        few = 1 / self.independent
        return self.percent * (_QUANTILE + few * (_FIRST + few * _SECOND))

    def over(self, own: int, window: int) -> ReadingScatter:
        """Return what independent steps leave of this scatter over ``own`` s in a longer window."""
        return ReadingScatter(self.percent * math.sqrt(own / window), self.independent)

    def of_steps(self, window: int, period: float) -> ReadingScatter:
        """Return what this scatter of single steps (s) leaves over a window (s).

        A window compares all its steps with the next one, but the last.
        """
        return ReadingScatter(
            self.percent * math.sqrt(period / (window - period)), self.independent
        )

    def raised_by(self, other: ReadingScatter) -> ReadingScatter:
        """Return this scatter, or the mean with a larger one, weighted by independent values."""
        few, many = other.independent, self.independent
        mean = (many * self.percent**2 + few * other.percent**2) / (many + few)
        return ReadingScatter(max(self.percent, math.sqrt(mean)), many)


def step_scatter(lengths: Sequence[float], period: float) -> ReadingScatter | None:
    """Return the scatter of single steps of a period (s), one length (s) a second."""
    steps, lag = np.array(lengths), math.ceil(_STEP_LAG_PERIODS * period)
    if len(steps) < 2 * lag:
        return None
    differences = np.abs(steps[lag:] - steps[:-lag])
    spread = _STEP_PARTS * float(np.quantile(differences, _INNER_PART)) / math.sqrt(2)
    return ReadingScatter(100 * spread / period, max(1.0, len(steps) / (_LAG_PERIODS * period)))


def readings_scatter(values: Sequence[float], window: int, period: float) -> ReadingScatter:
    """Return how readings (s), one a second, over a window (s) scatter around their median."""
    readings = np.array(values)
    spread = _SPREAD_PER_DEVIATION * float(np.median(np.abs(readings - np.median(readings))))
    return ReadingScatter(100 * spread / period, len(readings) / window)


def scatter(values: Sequence[float], window: int, period: float) -> ReadingScatter:
    """Return the scatter of readings (s), one a second, over a window (s) of steps of a period."""
    readings = np.array(values)
    around = readings_scatter(values, window, period).percent
    lag = min(max(_LEAST_LAG_S, math.ceil(_LAG_PERIODS * period)), window // 2)
    if len(readings) <= lag:
        return ReadingScatter(around, 1.0)
    differences = _SPREAD_PER_DEVIATION * float(np.median(np.abs(readings[lag:] - readings[:-lag])))
    # ``lag`` seconds entered and ``lag`` left: of each, so much of the variance of a window
    within = 100 * differences * math.sqrt(window / (2 * lag)) / period
    return ReadingScatter(max(around, within), max(1.0, len(readings) / lag))
