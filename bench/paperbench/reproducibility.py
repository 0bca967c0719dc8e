"""The paper's reproducibility test: is a run nearer to its own workload's median trace?

For each metric and workload, each run's DTW distance to the median trace of its own workload is
paired with its distance to that of each other one, and a one-sided Wilcoxon signed-rank test asks
whether the own is smaller.  A median trace is made of the other runs only (of the other workloads,
too, the run of the same number is left out, so that all medians are of equally many).  The paper
does not say what its distances are compared with; this is our reading.

The pairs of a run share its distance to its own, so a test's p is too small by an unknown amount:
``nearest``, the share of runs whose own median is the nearest of all, needs no test.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean

import numpy as np
from scipy.stats import wilcoxon

from paperbench.dtw import distances
from paperbench.traces import Floats, Traces, TracesError, moving

SIGNIFICANT = 0.05
_BAND = 0.1  # of a trace's length
_CHUNK = 512  # series compared at a time: they stay in the cache


@dataclass(frozen=True)
class Tested:
    """One workload: its metrics that moved, how many are significant, and the runs' nearest.

    ``chance`` is what ``nearest`` would be if medians were drawn by lot.
    """

    workload: str
    metrics: int
    significant: int
    nearest: float
    chance: float
    not_compared: tuple[str, ...]

    def row(self) -> dict[str, str | float]:
        return {
            "workload": self.workload,
            "metrics": self.metrics,
            "significant": self.significant,
            "share": round(self.significant / max(self.metrics, 1), 4),
            "own median nearest": round(self.nearest, 3),
            "by chance": round(self.chance, 3),
        }


def judge(traces: Traces) -> list[Tested]:
    """Every workload over the metrics that moved in all its runs; raises ``TracesError``."""
    if any(len(traces.of(workload)) < 2 for workload in traces.workloads):
        raise TracesError("a median trace of the other runs takes two runs of each workload")
    medians = _medians(traces)
    return [_tested(traces, medians, workload) for workload in traces.workloads]


def _medians(traces: Traces) -> dict[tuple[str, int], Floats]:
    """By workload and the number of the run left out."""
    medians = {}
    for workload in traces.workloads:
        runs = traces.of(workload)
        for number in {run.number for run in traces.runs}:
            others = [run.values for run in runs if run.number != number]
            medians[workload, number] = np.median(others, axis=0)
    return medians


def _tested(traces: Traces, medians: dict[tuple[str, int], Floats], workload: str) -> Tested:
    runs = traces.of(workload)
    chosen = np.flatnonzero(moving(runs))
    band = round(_BAND * traces.samples)
    # (runs, workloads, metrics), the own workload first
    order = [workload, *(each for each in traces.workloads if each != workload)]
    far = np.array(
        [
            [_far(run.values[:, chosen], medians[each, run.number][:, chosen], band)
             for each in order]
            for run in runs
        ]
    )  # fmt: skip
    known = ~np.isnan(far).any(axis=(0, 1))
    closer = far[:, :1] - far[:, 1:]
    p = [_p(closer[:, :, index]) for index in np.flatnonzero(known)]
    labels = [traces.items[index].label for index in chosen[known]]
    return Tested(
        workload=workload,
        metrics=len(p),
        significant=sum(each < SIGNIFICANT for each in p),
        nearest=fmean((far[:, 0] < far[:, 1:].min(axis=1))[:, known].ravel().tolist()),
        chance=1 / len(order),
        not_compared=tuple(
            label for label, each in zip(labels, p, strict=True) if not each < SIGNIFICANT
        ),
    )


def _far(left: Floats, other: Floats, band: int) -> Floats:
    """DTW distances, metric by metric; NaN where the other workload's was not read."""
    parts = [
        distances(left[:, index : index + _CHUNK], other[:, index : index + _CHUNK], band)
        for index in range(0, left.shape[1], _CHUNK)
    ]
    return np.concatenate(parts) if parts else np.zeros(0)


def _p(closer: Floats) -> float:
    """Of the hypothesis that the own is no closer; 1 where no pair differs."""
    differences = closer.ravel()
    if not differences.any():
        return 1.0
    return float(wilcoxon(differences, alternative="less").pvalue)
