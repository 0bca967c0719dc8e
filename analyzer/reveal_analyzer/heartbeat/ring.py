"""The last minute of one counter of one job, on an even grid of time."""

from __future__ import annotations

import numpy as np

from reveal_analyzer.arrays import Floats

SPAN_S = 60
_MISSING = 0.1  # of a stretch, beyond which it tells nothing
_BLANK_S = 3  # seconds without a value: what comes later does not go on with what was before


class Ring:
    """Increments, ``rate`` of them a second; NaN where nothing was read."""

    def __init__(self, rate: int) -> None:
        self.rate = rate
        self.seconds = 0
        self._blank = 0
        self._values = np.full(SPAN_S * rate, np.nan)

    def push(self, second: Floats) -> None:
        """Take the ``rate`` increments of one more second."""
        self._values[: -self.rate] = self._values[self.rate :]
        self._values[-self.rate :] = second
        self._blank = self._blank + 1 if np.isnan(second).all() else 0
        self.seconds = 0 if self._blank >= _BLANK_S else min(self.seconds + 1, SPAN_S)

    def last(self, seconds: int = SPAN_S) -> Floats | None:
        """The increments of the last seconds, or of as many as there are, gaps at their mean.

        ``None`` where too many are missing, or none ever changed.
        """
        count = min(seconds, self.seconds) * self.rate
        if not count:
            return None
        values = self._values[-count:]
        missing = np.isnan(values)
        share = float(missing.mean())
        if share > _MISSING:
            return None
        filled = np.where(missing, np.nanmean(values), values) if share else values
        return filled if np.ptp(filled) > 0 else None
