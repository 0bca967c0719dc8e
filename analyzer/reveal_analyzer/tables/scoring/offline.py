"""Offline mode of tables: a run is scored against itself after it is over.

That of recordings is ``offline.judgement``.

Every sample has five views, each fitted on the run (and the baseline, if there is one): the
distance of its metrics from their normal level, from a one-step forecast, and the Mahalanobis
distance of the windows over it, of three sizes.  Each counts in multiples of its own median, on the
baseline or else on the run, so in a run in which nothing stands out nothing exceeds the threshold.

A run that is its own reference shows that a metric deviates, but hardly by how much, as its faults
are part of the reference.  Without a baseline a distance is therefore capped at ten spreads, and
the score depends on how many metrics deviate and for how long.  Levels that no healthy host shows
are reported whatever the other views are: a level ten times its normal one, several metrics that
far off in a single sample, or for some samples by more than they ever are.

Two things are taken from the values first: events that recur by the clock, which are the job's own,
and changes of level that stay, which are reported once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from reveal_analyzer.arrays import Bools, Floats, Ints
from reveal_analyzer.tables.scoring.forecast import Forecast
from reveal_analyzer.tables.scoring.frames import (
    FEATURES_A_METRIC,
    Frames,
    shape_features,
    window_features,
)
from reveal_analyzer.tables.scoring.learned import LearnedBlocks
from reveal_analyzer.tables.scoring.level_shifts import CHANGED, LevelShift
from reveal_analyzer.tables.scoring.preparation import Preparation
from reveal_analyzer.tables.scoring.row_parts import RowPart, row_parts
from reveal_analyzer.tables.scoring.rows import METRICS, TableRows
from reveal_analyzer.tables.scoring.scales import CAP, Spreads, quantiles, thinned, thinning
from reveal_analyzer.tables.scoring.season import NormalLevel
from reveal_analyzer.tables.scoring.settings import SampleSettings
from reveal_analyzer.tables.scoring.smooth import WorstMetrics, centered_mean, lasting
from reveal_analyzer.tables.scoring.spans import spans_of
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
_HALO = 2  # samples on either side that means and stretches need

_FRAMES = ((10, 5), (30, 10), (60, 20))
# with a baseline: a fault that lasts all of the run shows in little but the level
_LEVEL_BESIDE_BASELINE = 1.5
_CERTAIN_MULTIPLE = 10.0  # multiple of the normal level that exceeds the threshold by itself
_SUSTAINED_MULTIPLE = 10.0  # the same, of several metrics for some samples
_COUNTED = 10.0  # cap in spreads where the run is its own reference
_MOSTLY = 0.95  # share of samples whose distance is normal for a single one
_SEVERAL = 2  # least number of metrics in such a sample
_LEAST_OUT = 2.0  # spreads: in many runs nothing moves most of the time
_LEAST_SUSTAINED = 1.0  # the same, reached by three samples in a row
_APART = 30  # samples between two such stretches
_EXCEPTIONS = 2  # stretches: with more, their height is normal
_RESTLESS = 0.3  # of the least spread: metrics that rest show no noise to judge an excursion by
_WINDOWS_A_FEATURE = 1  # with fewer, all windows have about the same distance


def judge(
    rows: TableRows, settings: SampleSettings, learned: LearnedBlocks
) -> tuple[ViewScores, Floats, list[LevelShift]]:
    """Return each view of the table's samples as multiples of its normal level, and the score.

    The third are the changes of level that stay; their first samples have a score that exceeds the
    threshold.  What a ranking needs again is added to ``learned``.
    """
    all_frames = [Frames(size, stride, rows.since) for size, stride in settings.frames(_FRAMES)]
    frames = [each for each in all_frames if np.count_nonzero(each.whole) >= MIN_WINDOWS]
    preparation = Preparation(rows)
    found, raw = _views(rows, frames, preparation, learned)
    weights = {"Level": _LEVEL_BESIDE_BASELINE if rows.baseline_rows else 1.0}
    for each in frames:
        weights[window_name(each.size)] = _weight(each, len(rows.table.names))
    multiples = {name: _multiples(values, rows.baseline_rows) for name, values in found.items()}
    threshold = THRESHOLD_WITH_BASELINE if rows.baseline_rows else THRESHOLD
    times = raw.over(rows.baseline_rows)
    alone = np.where(times >= 1.0, times * threshold, 0.0)
    score = np.maximum(combine_views(multiples, weights), alone)
    shifts = preparation.shifts()
    for shift in shifts:
        begin = slice(shift.first, shift.first + LEVEL_MEAN)
        score[begin] = np.maximum(score[begin], threshold * shift.size / CHANGED)
    return multiples, score, shifts


def _views(
    rows: TableRows, frames: list[Frames], preparation: Preparation, learned: LearnedBlocks
) -> tuple[ViewScores, _RawDistances]:
    """Return the views of baseline and table (n,), and the raw distances from the level."""
    level, forecast = (WorstMetrics(len(rows), len(rows.table.names)) for _ in range(2))
    raw = _RawDistances.of(len(rows), len(rows.table.names))
    most = CAP if rows.baseline_rows else _COUNTED
    squares = [np.zeros(len(each.starts)) for each in frames]
    parts = row_parts(len(rows), rows.width, _HALO)
    for block in rows.blocks():
        prepared = preparation.prepared(block)
        values, scale = prepared.values, prepared.spreads.scale()
        off = _off_level(prepared.level(rows), rows.times, values, parts)
        normal = _Normal.of(off, prepared.spreads, rows.baseline_rows, parts)
        residual = (expected := Forecast(LAGS)).fit_residual(values, rows.since, scale)
        learned.add(block, prepared, expected)
        for part in parts:
            around = off[part.around]
            raw.add(around, normal, part)
            near = centered_mean(np.minimum(around, most), LEVEL_MEAN)
            level.add(near[part.inner], part.rows)
            near = centered_mean(np.minimum(residual[part.around], most), FORECAST_MEAN)
            forecast.add(near[part.inner], part.rows)
        scaled = scale.in_spreads(values)
        for index, each in enumerate(frames):
            features = window_features(scaled, each, shape_features)
            squares[index] += squared_distances(learn_distance(features), features)
    found = {"Level": level.mean(), "Forecast": forecast.mean()}
    for each, total in zip(frames, squares, strict=True):
        found[window_name(each.size)] = each.covering(np.sqrt(total))
    return found, raw


def _off_level(level: NormalLevel, times: Ints, values: Floats, parts: list[RowPart]) -> Floats:
    """Return the distances (n, m) from the normal level."""
    off = np.empty(values.shape)
    for part in parts:
        np.abs(level.distance(times[part.rows], values[part.rows]), out=off[part.rows])
    return off


@dataclass(frozen=True)
class _Normal:
    """What is normal for the distances of some metrics (m,) from their level.

    Most samples stay below ``most``, most stretches of three samples below ``sustained``.
    ``restless`` are metrics with noise of their own.
    """

    most: Floats
    sustained: Floats | None
    restless: Bools

    @classmethod
    def of(cls, off: Floats, spreads: Spreads, before: int, parts: list[RowPart]) -> Self:
        """Return those of distances (n, m); ``before`` are the rows of the baseline."""
        most = _mostly(thinned(off[:before] if before else off), _LEAST_OUT)
        restless = spreads.spread >= _RESTLESS * spreads.least
        if before:  # distances are not capped: the other views show what is sustained
            return cls(most, None, restless)
        step = thinning(len(off))
        few = [
            lasting(off[part.around])[part.inner][-part.rows.start % step :: step] for part in parts
        ]
        return cls(most, _mostly(np.concatenate(few), _LEAST_SUSTAINED), restless)


@dataclass(frozen=True)
class _RawDistances:
    """Uncapped distances from the level, of which some are certainly abnormal.

    They are means over some samples, single samples, and multiples of what two metrics reach.
    """

    smooth: WorstMetrics
    single: WorstMetrics
    several: WorstMetrics

    @classmethod
    def of(cls, rows: int, metrics: int) -> Self:
        # a sample with one abnormal metric may be a reading error
        return cls(
            WorstMetrics(rows, metrics),
            WorstMetrics(rows, metrics, least=_SEVERAL),
            WorstMetrics(rows, metrics, top=_SEVERAL),
        )

    def add(self, around: Floats, normal: _Normal, part: RowPart) -> None:
        """Add the distances of a block in a part and around it."""
        off = around[part.inner]
        self.smooth.add(centered_mean(around, LEVEL_MEAN)[part.inner], part.rows)
        self.single.add(off, part.rows)
        multiples = off / normal.most / _CERTAIN_MULTIPLE
        if normal.sustained is not None:
            sustained = lasting(around)[part.inner] / normal.sustained / _SUSTAINED_MULTIPLE
            np.maximum(multiples, sustained, out=multiples)
        self.several.add(np.where(normal.restless, multiples, 0.0), part.rows)

    def over(self, before: int) -> Floats:
        """Return the table's samples as multiples of what is certainly abnormal."""
        smooth = _multiples(self.smooth.mean(), before) / _CERTAIN_MULTIPLE
        several = np.maximum(smooth, _exceptional(self.several.lowest()[before:]))
        if not self.single.several:
            return several
        single = self.single.mean()
        most = _mostly(thinned(single[:before] if before else single)[:, None], _LEAST_OUT)
        return np.maximum(several, single[before:] / most / _CERTAIN_MULTIPLE)


def _exceptional(multiples: Floats) -> Floats:
    """Return multiples (n,) less those that are exceeded again and again, and so are no exception.

    They count over the peak of the third highest stretch.
    """
    spans = spans_of(multiples >= 1.0, _APART)
    peaks = sorted((float(multiples[first:end].max()) for first, end in spans), reverse=True)
    return multiples / peaks[_EXCEPTIONS] if len(peaks) > _EXCEPTIONS else multiples


def _mostly(off: Floats, least: float) -> Floats:
    """Return what most samples of distances (n, m) stay below (m,)."""
    return np.asarray(np.maximum(quantiles(off, (_MOSTLY,))[0], least))


def _weight(frames: Frames, metrics: int) -> float:
    """Return the weight of a window distance: less with few windows for their features."""
    features = FEATURES_A_METRIC * min(metrics, METRICS)
    return float(min(1.0, np.count_nonzero(frames.whole) / (_WINDOWS_A_FEATURE * features)))


def _multiples(values: Floats, before: int) -> Floats:
    return values[before:] / normal_level(values[:before] if before else values)
