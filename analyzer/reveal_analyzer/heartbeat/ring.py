"""The last minute of one counter of one job, on an even time grid."""

from __future__ import annotations

import numpy as np

from reveal_analyzer.arrays import Floats

SPAN_S = 60
_MOST_MISSING = 0.1  # share of the values, beyond which they are not used
_MOST_BLANK_S = 3  # seconds without a value, after which the values before are dropped


class RingBuffer:
    """Increments of a counter, ``rate`` of them a second; NaN where nothing was read."""

    def __init__(self, rate: int) -> None:
        self.rate = rate
        self.seconds = 0
        self._blank = 0
        self._values = np.full(SPAN_S * rate, np.nan)

    def push(self, second: Floats) -> None:
        """Append the ``rate`` increments of one second."""
        self._values[: -self.rate] = self._values[self.rate :]
        self._values[-self.rate :] = second
        self._blank = self._blank + 1 if np.isnan(second).all() else 0
        self.seconds = 0 if self._blank >= _MOST_BLANK_S else min(self.seconds + 1, SPAN_S)

    def skip(self, seconds: int) -> None:
        """Note seconds of which nothing was read."""
        for _ in range(min(seconds, SPAN_S)):
            self.push(np.full(self.rate, np.nan))

    def restart(self) -> None:
        """Drop all values."""
        self.seconds = 0

    def readable(self, least: int) -> int:
        """Return how many of the last seconds can be used: all, else ``least``, else 0."""
        return next((span for span in (self.seconds, least) if self._is_readable(span)), 0)

    def _is_readable(self, seconds: int) -> bool:
        if not 0 < seconds <= self.seconds:
            return False
        missing = np.isnan(self._values[-seconds * self.rate :])
        return float(missing.mean()) <= _MOST_MISSING

    def last(self, seconds: int = SPAN_S) -> Floats | None:
        """Return the increments of the last seconds, or of as many as there are.

        Gaps are filled with the mean.  The result is ``None`` if too many increments are missing,
        or if all are equal.
        """
        count = min(seconds, self.seconds) * self.rate
        if not count:
            return None
        values = self._values[-count:]
        missing = np.isnan(values)
        share = float(missing.mean())
        if share > _MOST_MISSING:
            return None
        filled = np.where(missing, np.nanmean(values), values) if share else values
        return filled if np.ptp(filled) > 0 else None
