"""Isolation Forest from flat arrays beside scikit-learn's score_samples: same trees, one core."""

import numpy as np
from sklearn import ensemble

from report import Row, median_seconds, one_core, report
from reveal_analyzer.detectors.isolation_forest import IsolationForest, flatten


def compare(width: int, batch: int) -> Row:
    rng = np.random.default_rng(0)
    past = rng.normal(size=(300, width)).astype(np.float32)
    new = rng.normal(size=(batch, width)).astype(np.float32)
    model = ensemble.IsolationForest(random_state=0).fit(past)
    detector = IsolationForest()
    detector.forest_ = flatten(model)
    off = np.abs(detector.score_scaled(new) + model.score_samples(new)).max()
    theirs = median_seconds(lambda: model.score_samples(new), calls=10)
    ours = median_seconds(lambda: detector.score_scaled(new), calls=200)
    return {
        "windows": batch,
        "features": width,
        "scikit-learn us": theirs * 1e6,
        "reveal us": ours * 1e6,
        "times": theirs / ours,
        "largest difference": float(off),
    }


def main() -> None:
    one_core()
    rows = [compare(width, batch) for width in (1800, 4800, 13200) for batch in (1, 16, 256)]
    report("forest", rows, goal="one window: 90 times scikit-learn, scores within 1e-7")


if __name__ == "__main__":
    main()
