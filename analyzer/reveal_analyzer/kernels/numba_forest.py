"""Scores of isolation forests by compiled loops: those of ``forest.scores`` to 1e-12."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.arrays import Floats, Floats32
from reveal_analyzer.kernels.forest import Forest, Heaps
from reveal_analyzer.numba_jit import kernel


def scores(forest: Forest, scaled: Floats32) -> Floats:
    """2**(-depth / expected depth) of every window (n, features), averaged over trees."""
    heaps: Heaps = forest.heaps
    levels, windows = len(forest.feature), np.ascontiguousarray(scaled)
    return _scores(windows, heaps.feature, heaps.cut, heaps.depth, levels, forest.scale)


@kernel
def _scores(
    scaled: Floats32,
    feature: NDArray[np.int32],
    cut: Floats32,
    depth: Floats,
    levels: int,
    scale: float,
) -> Floats:
    """One window after the other while its values are near; trees overlap by themselves."""
    above = feature.shape[1]
    out = np.empty(len(scaled))
    for row in range(len(scaled)):
        total = 0.0
        for tree in range(len(feature)):
            at = 0
            for _ in range(levels):
                # an addition, no branch: where a window goes cannot be foretold
                at = 2 * at + 1 + (scaled[row, feature[tree, at]] > cut[tree, at])
            total += depth[tree, at - above]
        out[row] = 2.0 ** (-total / scale)
    return out
