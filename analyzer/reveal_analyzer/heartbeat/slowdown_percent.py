"""Slowdown of a job in percent of its step time; ``reference`` measures both step times."""

from __future__ import annotations


def slowdown_percent(period: float, reference: float) -> float:
    """Return how much longer a step takes than in the reference, in percent.

    Both are step times in one unit, the reference is above 0.  A negative result is a speed-up.
    """
    return 100 * (period / reference - 1)
