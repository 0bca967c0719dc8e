"""Who stays at a threshold: of one workload, and over all of them together.

In a workload a metric stays unless one that is preferred to it and stays itself is correlated
with it beyond the threshold.  So each that goes has one that stands for it directly: there are no
chains, in which the ends have little in common.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reveal_analyzer.arrays import Floats
from reveal_analyzer.selection.averaged import Workload
from reveal_analyzer.selection.file import Basis, Dropped, Kept, Selection
from reveal_analyzer.selection.priority import orders

_DIGITS = 3  # of a correlation that are told


@dataclass(frozen=True)
class Choice:
    """Of one workload: ``kept`` items, and of each that goes the kept one that stands for it.

    Items that stood still are in neither.
    """

    kept: tuple[int, ...]
    stands: dict[int, int]


def choose(workload: Workload, ordered: Sequence[int], threshold: float) -> Choice:
    """Greedily in this order (``priority.orders``); the threshold is exceeded, not met.

    Of those kept the one that is closest stands for a metric that goes.
    """
    strength = np.abs(workload.r)
    kept: list[int] = []
    for at in ordered:
        if strength[at, kept].max(initial=0.0) <= threshold:
            kept.append(at)
    goes = sorted(set(ordered) - set(kept))
    return Choice(tuple(kept), {at: kept[int(np.argmax(strength[at, kept]))] for at in goes})


@dataclass(frozen=True, eq=False)
class Joined:
    """All workloads at once, over the metrics that moved in any.

    ``weakest`` [i, j] is the smallest |r| of i with j in the workloads in which i moved, 0 where
    j did not move there; ``mean`` [i, j] their mean r in those in which both moved.
    """

    labels: tuple[str, ...]
    weakest: Floats
    mean: Floats

    def going(
        self, workloads: Sequence[Workload], choices: Sequence[Choice], threshold: float
    ) -> dict[int, int]:
        """Who goes, by whom: kept by no workload, and told by one metric in every one."""
        at = {label: place for place, label in enumerate(self.labels)}
        wanted = {
            at[each.items[place].label]
            for each, choice in zip(workloads, choices, strict=True)
            for place in choice.kept
        }
        kept = sorted(wanted)
        found = {}
        for place in range(len(self.labels)):
            told = self.weakest[place, kept]
            if place not in wanted and told.max(initial=0.0) > threshold:
                found[place] = kept[int(np.argmax(told))]
        return found


def joined(workloads: Sequence[Workload]) -> Joined:
    """What the workloads have in common."""
    labels = sorted(
        {each.items[at].label for each in workloads for at in np.flatnonzero(each.moved)}
    )
    at = {label: place for place, label in enumerate(labels)}
    weakest = np.full((len(labels), len(labels)), np.inf)
    total, count = np.zeros_like(weakest), np.zeros_like(weakest)
    for each in workloads:
        moved = np.flatnonzero(each.moved)
        places = np.array([at[each.items[place].label] for place in moved], np.intp)
        here = np.zeros((len(moved), len(labels)))
        here[:, places] = each.r[np.ix_(moved, moved)]
        weakest[places] = np.minimum(weakest[places], np.abs(here))
        total[places] += here
        count[np.ix_(places, places)] += 1
    return Joined(tuple(labels), weakest, total / np.maximum(count, 1))


def select(workloads: Sequence[Workload], threshold: float) -> Selection:
    """What is kept over all workloads, with its reasons, and who stands for the others.

    It is the union of what the workloads keep (the paper's diagnostic space) and of what no one
    metric tells in all of them.  What stood still in all of them stays, as nothing is known of
    what it would move with.
    """
    choices = [
        choose(each, those, threshold)
        for each, those in zip(workloads, orders(workloads), strict=True)
    ]
    together = joined(workloads)
    goes = together.going(workloads, choices, threshold)
    labels = together.labels
    spoken_for = Counter(goes.values())
    dropped = [
        Dropped(labels[at], labels[by], round(float(together.mean[at, by]), _DIGITS))
        for at, by in goes.items()
    ]
    kept = [
        Kept(label, _reason(together, at, spoken_for[at]))
        for at, label in enumerate(labels)
        if at not in goes
    ]
    every = {item.label for each in workloads for item in each.items}
    still = "stood still: nothing can stand for it"
    kept += [Kept(label, still) for label in every.difference(labels)]
    return Selection(
        threshold=threshold,
        kept=tuple(sorted(kept, key=lambda one: one.metric)),
        dropped=tuple(dropped),
        workloads=tuple(Basis(each.name, each.runs, each.rows) for each in workloads),
    )


def _reason(together: Joined, at: int, spoken_for: int) -> str:
    if spoken_for:
        return f"stands for {spoken_for} other{'s' if spoken_for > 1 else ''}"
    others = np.delete(together.weakest[at], at)
    closest = float(others.max(initial=0.0))
    return f"stands for itself; closest in every workload |r| {closest:.2f}"
