"""What is measured: Reveal's modes, and what scikit-learn offers, behind one call.

Each is asked for scores of a table, trained on another held to be healthy, and for rankings of
spans of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from sklearn.decomposition import PCA
from sklearn.ensemble import IsolationForest
from sklearn.preprocessing import StandardScaler

from detectionbench.metrics import Bools, Floats, Span
from reveal_analyzer.tables.scoring import api
from reveal_analyzer.tables.scoring.api import Table

_QUANTILE = 0.99  # of training, the threshold of those that know none of their own


@dataclass(frozen=True)
class Judged:
    """Scores of a table (n,), those over the detector's own threshold, and ranked metrics.

    ``rankings`` are columns, the likeliest cause first, one for each span asked about.
    """

    score: Floats
    flags: Bools
    rankings: list[list[int]]


class Detector(Protocol):
    """Learns from ``train``, which may hold anything, and judges ``table``."""

    def judge(self, train: Table, table: Table, spans: Sequence[Span]) -> Judged: ...


@dataclass(frozen=True)
class Reveal:
    """A mode of the public interface; ``trained`` hands it the training data as baseline."""

    mode: str
    trained: bool = False

    def judge(self, train: Table, table: Table, spans: Sequence[Span]) -> Judged:
        baseline = train if self.trained else None
        scores = api.score(table, self.mode, baseline)
        positions = {name: index for index, name in enumerate(table.names)}
        ranked = api.rank_spans(table, spans, baseline)
        rankings = [[positions[each.name] for each in ranking] for ranking in ranked]
        return Judged(scores.score, scores.anomalous, rankings)


@dataclass(frozen=True)
class Forest:
    """scikit-learn's Isolation Forest on standardised samples; metrics ranked by mean |z|."""

    def judge(self, train: Table, table: Table, spans: Sequence[Span]) -> Judged:
        scaler = StandardScaler().fit(train.values)
        known, new = scaler.transform(train.values), scaler.transform(table.values)
        forest = IsolationForest(random_state=0).fit(known)
        each = (-forest.score_samples(x) for x in (known, new))
        return _over_training(*each, np.abs(new), spans)


@dataclass(frozen=True)
class Residual:
    """What ten principal components leave of standardised samples; metrics ranked by their part."""

    components: int = 10

    def judge(self, train: Table, table: Table, spans: Sequence[Span]) -> Judged:
        scaler = StandardScaler().fit(train.values)
        known, new = scaler.transform(train.values), scaler.transform(table.values)
        count = min(self.components, known.shape[1] - 1)
        pca = PCA(count, svd_solver="full").fit(known)
        left = [np.abs(x - pca.inverse_transform(pca.transform(x))) for x in (known, new)]
        each = (np.sqrt((x * x).mean(1)) for x in left)
        return _over_training(*each, left[1], spans)


def _over_training(known: Floats, new: Floats, parts: Floats, spans: Sequence[Span]) -> Judged:
    """Scores as multiples of training's 99th percentile, so that machines compare."""
    limit = float(np.quantile(known, _QUANTILE))
    score = new / max(limit, np.finfo(np.float64).tiny)
    shares = [parts[first:end].mean(0) for first, end in spans]
    rankings = [np.argsort(-share, kind="stable").tolist() for share in shares]
    return Judged(score, score > 1.0, rankings)


DETECTORS: dict[str, Detector] = {
    "reveal report": Reveal("report"),
    "reveal report, baseline": Reveal("report", trained=True),
    "reveal online": Reveal("online", trained=True),
    "paper, on the run": Reveal("paper"),
    "paper, trained": Reveal("paper", trained=True),
    "Isolation Forest": Forest(),
    "PCA residual": Residual(),
}
