"""The paper's Table 2: do windows of 3, 1.5 and 5 s mark the same time of a workload?

As in its section 4.3 each detector is fitted on the windows of all runs of a workload and flags
what lies over the 99th percentile of their scores; a window that any of the three flags is marked.
Beside each figure stands what chance gives: the second set turned within its run, 200 times.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, median

import numpy as np
from numpy.typing import NDArray

from paperbench.agreement import Agreement, Interval, agreement, merged, turned
from paperbench.traces import Floats, Trace, Traces, moving
from reveal_analyzer.detectors.paper_detectors import DetectorFold
from reveal_analyzer.features.numpy_impl import features
from reveal_analyzer.features.table import columns
from reveal_analyzer.selection.resampler import MetricInstance
from reveal_contract.metric import Lane

SAMPLES_A_SECOND = 10
_QUANTILE = 0.99
_TURNS = 200


@dataclass(frozen=True)
class Setting:
    """Window and stride in seconds."""

    window: float
    stride: float

    def __str__(self) -> str:
        return f"{self.window:g}/{self.stride:g} s"


SETTINGS = (Setting(3, 1), Setting(1.5, 0.5), Setting(5, 2))
PAIRS = ((0, 1), (0, 2), (1, 2))
Marks = list[list[Interval]]  # of each run of a workload


@dataclass(frozen=True)
class Compared:
    """Two settings over all workloads: each one's agreement, and what chance gives."""

    first: Setting
    second: Setting
    found: tuple[Agreement, ...]
    chance: tuple[Agreement, ...]

    def row(self) -> dict[str, str | float]:
        """Mean and median over workloads, with the mean by chance, for a table."""
        row: dict[str, str | float] = {"windows": f"{self.first} vs {self.second}"}
        for name in ("iou", "by_count", "by_length"):
            values = [getattr(each, name) for each in self.found]
            if values:
                row[f"{name} mean"] = round(fmean(values), 3)
                row[f"{name} median"] = round(median(values), 3)
                by_chance = [getattr(each, name) for each in self.chance]
                row[f"{name} by chance"] = round(fmean(by_chance), 3)
        row["workloads"] = len(self.found)
        return row


def compare(traces: Traces) -> tuple[list[Compared], dict[str, dict[str, int]]]:
    """The three pairs of settings, and how many stretches each setting marks of a workload."""
    marked = {
        workload: [marks(traces.items, traces.of(workload), setting) for setting in SETTINGS]
        for workload in traces.workloads
    }
    seconds = traces.samples / SAMPLES_A_SECOND
    counts = {
        workload: {
            str(setting): sum(map(len, each)) for setting, each in zip(SETTINGS, of, strict=True)
        }
        for workload, of in marked.items()
    }
    return [_compared(marked, pair, seconds) for pair in PAIRS], counts


def _compared(marked: dict[str, list[Marks]], pair: tuple[int, int], seconds: float) -> Compared:
    found, chance = [], []
    for of in marked.values():
        first, second = of[pair[0]], of[pair[1]]
        met = agreement(_joined(first, seconds), _joined(second, seconds))
        if met is not None:
            found.append(met)
            chance.append(_by_chance(first, second, seconds))
    return Compared(SETTINGS[pair[0]], SETTINGS[pair[1]], tuple(found), tuple(chance))


def _by_chance(first: Marks, second: Marks, seconds: float) -> Agreement:
    draw = np.random.default_rng(0)
    fixed = _joined(first, seconds)
    met = []
    for _ in range(_TURNS):
        moved = [turned(run, float(draw.uniform(0, seconds)), seconds) for run in second]
        met.append(agreement(fixed, _joined(moved, seconds)))
    known = [each for each in met if each is not None]
    return Agreement(
        fmean(each.iou for each in known),
        fmean(each.by_count for each in known),
        fmean(each.by_length for each in known),
    )


def _joined(runs: Marks, seconds: float) -> list[Interval]:
    """The runs one after the other, a second apart."""
    return [
        (begin + index * (seconds + 1), end + index * (seconds + 1))
        for index, run in enumerate(runs)
        for begin, end in run
    ]


def marks(items: Sequence[MetricInstance], runs: Sequence[Trace], setting: Setting) -> Marks:
    """The merged marked windows of each run."""
    fast = np.array([item.metric.lane is Lane.FAST for item in items])
    chosen = np.flatnonzero(fast & moving(runs))
    mask = columns(
        [items[index].metric.role for index in chosen],
        [items[index].metric.kind for index in chosen],
    )
    vectors, where = [], []
    for number, run in enumerate(runs):
        for begin, window in _windows(run.values[:, chosen], setting):
            vectors.append(_vector(window, mask))
            where.append((number, begin))
    flagged = _flagged(np.array(vectors))
    found: Marks = [[] for _ in runs]
    for (number, begin), flag in zip(where, flagged, strict=True):
        if flag:
            found[number].append((begin, begin + setting.window))
    return [merged(each) for each in found]


def _windows(values: Floats, setting: Setting) -> Iterator[tuple[float, Floats]]:
    """When each window begins, in seconds, and its samples."""
    size = round(setting.window * SAMPLES_A_SECOND)
    for start in range(0, len(values) - size + 1, round(setting.stride * SAMPLES_A_SECOND)):
        yield start / SAMPLES_A_SECOND, np.ascontiguousarray(values[start : start + size])


def _vector(window: Floats, mask: NDArray[np.bool_]) -> Floats:
    """The features that say something about each metric, as one row."""
    return features(window)[mask]


def _flagged(vectors: Floats) -> NDArray[np.bool_]:
    """Whether any of the three detectors, fitted on all windows, puts one in its top per cent."""
    scores = DetectorFold.fit(vectors, random_state=0).scores(vectors)
    limits = np.quantile(scores, _QUANTILE, axis=1)
    return np.asarray((scores > limits[:, None]).any(axis=0))
