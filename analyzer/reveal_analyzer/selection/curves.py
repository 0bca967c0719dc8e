"""What a threshold costs: the three curves of the paper's Figure 4, and their knee.

*Kept share*: of the metrics that moved.  *Multi-R2*: how much of the variance of those that go is
told by all that stay together (the squared multiple correlation, from the averaged matrix).
*Max |r|*: the correlation of each that goes with the one of those that stay it is closest to.
The last two are means over the metrics that go, then over the workloads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reveal_analyzer.arrays import Floats
from reveal_analyzer.selection.averaged import Workload
from reveal_analyzer.selection.choice import Choice, choose, joined
from reveal_analyzer.selection.priority import orders

THRESHOLDS = tuple(round(0.05 * step, 2) for step in range(1, 20))
_SINGULAR = 1e-6  # of the largest eigenvalue: directions that only rounding, or averaging, makes
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Point:
    """One threshold; ``union`` is the share that stays over all workloads together.

    ``multi_r2`` and ``max_r`` are NaN where nothing goes.
    """

    threshold: float
    kept: float
    union: float
    multi_r2: float
    max_r: float


def curves(
    workloads: Sequence[Workload], thresholds: Sequence[float] = THRESHOLDS
) -> tuple[Point, ...]:
    """A point a threshold; there must be a workload in which something moved."""
    ordered = orders(workloads)
    together = joined(workloads)
    points = []
    for threshold in thresholds:
        chosen = [
            choose(each, those, threshold) for each, those in zip(workloads, ordered, strict=True)
        ]
        goes = together.going(workloads, chosen, threshold)
        share = 1 - len(goes) / len(together.labels)
        points.append(_point(workloads, chosen, threshold, share))
    return tuple(points)


def knee(points: Sequence[Point]) -> float | None:
    """Where the multi-R2 lies farthest above the straight line between the ends of its curve.

    Up to there a higher threshold tells much more of what goes, from there on it only keeps more
    (the rule of Satopaa and others, "Finding a Kneedle in a Haystack", 2011).  Thresholds at which
    nothing goes do not count.  None where the curve is never above the line: it has no knee.
    """
    told = [(point.threshold, point.multi_r2) for point in points if not math.isnan(point.multi_r2)]
    if len(told) < 3 or told[-1][1] <= told[0][1]:
        return None
    x, y = np.array(told).T
    above = (y - y[0]) / (y[-1] - y[0]) - (x - x[0]) / (x[-1] - x[0])
    best = int(np.argmax(above))
    return float(x[best]) if above[best] > _ROUNDING else None


def multi_r2(r: Floats, kept: Sequence[int], dropped: Sequence[int]) -> Floats:
    """Squared multiple correlation of each dropped item with all kept ones, (dropped,).

    That of the least-squares fit with an intercept, where ``r`` is the matrix of one sample.
    A matrix averaged over pairs known in different runs may have negative eigenvalues: its
    smallest ones are left out, and what passes 1 is cut.
    """
    values, vectors = np.linalg.eigh(r[np.ix_(kept, kept)])
    firm = values > _SINGULAR * values[-1]
    onto = vectors[:, firm].T @ r[np.ix_(kept, dropped)]
    told: Floats = np.minimum((onto * onto / values[firm, None]).sum(axis=0), 1.0)
    return told


def _point(
    workloads: Sequence[Workload], chosen: Sequence[Choice], threshold: float, union: float
) -> Point:
    kept = [len(c.kept) / (len(c.kept) + len(c.stands)) for c in chosen if c.kept]
    losses = [_losses(each, c) for each, c in zip(workloads, chosen, strict=True) if c.stands]
    told, closest = np.mean(losses, axis=0) if losses else (np.nan, np.nan)
    return Point(threshold, float(np.mean(kept)), union, float(told), float(closest))


def _losses(workload: Workload, chosen: Choice) -> tuple[float, float]:
    kept, dropped = list(chosen.kept), list(chosen.stands)
    closest = np.abs(workload.r[np.ix_(dropped, kept)]).max(axis=1)
    return float(multi_r2(workload.r, kept, dropped).mean()), float(closest.mean())
