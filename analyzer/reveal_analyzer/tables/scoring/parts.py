"""Views of a table as multiples of what is usual for each, and their fold into one score."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.arrays import Bools, Floats
from reveal_analyzer.detectors.mahalanobis import Mahalanobis

Parts = dict[str, Floats]  # a view's name: its value of each sample (n,)

MIN_WINDOWS = 8  # a reference of fewer says nothing

_CLIP = 8.0  # spreads of a window's feature: one wild feature must not be a window's distance
_LEAST = 0.2  # below this no view's usual level is told from standing still
_BATCH = 4_096  # windows scored at once
_MOST = 8_192  # windows that are enough to learn from


def usual(values: Floats) -> float:
    """The level of a view that is nothing to speak of: its median."""
    return max(float(np.median(values)), _LEAST) if values.size else _LEAST


def fold(multiples: Mapping[str, Floats], weights: Mapping[str, float]) -> Floats:
    """Geometric mean of 1 + the multiples of each view (n,), less 1.

    It asks that views agree: one alone that is far out counts by its logarithm.  A view that
    ``weights`` does not name weighs 1.
    """
    total = sum(weights.get(name, 1.0) for name in multiples)
    logs = [weights.get(name, 1.0) / total * np.log1p(each) for name, each in multiples.items()]
    return np.asarray(np.expm1(np.sum(logs, axis=0)))


def learn_distance(features: NDArray[Any]) -> Mahalanobis:
    """Mahalanobis distance learned from windows (windows, features), NaN where unknown."""
    step = max(1, -(-len(features) // _MOST))
    return Mahalanobis(clip=_CLIP).fit(features[::step].astype(np.float64))


def squared_distances(learned: Mahalanobis, features: NDArray[Any]) -> Floats:
    """Squared distance of each window (windows,)."""
    batches = [features[at : at + _BATCH] for at in range(0, len(features), _BATCH)]
    found = [learned.score(batch.astype(np.float64)) ** 2 for batch in batches]
    return np.concatenate([np.zeros(0), *found])


def window_name(size: int) -> str:
    """What the view of windows of a size is called: ``Windows30``."""
    return f"Windows{size}"


def spans_of(flags: Bools, apart: int) -> list[tuple[int, int]]:
    """Stretches (first, end) of flagged samples, end excluded; those ``apart`` or nearer joined."""
    edges = np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8))
    firsts, ends = np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
    if not firsts.size:
        return []
    begins = np.append(True, firsts[1:] - (ends[:-1] - 1) > apart)
    closes = np.append(begins[1:], True)
    return list(zip(firsts[begins].tolist(), ends[closes].tolist(), strict=True))
