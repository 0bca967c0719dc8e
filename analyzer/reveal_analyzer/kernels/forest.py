"""Isolation forests as flat arrays: converted from scikit-learn's trees, scored without it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.arrays import Floats, Floats32, Indices

_NO_SPLIT = np.float32(np.inf)  # every value goes left, so a leaf repeats on the next level


class Heaps(NamedTuple):
    """One row per tree; the children of position p are at 2p + 1 and 2p + 2.

    ``feature`` and ``threshold`` are (trees, inner nodes), ``depth`` is (trees, leaves).
    """

    feature: NDArray[np.int32]
    threshold: Floats32
    depth: Floats


@dataclass(frozen=True)
class Forest:
    """Perfect binary trees of one depth, stored level by level.

    The node at ``position`` of level d in tree t is at ``t * 2**d + position``.  The children of
    node p are nodes 2p and 2p + 1 of the next level, so one step down is ``2p + went_right`` for
    all trees at once.  ``feature`` and ``threshold`` hold the inner levels.  ``depth`` holds all
    levels: the mean depth at which a window that reaches the node ends, with the expected depth of
    the points left together in a leaf.
    """

    feature: list[Indices]
    threshold: list[Floats32]
    depth: list[Floats]
    scale: float  # expected depth of a training window, times the number of trees

    @property
    def trees(self) -> int:
        return self.depth[0].size

    @cached_property
    def heaps(self) -> Heaps:
        """Return the same trees, one row per tree, for code that walks one tree at a time."""
        trees = self.trees
        features = [level.reshape(trees, -1) for level in self.feature]
        thresholds = [level.reshape(trees, -1) for level in self.threshold]
        return Heaps(
            np.concatenate([np.zeros((trees, 0), np.int32), *features], axis=1, dtype=np.int32),
            np.concatenate([np.zeros((trees, 0), np.float32), *thresholds], axis=1),
            np.ascontiguousarray(self.depth[-1].reshape(trees, -1)),
        )

    def paths(self, scaled: Floats32) -> list[Indices]:
        """Return the node of each window in each tree (n, trees), level by level."""
        n, width = scaled.shape
        flat = np.ascontiguousarray(scaled).ravel()
        start = (np.arange(n) * width)[:, None] if n > 1 else None
        position = np.broadcast_to(np.arange(self.trees), (n, self.trees))
        paths = [position]
        for feature, threshold in zip(self.feature, self.threshold, strict=True):
            flat_index = feature.take(position) if start is None else feature.take(position) + start
            position = 2 * position + (flat.take(flat_index) > threshold.take(position))
            paths.append(position)
        return paths


def scores(forest: Forest, scaled: Floats32) -> Floats:
    """Return 2**(-depth / expected depth) of every window (n, features), averaged over trees."""
    depth = forest.depth[-1][forest.paths(scaled)[-1]].sum(1)
    return np.asarray(2.0 ** (-depth / forest.scale))


def flatten(model: Any) -> Forest:
    """Convert a fitted ``sklearn.ensemble.IsolationForest`` to flat arrays with the same scores."""
    trees = [estimator.tree_ for estimator in model.estimators_]
    levels = max(tree.max_depth for tree in trees)
    parts = [
        _perfect(tree, np.asarray(columns), levels)
        for tree, columns in zip(trees, model.estimators_features_, strict=True)
    ]
    feature, threshold, depth = (
        [np.concatenate(level) for level in zip(*part, strict=True)]
        for part in zip(*parts, strict=True)
    )
    expected = float(_isolation_depth(np.array([model.max_samples_]))[0])
    return Forest(feature, threshold, depth, scale=expected * len(trees))


def _perfect(
    tree: Any, columns: Indices, levels: int
) -> tuple[list[Indices], list[Floats32], list[Floats]]:
    """Fill a tree up to ``levels``: a leaf above the last level leads down to itself."""
    expected = _expected_depths(tree)
    node = np.zeros(1, np.intp)
    features: list[Indices] = []
    thresholds: list[Floats32] = []
    depths: list[Floats] = [expected[node]]
    for _ in range(levels):
        left, right = tree.children_left[node], tree.children_right[node]
        leaf = left < 0
        features.append(np.where(leaf, 0, columns[np.where(leaf, 0, tree.feature[node])]))
        thresholds.append(np.where(leaf, _NO_SPLIT, _round_down(tree.threshold[node])))
        node = np.stack([np.where(leaf, node, left), np.where(leaf, node, right)], 1).ravel()
        depths.append(expected[node])
    return features, thresholds, depths


def _expected_depths(tree: Any) -> Floats:
    """Return for every node the mean depth at which its training windows end."""
    count = tree.n_node_samples.astype(np.float64)
    level = np.zeros(tree.node_count)
    for node in range(tree.node_count):  # parents come before their children
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
    """Return the mean depth of an unsuccessful search (Liu et al., equation 1)."""
    depth = np.where(samples == 2, 1.0, 0.0)
    many = samples > 2
    n = samples[many].astype(np.float64)
    depth[many] = 2.0 * (np.log(n - 1.0) + np.euler_gamma) - 2.0 * (n - 1.0) / n
    return depth


def _round_down(thresholds: Floats) -> Floats32:
    """Round down to float32, so that ``x <= threshold`` decides as scikit-learn does."""
    single = thresholds.astype(np.float32)
    return np.where(single > thresholds, np.nextafter(single, np.float32(-np.inf)), single)


def trivial(trees: int) -> Forest:
    """Return the forest of a reference without any varying feature: all windows score the same."""
    return Forest([], [], [np.ones(trees)], scale=float(trees))
