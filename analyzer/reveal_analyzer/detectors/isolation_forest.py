"""Isolation Forest (Liu, Ting and Zhou 2008), trained by scikit-learn, scored from flat arrays."""

from __future__ import annotations

from typing import Self

import numpy as np

from reveal_analyzer.arrays import Floats, Floats32
from reveal_analyzer.detectors.base import Arrays, ScaledDetector
from reveal_analyzer.detectors.still_features import MOST
from reveal_analyzer.kernels import backend
from reveal_analyzer.kernels.forest import Forest, flatten, trivial

_CERTAIN = 1e-9  # a share of 1 less this: its logarithm is finite


def preload() -> None:
    """Import what training needs: 140 MB, and seconds if it is read from a disk.

    For a process that must not stall at its first training.
    """
    from sklearn import ensemble  # noqa: F401, PLC0415


class IsolationForest(ScaledDetector):
    """2**(-depth / expected depth) of a window, averaged over trees: scikit-learn's score."""

    def __init__(
        self, *, clip: float = 8.0, trees: int = 100, max_samples: int = 256, random_state: int = 0
    ) -> None:
        super().__init__(clip=clip)
        self.trees = trees
        self.max_samples = max_samples
        self.random_state = random_state

    def fit_scaled(self, scaled: Floats32) -> Self:
        """Train on z-scores; a forest splits between values, so only their order counts.

        The paper's contamination of 1 % only sets the threshold; here that comes from validation
        scores.
        """
        # imported only for training: see ``preload``
        from sklearn import ensemble  # noqa: PLC0415

        model = ensemble.IsolationForest(
            n_estimators=self.trees,
            max_samples=min(self.max_samples, len(scaled)),
            random_state=self.random_state,
        )
        self.forest_ = flatten(model.fit(scaled)) if scaled.shape[1] else trivial(self.trees)
        return self

    def score_scaled(self, scaled: Floats32) -> Floats:
        return backend.current().forest_scores(self.forest_, scaled)

    def contributions_scaled(self, scaled: Floats32) -> Floats:
        """Return by how much the splits on each feature shortened the path, summed over trees.

        A split is credited with the decrease of the expected depth from parent to child (additive
        path attribution, Saabas 2014); the sum is the expected depth minus the window's.
        """
        forest, out = self.forest_, np.zeros(scaled.shape)
        paths = forest.paths(scaled)
        rows = np.arange(len(scaled))[:, None]
        for level, feature in enumerate(forest.feature):
            above, below = paths[level], paths[level + 1]
            fall = forest.depth[level][above] - forest.depth[level + 1][below]
            np.add.at(out, (rows, feature[above]), fall)
        return out

    def score_moved(self, scores: Floats, moved: Floats, kept: float) -> Floats:
        """Return the scores of trees that choose among all features at each split.

        A split on a feature that moved separates the window from the whole reference at once, as
        the reference has one value there.  Each split finds one with the same probability, so the
        expected depth is that of a geometric distribution that ends at the depth without them.
        """
        trees, scale = self.forest_.trees, self.forest_.scale
        shorter = _shortened(-np.log2(scores) * scale / trees, _share_moved(moved, kept))
        return np.asarray(2.0 ** (-shorter * trees / scale))

    def contributions_moved(self, scores: Floats, moved: Floats, kept: float) -> Floats:
        trees, scale = self.forest_.trees, self.forest_.scale
        depth = -np.log2(scores) * scale / trees
        saved = trees * (depth - _shortened(depth, _share_moved(moved, kept)))
        whole = np.maximum(np.abs(moved).sum(1), np.finfo(np.float64).tiny)
        return np.asarray(np.abs(moved) * (saved / whole)[:, None])

    def to_arrays(self) -> Arrays:
        forest = self.forest_
        empty = np.zeros(0)
        return {
            "feature": np.concatenate([*forest.feature, empty.astype(np.intp)]),
            "cut": np.concatenate([*forest.threshold, empty.astype(np.float32)]),
            "depth": np.concatenate(forest.depth),
            "shape": np.array([forest.trees, len(forest.feature)]),
            "scale": np.array(forest.scale),
        }

    def from_arrays(self, arrays: Arrays, width: int) -> Self:
        trees, levels = map(int, arrays["shape"])
        feature, threshold, depth = (arrays[name] for name in ("feature", "cut", "depth"))
        if trees < 1 or not 0 <= levels < 32 or feature.size != trees * (2**levels - 1):
            raise ValueError("the trees do not have their declared shape")
        if threshold.size != feature.size or depth.size != trees * (2 ** (levels + 1) - 1):
            raise ValueError("the trees' thresholds or depths do not have their declared shape")
        if feature.size and not 0 <= feature.min() <= feature.max() < width:
            raise ValueError(f"the trees split on features beyond the {width} that exist")
        ends = np.cumsum([trees << level for level in range(levels + 1)])
        self.forest_ = Forest(
            feature=np.split(feature, ends[: levels - 1]) if levels else [],
            threshold=np.split(threshold, ends[: levels - 1]) if levels else [],
            depth=np.split(depth, ends[:levels]),
            scale=float(arrays["scale"]),
        )
        return self


def _share_moved(moved: Floats, kept: float) -> Floats:
    """Return the probability that a split chooses a feature that moved, (n,)."""
    return np.asarray(np.abs(moved).sum(1) / MOST / max(1.0, kept + moved.shape[1]))


def _shortened(depth: Floats, share: Floats) -> Floats:
    """Return the expected depth if each split ends the path with a probability of ``share``."""
    some = np.clip(share, np.finfo(np.float64).tiny, 1.0 - _CERTAIN)
    return np.asarray(np.where(share > 0, -np.expm1(depth * np.log1p(-some)) / some, depth))
