"""Scores of the seconds of a recording, each against a sample of all others."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.arrays import Floats, Floats32
from reveal_analyzer.derive.columns import ColumnPlan
from reveal_analyzer.derive.deriver import Second, is_gap
from reveal_analyzer.episodes.trace import ObservedSecond
from reveal_analyzer.live.ranges import Ranges
from reveal_analyzer.live.scaling import ColumnScaling, by_subsystem
from reveal_analyzer.live.settings import LiveSettings
from reveal_analyzer.live.thresholds import threshold
from reveal_analyzer.live.views import SustainedViews
from reveal_analyzer.offline.sample import Alignment, SecondsSample
from reveal_analyzer.selection.applied import AppliedSelection
from reveal_contract.metric import Subsystem

MARGIN = 20  # seconds on either side of a second that are not in its reference
_BLOCK = 5  # sampled seconds that share a reference, with those between them
_OWN_PERCENTILE = 90  # percentile that is the own level of a column and of a subsystem

SubsystemScores = dict[Subsystem, float]


class RecordingScores:
    """Scores of a recording: what is normal is learned from a sample of its seconds.

    ``score`` then takes the seconds of the recording, in order.
    """

    def __init__(
        self,
        sample: SecondsSample,
        last: Second,
        settings: LiveSettings,
        selection: AppliedSelection,
    ) -> None:
        self._sample, self._settings = sample, settings
        self._scaled = _ScaledColumns(last, settings, selection)
        self._scaled.learn_levels(sample)
        self._reference = _Reference(sample, self._scaled.sampled_views(sample), settings)
        excess = self._reference.sampled_excess()
        self._own = np.maximum(np.percentile(excess, _OWN_PERCENTILE, axis=0), 1.0)
        self._sampled_excess = excess
        pooled = [self._scaled.pooled(row / self._own)[1] for row in excess]
        self._thresholds = _thresholds(pooled, settings)
        self._views = _RunningViews(settings)
        self._index = 0

    def score(self, second: Second) -> tuple[SubsystemScores, ObservedSecond]:
        """Return score / threshold of the next second by subsystem, and what was observed."""
        index, self._index = self._index, self._index + 1
        values = self._scaled.align(second)
        excess = self._excess(index, second.start_ns, values) / self._own
        weighted, scores = self._scaled.pooled(excess)
        over = {s: score / self._thresholds[s] for s, score in scores.items()}
        plan, baseline = self._scaled.plan, self._scaled.baseline
        return over, ObservedSecond(second.start_ns, plan, values, excess, weighted, baseline)

    def _excess(self, index: int, start_ns: int, values: Floats) -> Floats:
        if self._sample.step > 1:  # else all are sampled
            views = self._views.push(index, start_ns, self._scaled.filled(values))
            if not self._sample.has(index):
                return self._reference.excess(index, views)
        sampled: Floats = self._sampled_excess[index // self._sample.step]
        return sampled


class _ScaledColumns:
    """The columns of the last second of a recording, scaled as in the live score."""

    def __init__(self, last: Second, settings: LiveSettings, selection: AppliedSelection) -> None:
        self.plan: ColumnPlan = last.plan
        self._settings, self._selection = settings, selection
        self._scaling = ColumnScaling(last, settings)
        self._alignment = Alignment(last.plan.labels)
        self._levels: Floats = np.zeros(0)
        self.baseline: Floats = np.zeros(0)

    def learn_levels(self, sample: SecondsSample) -> None:
        """Learn the level of each column, which stands for values that are missing."""
        rows = [
            self._alignment.align(second.labels, second.values)
            for index, second in sample.kept()
            if sample.has(index)
        ]
        self._levels = _medians(self._scaling.scale(np.array(rows)))
        self.baseline = self._scaling.base_units(self._levels)

    def align(self, second: Second) -> Floats:
        """Return the values of a second in these columns, in base units."""
        return self._alignment.align(second.plan.labels, second.values)

    def filled(self, values: Floats) -> Floats:
        """Return scaled values, those that are missing at the level of their column."""
        scaled = self._scaling.scale(values)
        known = np.where(np.isnan(scaled), self._levels, scaled)
        return np.nan_to_num(self._selection.scorable(self.plan.columns, known))

    def sampled_views(self, sample: SecondsSample) -> Floats32:
        """Return the views of the seconds of a sample: (seconds, views, 2, columns)."""
        views, rows = _RunningViews(self._settings), []
        for index, second in sample.kept():
            values = self._alignment.align(second.labels, second.values)
            row = views.push(index, second.start_ns, self.filled(values))
            if sample.has(index):
                rows.append(row)
        return np.array(rows)

    def pooled(self, excess: NDArray[Any]) -> tuple[Floats | Floats32, SubsystemScores]:
        """Return the weighted excess of one second, and the scores of the subsystems."""
        weighted = self._scaling.weigh(excess)
        return weighted, self._scaling.scores(weighted)


class _RunningViews:
    """Sustained views from second to second, which start again after a gap."""

    def __init__(self, settings: LiveSettings) -> None:
        self._views = SustainedViews(settings.views)
        self._before: tuple[int, int] | None = None

    def push(self, index: int, start_ns: int, values: Floats) -> Floats32:
        before, self._before = self._before, (index, start_ns)
        if before and (index != before[0] + 1 or is_gap(before[1], start_ns)):
            self._views.reset()
        return self._views.push(values)


class _Reference:
    """Ranges of the sampled seconds but those near the second that is compared with them."""

    def __init__(self, sample: SecondsSample, views: Floats32, settings: LiveSettings) -> None:
        self._indices, self._count = sample.indices, sample.count
        self._block = _BLOCK * sample.step
        self._views, self._settings = views, settings
        self._of: tuple[int, int] | None = None
        self._ranges: Ranges | None = None

    def excess(self, index: int, views: Floats32) -> Floats:
        """Return the distance of a second outside its ranges, (2, columns)."""
        return self._ranges_near(index).excess(views).astype(np.float64)

    def sampled_excess(self) -> Floats:
        """Return the distances of all sampled seconds: (seconds, 2, columns)."""
        pairs = zip(self._indices.tolist(), self._views, strict=True)
        return np.array([self.excess(index, views) for index, views in pairs])

    def _ranges_near(self, index: int) -> Ranges:
        """Return the ranges without the seconds near ``index``; the last ones are kept."""
        begin = index - index % self._block
        near = (begin - MARGIN, min(begin + self._block, self._count) + MARGIN)
        first, end = np.searchsorted(self._indices, near).tolist()
        if self._ranges is None or self._of != (first, end):
            others = np.concatenate([self._views[:first], self._views[end:]])
            self._of, self._ranges = (first, end), Ranges.of(others, self._settings)
        return self._ranges


def _medians(values: Floats) -> Floats:
    """Return the median of each column over the seconds in which it was read; 0 without any."""
    if not np.isnan(values).any():
        return np.asarray(np.median(values, axis=0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a column without any value
        return np.nan_to_num(np.nanmedian(values, axis=0))


def _thresholds(pooled: Sequence[SubsystemScores], settings: LiveSettings) -> SubsystemScores:
    """Return the threshold of each subsystem; the recording's own level is the healthy one."""
    healthy = [np.percentile([scores[s] for scores in pooled], _OWN_PERCENTILE) for s in Subsystem]
    return by_subsystem(threshold(np.array(healthy, np.float64), settings))
