"""Dynamic time warping in a band, of many pairs of series at once.

The distance is the sum of absolute differences along the cheapest path that begins at both first
samples, ends at both last ones and goes on by one sample of one or both (Sakoe and Chiba 1978,
without weights); it keeps within ``band`` samples of the diagonal.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def distances(left: Floats, other: Floats, band: int) -> Floats:
    """(samples, pairs) each, of one length; a distance a pair, (pairs,).  ``band`` is 0 or more."""
    if left.shape != other.shape:
        raise ValueError(f"series of {left.shape} and {other.shape} are no pairs")
    count, pairs = left.shape
    before = np.full((count + 1, pairs), np.inf)
    before[0] = 0.0
    for i in range(count):
        row = np.full((count + 1, pairs), np.inf)
        first, last = max(0, i - band), min(count - 1, i + band)
        costs = np.abs(left[i] - other[first : last + 1])
        for j in range(first, last + 1):
            cheapest = np.minimum(before[j], before[j + 1])
            np.minimum(cheapest, row[j], out=cheapest)
            np.add(cheapest, costs[j - first], out=row[j + 1])
        before = row
    return before[count]
