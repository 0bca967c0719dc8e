"""Who stands for whom: the order in which metrics that say the same are preferred.

All of it is in the catalogue, so the order is the same on every host and can be looked up:

1. what is of the whole host before what is of a device, and that before what is of one CPU or
   interrupt: one number that people know instead of many;
2. what is read before what is derived: it can be checked against the kernel's own tools;
3. what hurts (waiting, losses, retries) before what is mere activity: findings rest on it;
4. what is read every tick before what is read each second or each ten: what costs more to read
   is read less often, and the faster one can tell what the slower one did, not the reverse;
5. equals: the one whose correlations with the others vary most, mean over workloads (the paper's
   "variance of correlation"): it tells much of some; then by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

import numpy as np

from reveal_analyzer.selection.averaged import Workload
from reveal_analyzer.selection.resampled import Item
from reveal_contract.metric import Harm, Lane, Scope

_PARTS = {Scope.NODE: 0, Scope.CPU: 2, Scope.IRQ: 2}
_LANES = {Lane.FAST: 0, Lane.DERIVED: 0, Lane.SLOW: 1, Lane.RARE: 2}

Rank = tuple[int, bool, bool, int]


def rank(item: Item) -> Rank:
    """What the catalogue says of an item's priority; lower is preferred."""
    metric = item.metric
    return (
        _PARTS.get(metric.scope, 1) if item.instance else 0,
        metric.lane is Lane.DERIVED,
        metric.harm is Harm.NEITHER,
        _LANES[metric.lane],
    )


def orders(workloads: Sequence[Workload]) -> list[list[int]]:
    """Of each workload the items that moved, the preferred ones first.

    It is one order for all: were near-equals preferred now this way, now that, both would stay.
    """
    spreads: dict[str, list[float]] = {}
    for each in workloads:
        for at in np.flatnonzero(each.moved):
            spreads.setdefault(each.items[at].label, []).append(float(each.spread[at]))

    def key(item: Item) -> tuple[Rank, float, str]:
        return rank(item), -round(fmean(spreads[item.label]), 9), item.label

    return [
        sorted(np.flatnonzero(each.moved).tolist(), key=lambda at: key(each.items[at]))
        for each in workloads
    ]
