"""Where a score begins to be abnormal: from windows the detector was not fitted on.

In-sample percentiles mislead: with more features than windows the distance of a training
window is bounded, and rare events get components of their own, so that new healthy windows
over the "99th percentile" are anything from 0 to many per cent instead of one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.arrays import Floats, Indices


@dataclass(frozen=True, slots=True)
class Threshold:
    """``value``: scores above it are abnormal; ``centre``: the median healthy score."""

    value: float
    centre: float

    def percent(self, score: float) -> int:
        """The score as 0 to 100, rising with it: 0 to the median, 50 at the threshold."""
        excess = score - self.centre
        if not excess > 0:
            return 0
        step = max(self.value - self.centre, 1e-9 * max(1.0, abs(self.value)))
        return min(99, round(100 * excess / (excess + step)))


def threshold(held_out: Floats, quantile: float = 0.99) -> Threshold:
    """The quantile of held-out scores, rounded up to a score seen: the largest of less than 100."""
    if held_out.size == 0:
        raise ValueError("a threshold needs held-out scores, there are none")
    value = np.quantile(held_out, quantile, method="higher")
    return Threshold(float(value), float(np.median(held_out)))


def folds(times: NDArray[np.integer], count: int, gap: int) -> Iterator[tuple[Indices, Indices]]:
    """Pairs (fit on these, held out) of windows, in ``count`` stretches of time.

    Neighbouring windows share samples, so those closer than ``gap`` strides to the stretch held
    out are in neither part.
    """
    order = np.argsort(times, kind="stable")
    for part in np.array_split(order, count):
        first, last = times[part[0]], times[part[-1]]
        apart = (times < first - gap) | (times > last + gap)
        yield np.flatnonzero(apart), np.sort(part)
