"""Isolation Forest (Liu, Ting and Zhou 2008), trained by scikit-learn, scored from flat arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.detectors.base import Arrays, ScaledDetector
from reveal_analyzer.detectors.scaler import Floats, Scores

Indices = NDArray[np.intp]
_NO_SPLIT = np.float32(np.inf)  # every value goes left: the leaf above goes on


@dataclass(frozen=True)
class Forest:
    """Perfect trees of one depth, level by level.

    Level d of tree t stands at ``t * 2**d + position``; the children of place p of a level are
    the places 2p and 2p + 1 of the next, so one step down is ``2p + went_right`` for all trees
    at once.  ``feature`` and ``cut`` hold the levels above the leaves, ``depth`` all levels: the
    depth at which a window that came there ends on average, in the leaves as isolation counts
    it (with the expected depth of the points left together).
    """

    feature: list[Indices]
    cut: list[Scores]
    depth: list[Floats]
    scale: float  # expected depth of a window among the training sample, times the trees

    @property
    def trees(self) -> int:
        return self.depth[0].size


class IsolationForest(ScaledDetector):
    """2**(-depth / expected depth) of a window, averaged over trees: scikit-learn's score."""

    def __init__(
        self, *, clip: float = 8.0, trees: int = 100, max_samples: int = 256, random_state: int = 0
    ) -> None:
        super().__init__(clip=clip)
        self.trees = trees
        self.max_samples = max_samples
        self.random_state = random_state

    def fit_scaled(self, scaled: Scores) -> Self:
        """Train on z-scores: a forest splits between values, so their order is what counts.

        The paper's contamination of 1 % only places the threshold; ours is held out.
        """
        # a second and 100 MB to load, and needed only by whoever trains
        from sklearn import ensemble  # noqa: PLC0415

        model = ensemble.IsolationForest(
            n_estimators=self.trees,
            max_samples=min(self.max_samples, len(scaled)),
            random_state=self.random_state,
        )
        self.forest_ = flatten(model.fit(scaled)) if scaled.shape[1] else _bare(self.trees)
        return self

    def score_scaled(self, scaled: Scores) -> Floats:
        forest = self.forest_
        depth = forest.depth[-1][self._paths(scaled)[-1]].sum(1)
        return np.asarray(2.0 ** (-depth / forest.scale))

    def contributions_scaled(self, scaled: Scores) -> Floats:
        """How many levels each feature's splits shortened the way, summed over trees.

        A split is credited with the fall of the expected depth from parent to child (additive
        path attribution, Saabas 2014); the sum is the expected depth less the window's.
        """
        forest, out = self.forest_, np.zeros(scaled.shape)
        paths = self._paths(scaled)
        rows = np.arange(len(scaled))[:, None]
        for level, feature in enumerate(forest.feature):
            above, below = paths[level], paths[level + 1]
            fall = forest.depth[level][above] - forest.depth[level + 1][below]
            np.add.at(out, (rows, feature[above]), fall)
        return out

    def to_arrays(self) -> Arrays:
        forest = self.forest_
        empty = np.zeros(0)
        return {
            "feature": np.concatenate([*forest.feature, empty.astype(np.intp)]),
            "cut": np.concatenate([*forest.cut, empty.astype(np.float32)]),
            "depth": np.concatenate(forest.depth),
            "shape": np.array([forest.trees, len(forest.feature)]),
            "scale": np.array(forest.scale),
        }

    def from_arrays(self, arrays: Arrays, width: int) -> Self:
        trees, levels = map(int, arrays["shape"])
        feature, cut, depth = (arrays[name] for name in ("feature", "cut", "depth"))
        if trees < 1 or not 0 <= levels < 32 or feature.size != trees * (2**levels - 1):
            raise ValueError("the trees are not of the shape they claim")
        if cut.size != feature.size or depth.size != trees * (2 ** (levels + 1) - 1):
            raise ValueError("the trees' cuts or depths are not of the shape they claim")
        if feature.size and not 0 <= feature.min() <= feature.max() < width:
            raise ValueError(f"the trees split on features beyond the {width} there are")
        ends = np.cumsum([trees << level for level in range(levels + 1)])
        self.forest_ = Forest(
            feature=np.split(feature, ends[: levels - 1]) if levels else [],
            cut=np.split(cut, ends[: levels - 1]) if levels else [],
            depth=np.split(depth, ends[:levels]),
            scale=float(arrays["scale"]),
        )
        return self

    def _paths(self, scaled: Scores) -> list[Indices]:
        """The place of each window in each tree (n, trees), level by level."""
        n, width = scaled.shape
        flat = np.ascontiguousarray(scaled).ravel()
        start = (np.arange(n) * width)[:, None] if n > 1 else None
        place = np.broadcast_to(np.arange(self.forest_.trees), (n, self.forest_.trees))
        paths = [place]
        for feature, cut in zip(self.forest_.feature, self.forest_.cut, strict=True):
            at = feature.take(place) if start is None else feature.take(place) + start
            place = 2 * place + (flat.take(at) > cut.take(place))
            paths.append(place)
        return paths


