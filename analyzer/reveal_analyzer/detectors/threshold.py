"""Thresholds of detectors, from scores of windows that the detector was not fitted on.

Percentiles of training scores mislead.  With more features than windows the distance of a training
window is bounded, and rare events get components of their own.  So between 0 and many percent of
new healthy windows would exceed the "99th percentile" of training scores.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.arrays import Floats, Indices


@dataclass(frozen=True, slots=True)
class Threshold:
    """``value``: scores above it are abnormal; ``center``: the median healthy score."""

    value: float
    center: float

    def percent(self, score: float) -> int:
        """Return the score as 0 to 100: 0 up to the median, 50 at the threshold."""
        excess = score - self.center
        if not excess > 0:
            return 0
        step = max(self.value - self.center, 1e-9 * max(1.0, abs(self.value)))
        return min(99, round(100 * excess / (excess + step)))


def validation_threshold(scores: Floats, quantile: float = 0.99) -> Threshold:
    """Return the quantile of validation scores, rounded up to one of the scores."""
    if scores.size == 0:
        raise ValueError("a threshold needs validation scores, there are none")
    value = np.quantile(scores, quantile, method="higher")
    return Threshold(float(value), float(np.median(scores)))


def time_folds(
    times: NDArray[np.integer], count: int, gap: int
) -> Iterator[tuple[Indices, Indices]]:
    """Yield (training, validation) indices of windows for ``count`` stretches of time.

    Neighboring windows share samples, so windows closer than ``gap`` strides to the validation
    stretch are in neither part.
    """
    order = np.argsort(times, kind="stable")
    for stretch in np.array_split(order, count):
        first, last = times[stretch[0]], times[stretch[-1]]
        apart = (times < first - gap) | (times > last + gap)
        yield np.flatnonzero(apart), np.sort(stretch)
