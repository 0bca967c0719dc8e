"""z-scores of windows by compiled loops: those of ``Scaler.transform`` to the last bit."""

from __future__ import annotations

import math

import numpy as np

from reveal_analyzer.arrays import Floats, Floats32, Indices
from reveal_analyzer.kernels.scaler import Scaler
from reveal_analyzer.numba_jit import kernel


def scaled(scaler: Scaler, windows: Floats) -> Floats32:
    """z-scores of windows (n, features) with the layout of the reference."""
    scaler.refuse(windows)
    out = np.empty((len(windows), scaler.kept_.size), np.float32)
    rows = np.ascontiguousarray(windows)
    _scaled(rows, scaler.kept_, scaler.mean_, scaler.spread_, scaler.clip, out)
    return out


@kernel
def _scaled(
    windows: Floats, kept: Indices, mean: Floats, spread: Floats, clip: float, out: Floats32
) -> None:
    for row in range(len(windows)):
        for at in range(len(kept)):
            z = (windows[row, kept[at]] - mean[at]) / spread[at]
            within = clip if z > clip else z
            within = -clip if within < -clip else within
            out[row, at] = within if math.isfinite(z) else 0.0
