"""Isolation forests as flat arrays: made from scikit-learn's trees, scored without it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.arrays import Floats, Floats32, Indices

_NO_SPLIT = np.float32(np.inf)  # every value goes left: the leaf above goes on


class Heaps(NamedTuple):
    """Tree by tree: the children of place p are the places 2p + 1 and 2p + 2.

    ``feature`` and ``cut`` are (trees, places above the leaves), ``depth`` is (trees, leaves).
    """

    feature: NDArray[np.int32]
    cut: Floats32
    depth: Floats


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
    cut: list[Floats32]
    depth: list[Floats]
    scale: float  # expected depth of a window among the training sample, times the trees

    @property
    def trees(self) -> int:
        return self.depth[0].size

    @cached_property
    def heaps(self) -> Heaps:
        """The same trees, each in one row, for whoever walks them one by one."""
        trees = self.trees
        features = [level.reshape(trees, -1) for level in self.feature]
        cuts = [level.reshape(trees, -1) for level in self.cut]
        return Heaps(
            np.concatenate([np.zeros((trees, 0), np.int32), *features], axis=1, dtype=np.int32),
            np.concatenate([np.zeros((trees, 0), np.float32), *cuts], axis=1),
            np.ascontiguousarray(self.depth[-1].reshape(trees, -1)),
        )

    def paths(self, scaled: Floats32) -> list[Indices]:
        """The place of each window in each tree (n, trees), level by level."""
        n, width = scaled.shape
        flat = np.ascontiguousarray(scaled).ravel()
        start = (np.arange(n) * width)[:, None] if n > 1 else None
        place = np.broadcast_to(np.arange(self.trees), (n, self.trees))
        paths = [place]
        for feature, cut in zip(self.feature, self.cut, strict=True):
            at = feature.take(place) if start is None else feature.take(place) + start
            place = 2 * place + (flat.take(at) > cut.take(place))
            paths.append(place)
        return paths


def scores(forest: Forest, scaled: Floats32) -> Floats:
    """2**(-depth / expected depth) of every window (n, features), averaged over trees."""
    depth = forest.depth[-1][forest.paths(scaled)[-1]].sum(1)
    return np.asarray(2.0 ** (-depth / forest.scale))


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
) -> tuple[list[Indices], list[Floats32], list[Floats]]:
    """One tree filled up to ``levels``: a leaf above the last level leads down by itself."""
    expected = _expected_depths(tree)
    node = np.zeros(1, np.intp)
    features: list[Indices] = []
    cuts: list[Floats32] = []
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


def _round_down(cuts: Floats) -> Floats32:
    """float32 not above the float64: then ``x <= cut`` is decided as scikit-learn does."""
    single = cuts.astype(np.float32)
    return np.where(single > cuts, np.nextafter(single, np.float32(-np.inf)), single)


def bare(trees: int) -> Forest:
    """The forest of a reference in which no feature varied: every window is alike."""
    return Forest([], [], [np.ones(trees)], scale=float(trees))
