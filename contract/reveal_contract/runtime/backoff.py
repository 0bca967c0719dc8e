"""Exponential backoff: how long to wait before the next attempt.

The delay doubles with each failure in a row, up to a limit.  Jitter spreads the attempts of many
processes that lost the same server at the same moment (AWS Architecture Blog, "Exponential Backoff
And Jitter").
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TypeVar

Number = TypeVar("Number", int, float)

NO_JITTER = (1.0, 1.0)
HALF_JITTER = (0.5, 1.0)  # between half of the delay and all of it
_MOST_DOUBLINGS = 30  # 2**30 times the first delay: larger exponents only risk an overflow


def delay(failures: int, first: Number, longest: Number) -> Number:
    """Return the delay after ``failures`` earlier failures in a row, without jitter.

    0 failures give ``first``, each further one doubles it, ``longest`` is never exceeded.  The
    unit is that of the arguments.
    """
    return min(longest, first * (1 << min(failures, _MOST_DOUBLINGS)))


def uniform() -> float:
    """Return a random number in [0, 1).

    From the kernel and not from ``random``: that module brings OpenSSL into a collector's memory.
    """
    return os.urandom(1)[0] / 256


def spread(
    seconds: float, jitter: tuple[float, float], random: Callable[[], float] = uniform
) -> float:
    """Return ``seconds`` times a random factor between the two bounds of ``jitter``."""
    low, high = jitter
    return seconds * (low + (high - low) * random())


class Backoff:
    """Delays of one sequence of attempts, in seconds; not for several threads at once.

    ``failures`` counts the calls of ``next`` since the last ``reset``.
    """

    def __init__(
        self,
        first_s: float,
        longest_s: float,
        jitter: tuple[float, float] = NO_JITTER,
        random: Callable[[], float] = uniform,
    ) -> None:
        self.failures = 0
        self._first_s, self._longest_s = first_s, longest_s
        self._jitter, self._random = jitter, random

    def next(self) -> float:
        """Count a failure and return how long to wait before the next attempt."""
        pause = delay(self.failures, self._first_s, self._longest_s)
        self.failures += 1
        return spread(pause, self._jitter, self._random)

    def reset(self) -> None:
        """Start again at the first delay: the last attempt succeeded."""
        self.failures = 0
