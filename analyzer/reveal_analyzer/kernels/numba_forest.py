"""Scores of isolation forests in compiled loops: equal to ``forest.scores`` to 1e-12."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.arrays import Floats, Floats32
from reveal_analyzer.kernels.forest import Forest, Heaps
from reveal_analyzer.numba_jit import kernel


def scores(forest: Forest, scaled: Floats32) -> Floats:
    """Return 2**(-depth / expected depth) of every window (n, features), averaged over trees."""
    heaps: Heaps = forest.heaps
    levels, windows = len(forest.feature), np.ascontiguousarray(scaled)
    return _scores(windows, heaps.feature, heaps.threshold, heaps.depth, levels, forest.scale)


@kernel
def _scores(
    scaled: Floats32,
    feature: NDArray[np.int32],
    threshold: Floats32,
    depth: Floats,
    levels: int,
    scale: float,
) -> Floats:
    """Score window by window, while its values are in the cache; the CPU overlaps the trees."""
    above = feature.shape[1]
    out = np.empty(len(scaled))
    for row in range(len(scaled)):
        total = 0.0
        for tree in range(len(feature)):
            position = 0
            for _ in range(levels):
                # an addition instead of a branch, which the CPU could not predict
                position = (
                    2 * position
                    + 1
                    + (scaled[row, feature[tree, position]] > threshold[tree, position])
                )
            total += depth[tree, position - above]
        out[row] = 2.0 ** (-total / scale)
    return out
