"""The cost of a threshold: the three curves of the paper's Figure 4, and their knee.

*Kept share*: of the metrics that moved.  *Multi-R2*: how much of the variance of dropped metrics
all kept ones together explain (the squared multiple correlation, from the averaged matrix).  *Max
|r|*: the highest correlation of a dropped metric with a kept one.  The last two are means over the
dropped metrics, then over the workloads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reveal_analyzer.arrays import Floats
from reveal_analyzer.selection.choice import WorkloadChoice, choose, combine
from reveal_analyzer.selection.priority import preference_orders
from reveal_analyzer.selection.workload import WorkloadCorrelation

THRESHOLDS = tuple(round(0.05 * step, 2) for step in range(1, 20))
_SINGULAR = 1e-6  # of the largest eigenvalue: smaller ones come from rounding or averaging
_ROUNDING = 1e-9


@dataclass(frozen=True)
class ThresholdPoint:
    """One threshold; ``union`` is the share that is kept over all workloads together.

    ``multi_r2`` and ``max_r`` are NaN if nothing is dropped.
    """

    threshold: float
    kept: float
    union: float
    multi_r2: float
    max_r: float


def curves(
    workloads: Sequence[WorkloadCorrelation], thresholds: Sequence[float] = THRESHOLDS
) -> tuple[ThresholdPoint, ...]:
    """Return one point per threshold; something must have moved in at least one workload."""
    ordered = preference_orders(workloads)
    together = combine(workloads)
    points = []
    for threshold in thresholds:
        choices = [
            choose(each, those, threshold) for each, those in zip(workloads, ordered, strict=True)
        ]
        dropped = together.dropped(workloads, choices, threshold)
        share = 1 - len(dropped) / len(together.labels)
        points.append(_point(workloads, choices, threshold, share))
    return tuple(points)


def knee(points: Sequence[ThresholdPoint]) -> float | None:
    """Return the threshold at which multi-R2 is farthest above the line between its ends.

    Up to the knee a higher threshold explains much more of what is dropped; beyond, it only keeps
    more (the rule of Satopaa and others, "Finding a Kneedle in a Haystack", 2011).  Thresholds that
    drop nothing do not count.  None if the curve is never above the line.
    """
    known = [
        (point.threshold, point.multi_r2) for point in points if not math.isnan(point.multi_r2)
    ]
    if len(known) < 3 or known[-1][1] <= known[0][1]:
        return None
    x, y = np.array(known).T
    above = (y - y[0]) / (y[-1] - y[0]) - (x - x[0]) / (x[-1] - x[0])
    best = int(np.argmax(above))
    return float(x[best]) if above[best] > _ROUNDING else None


def multi_r2(r: Floats, kept: Sequence[int], dropped: Sequence[int]) -> Floats:
    """Return the squared multiple correlation of each dropped item with all kept ones, (dropped,).

    It is that of a least-squares fit with an intercept if ``r`` is the matrix of one sample.  A
    matrix averaged over pairs known in different runs may have negative eigenvalues: its smallest
    ones are left out, and results above 1 are clipped.
    """
    values, vectors = np.linalg.eigh(r[np.ix_(kept, kept)])
    firm = values > _SINGULAR * values[-1]
    onto = vectors[:, firm].T @ r[np.ix_(kept, dropped)]
    explained: Floats = np.minimum((onto * onto / values[firm, None]).sum(axis=0), 1.0)
    return explained


def _point(
    workloads: Sequence[WorkloadCorrelation],
    choices: Sequence[WorkloadChoice],
    threshold: float,
    union: float,
) -> ThresholdPoint:
    kept = [len(c.kept) / (len(c.kept) + len(c.represented_by)) for c in choices if c.kept]
    losses = [
        _losses(each, c) for each, c in zip(workloads, choices, strict=True) if c.represented_by
    ]
    explained, closest = np.mean(losses, axis=0) if losses else (np.nan, np.nan)
    return ThresholdPoint(threshold, float(np.mean(kept)), union, float(explained), float(closest))


def _losses(workload: WorkloadCorrelation, choice: WorkloadChoice) -> tuple[float, float]:
    kept, dropped = list(choice.kept), list(choice.represented_by)
    closest = np.abs(workload.r[np.ix_(dropped, kept)]).max(axis=1)
    return float(multi_r2(workload.r, kept, dropped).mean()), float(closest.mean())
