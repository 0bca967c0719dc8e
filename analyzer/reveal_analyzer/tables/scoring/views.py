"""Views of a table as multiples of their normal level, and their combination into one score."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.arrays import Floats
from reveal_analyzer.detectors.mahalanobis import Mahalanobis

ViewScores = dict[str, Floats]  # by name of the view, its value of each sample (n,)

MIN_WINDOWS = 8  # a smaller reference means nothing

_CLIP = 8.0  # spreads of a feature: one extreme feature must not decide a window's distance
_MIN_LEVEL = 0.2  # least normal level: below it a view is constant
_BATCH = 4_096  # windows scored at once
_MAX_WINDOWS = 8_192  # more windows than these are thinned


def normal_level(values: Floats) -> float:
    """Return the normal level of a view: its median."""
    return max(float(np.median(values)), _MIN_LEVEL) if values.size else _MIN_LEVEL


def combine_views(multiples: Mapping[str, Floats], weights: Mapping[str, float]) -> Floats:
    """Return the geometric mean of 1 + the multiples of each view (n,), minus 1.

    It requires views to agree: a single extreme view counts by its logarithm.  A view that
    ``weights`` does not name has weight 1.
    """
    total = sum(weights.get(name, 1.0) for name in multiples)
    logs = [weights.get(name, 1.0) / total * np.log1p(each) for name, each in multiples.items()]
    return np.asarray(np.expm1(np.sum(logs, axis=0)))


def learn_distance(features: NDArray[Any]) -> Mahalanobis:
    """Learn the Mahalanobis distance from windows (windows, features), NaN where unknown."""
    step = max(1, -(-len(features) // _MAX_WINDOWS))
    return Mahalanobis(clip=_CLIP).fit(features[::step].astype(np.float64))


def squared_distances(learned: Mahalanobis, features: NDArray[Any]) -> Floats:
    """Return the squared distance of each window (windows,)."""
    batches = [features[start : start + _BATCH] for start in range(0, len(features), _BATCH)]
    found = [learned.score(batch.astype(np.float64)) ** 2 for batch in batches]
    return np.concatenate([np.zeros(0), *found])


def window_name(size: int) -> str:
    """Return the name of the view of windows of a size: ``Windows30``."""
    return f"Windows{size}"
