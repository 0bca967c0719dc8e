"""Offline mode of tables: a run is scored against itself after it is over.

That of recordings is ``offline.judgement``.

Every sample has five views, each fitted on the run (and the baseline, if there is one): the
distance of its metrics from their normal level, from a one-step forecast, and the Mahalanobis
distance of the windows over it, of three sizes.  Each counts in multiples of its own median, on the
baseline or else on the run, so in a run in which nothing stands out nothing exceeds the threshold.

A run that is its own reference shows that a metric deviates, but hardly by how much, as its faults
are part of the reference.  Without a baseline a distance is therefore capped at ten spreads, and
the score depends on how many metrics deviate and for how long.  Levels that no healthy host shows
are reported whatever the other views are: a level ten times its normal one, or several metrics that
far off in a single sample.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from reveal_analyzer.arrays import Floats
from reveal_analyzer.tables.scoring.forecast import Forecast
from reveal_analyzer.tables.scoring.frames import (
    FEATURES_A_METRIC,
    Frames,
    shape_features,
    window_features,
)
from reveal_analyzer.tables.scoring.rows import METRICS, TableRows
from reveal_analyzer.tables.scoring.scales import CAP, least_spread, robust_scale
from reveal_analyzer.tables.scoring.season import learn_level
from reveal_analyzer.tables.scoring.settings import SampleSettings
from reveal_analyzer.tables.scoring.smooth import WorstMetrics, centered_mean
from reveal_analyzer.tables.scoring.views import (
    MIN_WINDOWS,
    ViewScores,
    combine_views,
    learn_distance,
    normal_level,
    squared_distances,
    window_name,
)

THRESHOLD = 2.9  # multiples of a view's normal level; measured on labeled minute data
THRESHOLD_WITH_BASELINE = 3.3  # with uncapped distances
LEAST_ROWS = 30  # of run and baseline: fewer have no normal level
LAGS = 3  # samples that a forecast uses
LEVEL_MEAN = 5  # samples
FORECAST_MEAN = 3

_FRAMES = ((10, 5), (30, 10), (60, 20))
# with a baseline: a fault that lasts all of the run shows in little but the level
_LEVEL_BESIDE_BASELINE = 1.5
_CERTAIN_MULTIPLE = 10.0  # multiple of the normal level that exceeds the threshold by itself
_COUNTED = 10.0  # cap in spreads where the run is its own reference
_MOSTLY = 0.95  # share of samples whose distance is normal for a single one
_SEVERAL = 2  # least number of metrics in such a sample
_LEAST_OUT = 2.0  # spreads: in many runs nothing moves most of the time
_WINDOWS_A_FEATURE = 1  # with fewer, all windows have about the same distance


def judge(rows: TableRows, settings: SampleSettings) -> tuple[ViewScores, Floats]:
    """Return each view of the table's samples as multiples of its normal level, and the score."""
    all_frames = [Frames(size, stride, rows.since) for size, stride in settings.frames(_FRAMES)]
    frames = [each for each in all_frames if np.count_nonzero(each.whole) >= MIN_WINDOWS]
    found, raw = _views(rows, frames)
    weights = {"Level": _LEVEL_BESIDE_BASELINE if rows.baseline_rows else 1.0}
    for each in frames:
        weights[window_name(each.size)] = _weight(each, len(rows.table.names))
    multiples = {name: _multiples(values, rows.baseline_rows) for name, values in found.items()}
    times = raw.over(rows.baseline_rows) / _CERTAIN_MULTIPLE
    threshold = THRESHOLD_WITH_BASELINE if rows.baseline_rows else THRESHOLD
    alone = np.where(times >= 1.0, times * threshold, 0.0)
    return multiples, np.maximum(combine_views(multiples, weights), alone)


def _views(rows: TableRows, frames: list[Frames]) -> tuple[ViewScores, _RawDistances]:
    """Return the views of baseline and table (n,), and the raw distances from the level."""
    level, forecast = (WorstMetrics(len(rows.table.names)) for _ in range(2))
    raw = _RawDistances.of(len(rows.table.names))
    most = CAP if rows.baseline_rows else _COUNTED
    squares = [np.zeros(len(each.starts)) for each in frames]
    for values in rows.blocks():
        off = _off_level(rows, values)
        raw.add(off)
        level.add(centered_mean(np.minimum(off, most), LEVEL_MEAN))
        residual = Forecast(LAGS).fit(values, rows.since).residual(values, rows.since)
        forecast.add(centered_mean(np.minimum(residual, most), FORECAST_MEAN))
        scaled = robust_scale(values).in_spreads(values)
        for index, each in enumerate(frames):
            features = window_features(scaled, each, shape_features)
            squares[index] += squared_distances(learn_distance(features), features)
    found = {"Level": level.mean(), "Forecast": forecast.mean()}
    for each, total in zip(frames, squares, strict=True):
        found[window_name(each.size)] = each.covering(np.sqrt(total))
    return found, raw


@dataclass(frozen=True)
class _RawDistances:
    """Uncapped distances from the level, over some samples and for each sample alone."""

    lasting: WorstMetrics
    single: WorstMetrics

    @classmethod
    def of(cls, metrics: int) -> Self:
        # a sample with one abnormal metric may be a reading error
        return cls(WorstMetrics(metrics), WorstMetrics(metrics, least=_SEVERAL))

    def add(self, off: Floats) -> None:
        """Add a block's distances (n, m)."""
        self.lasting.add(centered_mean(off, LEVEL_MEAN))
        self.single.add(off)

    def over(self, before: int) -> Floats:
        """Return for the table's samples the larger multiple of the normal level."""
        lasting = _multiples(self.lasting.mean(), before)
        if not self.single.several:
            return lasting
        single = self.single.mean()
        mostly = float(np.quantile(single[:before] if before else single, _MOSTLY))
        return np.maximum(lasting, single[before:] / max(mostly, _LEAST_OUT))


def _weight(frames: Frames, metrics: int) -> float:
    """Return the weight of a window distance: less with few windows for their features."""
    features = FEATURES_A_METRIC * min(metrics, METRICS)
    return float(min(1.0, np.count_nonzero(frames.whole) / (_WINDOWS_A_FEATURE * features)))


def _off_level(rows: TableRows, values: Floats) -> Floats:
    floor = least_spread(values)
    level = learn_level(rows.times, values, rows.table.period_ns, floor=floor, newest=False)
    return np.abs(level.distance(rows.times, values))


def _multiples(values: Floats, before: int) -> Floats:
    return values[before:] / normal_level(values[:before] if before else values)
