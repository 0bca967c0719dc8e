"""The history of a column as quantiles, and a history that has these quantiles."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from reveal_analyzer.arrays import Floats32, Indices
from reveal_analyzer.live.ranges import selected_ranks

QUANTILES = 7  # values at the ranks of ``ranges.selected_ranks``
_SEED = 28


def resample(quantiles: Floats32, count: int) -> Floats32:
    """Return (..., count) values whose values at the selected ranks are (..., 7) ``quantiles``.

    Between the ranks they are interpolated.  Their order is random but always the same, as a
    history in ascending order would forget one side of its range first.
    """
    ranks = selected_ranks(count)
    positions = np.arange(count)
    left = np.clip(np.searchsorted(ranks, positions, side="right") - 1, 0, QUANTILES - 2)
    width = np.maximum(ranks[left + 1] - ranks[left], 1)
    share = ((positions - ranks[left]) / width).astype(np.float32)
    low, high = quantiles[..., left], quantiles[..., left + 1]
    # exact at both ends; rounding between them must not leave the order
    ordered = np.clip(low * (np.float32(1.0) - share) + high * share, low, high)
    result: Floats32 = np.empty_like(ordered)
    result[..., _order(count)] = ordered
    return result


@lru_cache(maxsize=8)
def _order(count: int) -> Indices:
    return np.random.default_rng(_SEED).permutation(count)
