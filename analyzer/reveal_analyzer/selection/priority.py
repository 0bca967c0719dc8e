"""Priority of metrics: of equivalent metrics the preferred one is kept.

All criteria are in the catalogue, so the order is the same on every host:

1. metrics of the whole host before those of a device, and those before metrics of one CPU or
   interrupt: one well-known number instead of many;
2. metrics that are read before derived ones: the kernel's own tools can confirm them;
3. metrics of harm (waiting, losses, retries) before metrics of activity: findings rest on them;
4. metrics that are read every tick before those read every one or ten seconds: a fast metric can
   replace a slow one, but not the reverse;
5. of equals, the metric whose correlations with the others vary most, as mean over workloads (the
   paper's "variance of correlation"): it describes some others well; then by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

import numpy as np

from reveal_analyzer.selection.resampler import MetricInstance
from reveal_analyzer.selection.workload import WorkloadCorrelation
from reveal_contract.metric import Harm, Lane, Scope

_PARTS = {Scope.NODE: 0, Scope.CPU: 2, Scope.IRQ: 2}
_LANES = {Lane.FAST: 0, Lane.DERIVED: 0, Lane.SLOW: 1, Lane.RARE: 2}

Rank = tuple[int, bool, bool, int]


def rank(item: MetricInstance) -> Rank:
    """Return the priority of an item by the catalogue; lower is preferred."""
    metric = item.metric
    return (
        _PARTS.get(metric.scope, 1) if item.instance else 0,
        metric.lane is Lane.DERIVED,
        metric.harm is Harm.NEITHER,
        _LANES[metric.lane],
    )


def preference_orders(workloads: Sequence[WorkloadCorrelation]) -> list[list[int]]:
    """Return the items of each workload that moved, preferred ones first.

    The order is the same for all workloads: if near-equals were preferred in different orders, both
    would be kept.
    """
    spreads: dict[str, list[float]] = {}
    for each in workloads:
        for item in np.flatnonzero(each.moved):
            spreads.setdefault(each.items[item].label, []).append(float(each.spread[item]))

    def key(item: MetricInstance) -> tuple[Rank, float, str]:
        return rank(item), -round(fmean(spreads[item.label]), 9), item.label

    return [
        sorted(np.flatnonzero(each.moved).tolist(), key=lambda item: key(each.items[item]))
        for each in workloads
    ]
