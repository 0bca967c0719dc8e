"""Isolation Forest from flat arrays beside scikit-learn's score_samples: same trees, one core."""

from __future__ import annotations

import numpy as np
from sklearn import ensemble

from benchmark_report import Row, median_seconds
from reveal_analyzer.kernels.backend import Backend
from reveal_analyzer.kernels.forest import flatten


def compare(features: int, windows: int, tiers: list[Backend]) -> list[Row]:
    rng = np.random.default_rng(0)
    history = rng.normal(size=(300, features)).astype(np.float32)
    new = rng.normal(size=(windows, features)).astype(np.float32)
    model = ensemble.IsolationForest(random_state=0).fit(history)
    forest = flatten(model)
    expected = -model.score_samples(new)
    theirs = median_seconds(lambda: model.score_samples(new), calls=10)
    rows: list[Row] = []
    for tier in tiers:
        off = np.abs(tier.forest_scores(forest, new) - expected).max()
        ours = median_seconds(lambda t=tier: t.forest_scores(forest, new), calls=1000)
        rows.append(
            {
                "what": f"forest, {windows} windows of {features} features, {tier.name}",
                "others us": theirs * 1e6,
                "reveal us": ours * 1e6,
                "times": theirs / ours,
                "largest difference": float(off),
            }
        )
    return rows
