"""Steps from tick to tick, and the complexity estimate CID.

CID: Batista et al., "CID: an efficient complexity-invariant distance for time series" (2014).
"""

from __future__ import annotations

import numpy as np

from reveal_analyzer.arrays import Floats
from reveal_analyzer.features.prepared import Prepared


def changes(window: Prepared) -> tuple[Floats, ...]:
    """Return mean absolute change, sum of absolute changes, mean change, CID normalized and not."""
    steps, count = window.steps, window.ticks - 1
    absolute = np.abs(steps).sum(0)
    squared = (steps * steps).sum(0)
    relative = np.sqrt(squared / window.variance)
    return (
        absolute / count,
        absolute,
        (window.values[-1] - window.values[0]) / count,
        np.where(window.variance == 0.0, 0.0, relative),
        np.sqrt(squared),
    )
