"""Choice of metrics at a correlation threshold, for one workload and for all together.

In a workload a metric is kept unless its correlation with a preferred, kept metric exceeds the
threshold.  So each dropped metric is represented directly by a kept one.  There are no chains,
whose ends would have little in common.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reveal_analyzer.arrays import Floats
from reveal_analyzer.selection.file import DroppedMetric, KeptMetric, Selection, WorkloadSummary
from reveal_analyzer.selection.priority import preference_orders
from reveal_analyzer.selection.workload import WorkloadCorrelation

_DIGITS = 3  # of a correlation in the file


@dataclass(frozen=True)
class WorkloadChoice:
    """For one workload the ``kept`` items, and the kept item that represents each dropped one.

    Constant items are in neither.
    """

    kept: tuple[int, ...]
    represented_by: dict[int, int]


def choose(
    workload: WorkloadCorrelation, ordered: Sequence[int], threshold: float
) -> WorkloadChoice:
    """Choose greedily in this order: drop what correlates beyond the threshold with a kept item.

    A dropped metric is represented by the kept one with the highest correlation.
    """
    strength = np.abs(workload.r)
    kept: list[int] = []
    for item in ordered:
        if strength[item, kept].max(initial=0.0) <= threshold:
            kept.append(item)
    dropped = sorted(set(ordered) - set(kept))
    return WorkloadChoice(
        tuple(kept), {item: kept[int(np.argmax(strength[item, kept]))] for item in dropped}
    )


@dataclass(frozen=True, eq=False)
class CombinedWorkloads:
    """All workloads together, over the metrics that moved in any.

    ``weakest`` [i, j] is the smallest |r| of i with j in the workloads in which i moved, 0 if j did
    not move there; ``mean`` [i, j] is their mean r in those in which both moved.
    """

    labels: tuple[str, ...]
    weakest: Floats
    mean: Floats

    def dropped(
        self,
        workloads: Sequence[WorkloadCorrelation],
        choices: Sequence[WorkloadChoice],
        threshold: float,
    ) -> dict[int, int]:
        """Return dropped metrics and their representatives.

        A metric is dropped if no workload keeps it and one kept metric represents it in every
        workload.
        """
        index_of = {label: index for index, label in enumerate(self.labels)}
        kept_somewhere = {
            index_of[each.items[index].label]
            for each, choice in zip(workloads, choices, strict=True)
            for index in choice.kept
        }
        kept = sorted(kept_somewhere)
        found = {}
        for index in range(len(self.labels)):
            strength = self.weakest[index, kept]
            if index not in kept_somewhere and strength.max(initial=0.0) > threshold:
                found[index] = kept[int(np.argmax(strength))]
        return found


def combine(workloads: Sequence[WorkloadCorrelation]) -> CombinedWorkloads:
    """Return what the workloads have in common."""
    labels = sorted(
        {
            each.items[index_of].label
            for each in workloads
            for index_of in np.flatnonzero(each.moved)
        }
    )
    index_of = {label: index for index, label in enumerate(labels)}
    weakest = np.full((len(labels), len(labels)), np.inf)
    total, count = np.zeros_like(weakest), np.zeros_like(weakest)
    for each in workloads:
        moved = np.flatnonzero(each.moved)
        indices = np.array([index_of[each.items[index].label] for index in moved], np.intp)
        here = np.zeros((len(moved), len(labels)))
        here[:, indices] = each.r[np.ix_(moved, moved)]
        weakest[indices] = np.minimum(weakest[indices], np.abs(here))
        total[indices] += here
        count[np.ix_(indices, indices)] += 1
    return CombinedWorkloads(tuple(labels), weakest, total / np.maximum(count, 1))


def select(workloads: Sequence[WorkloadCorrelation], threshold: float) -> Selection:
    """Return the metrics to keep over all workloads, and representatives of the others.

    Kept is the union of what the workloads keep (the paper's diagnostic space) and of metrics that
    no single metric represents in all workloads.  A metric that is constant in all workloads is
    kept, as nothing is known about its correlations.
    """
    choices = [
        choose(each, those, threshold)
        for each, those in zip(workloads, preference_orders(workloads), strict=True)
    ]
    combined = combine(workloads)
    representative_of = combined.dropped(workloads, choices, threshold)
    labels = combined.labels
    represented = Counter(representative_of.values())
    dropped = [
        DroppedMetric(labels[index], labels[by], round(float(combined.mean[index, by]), _DIGITS))
        for index, by in representative_of.items()
    ]
    kept = [
        KeptMetric(label, _reason(combined, index, represented[index]))
        for index, label in enumerate(labels)
        if index not in representative_of
    ]
    every = {item.label for each in workloads for item in each.items}
    still = "constant: no other metric can represent it"
    kept += [KeptMetric(label, still) for label in every.difference(labels)]
    return Selection(
        threshold=threshold,
        kept=tuple(sorted(kept, key=lambda metric: metric.metric)),
        dropped=tuple(dropped),
        workloads=tuple(WorkloadSummary(each.name, each.runs, each.rows) for each in workloads),
    )


def _reason(combined: CombinedWorkloads, index: int, represented: int) -> str:
    if represented:
        return f"represents {represented} other{'s' if represented > 1 else ''}"
    others = np.delete(combined.weakest[index], index)
    closest = float(others.max(initial=0.0))
    return f"represents itself; |r| of the closest metric is {closest:.2f}"
