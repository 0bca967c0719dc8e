"""z-scores of windows in compiled loops: same bits as ``Scaler.transform``."""

from __future__ import annotations

import math

import numpy as np

from reveal_analyzer.arrays import Floats, Floats32, Indices
from reveal_analyzer.kernels.scaler import Scaler
from reveal_analyzer.numba_jit import kernel


def transform(scaler: Scaler, windows: Floats) -> Floats32:
    """Return z-scores of windows (n, features) with the layout of the reference."""
    scaler.check_layout(windows)
    out = np.empty((len(windows), scaler.kept_.size), np.float32)
    rows = np.ascontiguousarray(windows)
    _scaled(rows, scaler.kept_, scaler.mean_, scaler.spread_, scaler.clip, out)
    return out


@kernel
def _scaled(
    windows: Floats, kept: Indices, mean: Floats, spread: Floats, clip: float, out: Floats32
) -> None:
    for row in range(len(windows)):
        for column in range(len(kept)):
            z = (windows[row, kept[column]] - mean[column]) / spread[column]
            within = clip if z > clip else z
            within = -clip if within < -clip else within
            out[row, column] = within if math.isfinite(z) else 0.0
