"""The history of a column as quantiles, and a history that has these quantiles."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

import numpy as np

from reveal_analyzer.arrays import Floats32, Indices
from reveal_analyzer.live.ranges import selected_ranks

QUANTILES = 7  # values at the ranks of ``ranges.selected_ranks``
_SEED = 28


def ascending(quantiles: Floats32, count: int) -> Floats32:
    """Return (..., count) ascending values that have (..., 7) ``quantiles`` at the selected ranks.

    Between the ranks they are interpolated.
    """
    ranks = [*selected_ranks(count).tolist()[:-1], count]
    result: Floats32 = np.empty((*quantiles.shape[:-1], count), np.float32)
    last = count - 1  # the rank of the last quantile
    for number, (first, end) in enumerate(pairwise(ranks)):
        width = max(min(end, last) - first, 1)
        share = (np.arange(end - first) / width).astype(np.float32)
        low, high = quantiles[..., number, None], quantiles[..., number + 1, None]
        values = result[..., first:end]
        np.multiply(low, np.float32(1.0) - share, out=values)
        values += high * share
        # exact at both ends; rounding between them must not leave the order
        np.maximum(values, low, out=values)
        np.minimum(values, high, out=values)
    return result


def shuffled(values: Floats32) -> Floats32:
    """Return (..., count) ascending values in an order that is random but always the same.

    A history in ascending order would forget one side of its range first.
    """
    return values.take(_positions(values.shape[-1]), axis=-1)


def resample(quantiles: Floats32, count: int) -> Floats32:
    """Return (..., count) values in random order whose quantiles are (..., 7) ``quantiles``."""
    return shuffled(ascending(quantiles, count))


@lru_cache(maxsize=8)
def _positions(count: int) -> Indices:
    return np.argsort(np.random.default_rng(_SEED).permutation(count))