def flatten(model: Any) -> Forest:
    """A fitted ``sklearn.ensemble.IsolationForest`` as flat arrays with the same scores."""
    trees = [estimator.tree_ for estimator in model.estimators_]
    levels = max(tree.max_depth for tree in trees)
    parts = [
        _perfect(tree, np.asarray(columns), levels)
        for tree, columns in zip(trees, model.estimators_features_, strict=True)
    ]
    feature, cut, depth = (
        [np.concatenate(level) for level in zip(*part, strict=True)]
        for part in zip(*parts, strict=True)
    )
    expected = float(_isolation_depth(np.array([model.max_samples_]))[0])
    return Forest(feature, cut, depth, scale=expected * len(trees))


def _perfect(
    tree: Any, columns: Indices, levels: int
) -> tuple[list[Indices], list[Scores], list[Floats]]:
    """One tree filled up to ``levels``: a leaf above the last level leads down by itself."""
    expected = _expected_depths(tree)
    node = np.zeros(1, np.intp)
    features: list[Indices] = []
    cuts: list[Scores] = []
    depths: list[Floats] = [expected[node]]
    for _ in range(levels):
        left, right = tree.children_left[node], tree.children_right[node]
        leaf = left < 0
        features.append(np.where(leaf, 0, columns[np.where(leaf, 0, tree.feature[node])]))
        cuts.append(np.where(leaf, _NO_SPLIT, _round_down(tree.threshold[node])))
        node = np.stack([np.where(leaf, node, left), np.where(leaf, node, right)], 1).ravel()
        depths.append(expected[node])
    return features, cuts, depths


def _expected_depths(tree: Any) -> Floats:
    """For every node the mean depth at which its training windows end."""
    count = tree.n_node_samples.astype(np.float64)
    level = np.zeros(tree.node_count)
    for node in range(tree.node_count):  # parents stand before their children
        if tree.children_left[node] >= 0:
            level[tree.children_left[node]] = level[tree.children_right[node]] = level[node] + 1
    depth = level + _isolation_depth(tree.n_node_samples)
    for node in range(tree.node_count - 1, -1, -1):
        left, right = tree.children_left[node], tree.children_right[node]
        if left >= 0:
            share = count[left] / (count[left] + count[right])
            depth[node] = share * depth[left] + (1.0 - share) * depth[right]
    return depth


def _isolation_depth(samples: NDArray[np.integer]) -> Floats:
    """Mean depth of an unsuccessful search among so many points (Liu et al., equation 1)."""
    depth = np.where(samples == 2, 1.0, 0.0)
    many = samples > 2
    n = samples[many].astype(np.float64)
    depth[many] = 2.0 * (np.log(n - 1.0) + np.euler_gamma) - 2.0 * (n - 1.0) / n
    return depth


def _round_down(cuts: Floats) -> Scores:
    """float32 not above the float64: then ``x <= cut`` is decided as scikit-learn does."""
    single = cuts.astype(np.float32)
    return np.where(single > cuts, np.nextafter(single, np.float32(-np.inf)), single)


def _bare(trees: int) -> Forest:
    """The forest of a reference in which no feature varied: every window is alike."""
    return Forest([], [], [np.ones(trees)], scale=float(trees))
