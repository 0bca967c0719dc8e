"""The report form: a run judged against itself when it is over.

Five views of every sample, each fitted on the run (and the baseline, if there is one): its
metrics' distance from what is usual for them, from a one-step forecast, and the Mahalanobis
distance of the windows over it, of three sizes.  Each counts in multiples of its own median,
on the baseline or else on the run, so that a run in which nothing stands out has nothing over
the cut.

A run that is its own reference tells *that* a metric is off and hardly how far, as its faults are
part of what is usual: there ten spreads are as far as anything counts, and what makes a score is
how many metrics are off and for how long.  What no healthy host shows is told whatever the other
views say: a level ten times its usual, or several metrics out so far in a single sample.
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
from reveal_analyzer.tables.scoring.parts import (
    MIN_WINDOWS,
    Parts,
    fold,
    learn_distance,
    squared_distances,
    usual,
    window_name,
)
from reveal_analyzer.tables.scoring.rows import METRICS, Rows
from reveal_analyzer.tables.scoring.scales import CAP, least_spread, robust_scale
from reveal_analyzer.tables.scoring.season import learn_level
from reveal_analyzer.tables.scoring.settings import SampleSettings
from reveal_analyzer.tables.scoring.smooth import WorstMetrics, centred_mean

CUT = 2.9  # multiples of a view's usual level; measured on labelled minute data
CUT_BESIDE_BASELINE = 3.3  # where distances count in full
LEAST_ROWS = 30  # of run and baseline: in fewer nothing is usual
LAGS = 3  # samples that a forecast knows
LEVEL_MEAN = 5  # samples
FORECAST_MEAN = 3

_FRAMES = ((10, 5), (30, 10), (60, 20))
# beside a baseline: a fault that lasts all of the run shows in the level and in little else
_LEVEL_BESIDE_BASELINE = 1.5
_ENOUGH = 10.0  # a level so many times its usual is over the cut whatever other views say
_COUNTED = 10.0  # spreads that count at most where the run is its own reference
_MOSTLY = 0.95  # share of samples whose distance is nothing to speak of for a single one
_SEVERAL = 2  # metrics at least that such a sample takes
_LEAST_OUT = 2.0  # spreads: in many a run nothing moves for most of the time
_WINDOWS_A_FEATURE = 1  # where there are fewer, all windows are about as far from their centre


def judge(rows: Rows, settings: SampleSettings) -> tuple[Parts, Floats]:
    """Each view of the table's samples as multiples of its usual level, and the score."""
    asked = [Frames(size, stride, rows.since) for size, stride in settings.frames(_FRAMES)]
    frames = [each for each in asked if np.count_nonzero(each.whole) >= MIN_WINDOWS]
    found, plain = _views(rows, frames)
    weights = {"Level": _LEVEL_BESIDE_BASELINE if rows.before else 1.0}
    for each in frames:
        weights[window_name(each.size)] = _weight(each, len(rows.table.names))
    multiples = {name: _multiples(values, rows.before) for name, values in found.items()}
    times = plain.over(rows.before) / _ENOUGH
    cut = CUT_BESIDE_BASELINE if rows.before else CUT
    alone = np.where(times >= 1.0, times * cut, 0.0)
    return multiples, np.maximum(fold(multiples, weights), alone)


def _views(rows: Rows, frames: list[Frames]) -> tuple[Parts, _Plain]:
    """The views of baseline and table (n,), and the distances from the level as they are."""
    level, forecast = (WorstMetrics(len(rows.table.names)) for _ in range(2))
    plain = _Plain.of(len(rows.table.names))
    most = CAP if rows.before else _COUNTED
    squares = [np.zeros(len(each.starts)) for each in frames]
    for values in rows.blocks():
        off = _off_level(rows, values)
        plain.add(off)
        level.add(centred_mean(np.minimum(off, most), LEVEL_MEAN))
        residual = Forecast(LAGS).fit(values, rows.since).residual(values, rows.since)
        forecast.add(centred_mean(np.minimum(residual, most), FORECAST_MEAN))
        scaled = robust_scale(values).in_spreads(values)
        for place, each in enumerate(frames):
            features = window_features(scaled, each, shape_features)
            squares[place] += squared_distances(learn_distance(features), features)
    found = {"Level": level.mean(), "Forecast": forecast.mean()}
    for each, total in zip(frames, squares, strict=True):
        found[window_name(each.size)] = each.covering(np.sqrt(total))
    return found, plain


@dataclass(frozen=True)
class _Plain:
    """Distances from the level as they are, over some samples and in each one by itself."""

    lasting: WorstMetrics
    single: WorstMetrics

    @classmethod
    def of(cls, metrics: int) -> Self:
        # a sample that one metric alone makes odd may be a reading gone wrong
        return cls(WorstMetrics(metrics), WorstMetrics(metrics, least=_SEVERAL))

    def add(self, off: Floats) -> None:
        """Take a block's distances (n, m)."""
        self.lasting.add(centred_mean(off, LEVEL_MEAN))
        self.single.add(off)

    def over(self, before: int) -> Floats:
        """Of the table's samples, how many times what is usual, by what says more."""
        lasting = _multiples(self.lasting.mean(), before)
        if not self.single.several:
            return lasting
        single = self.single.mean()
        mostly = float(np.quantile(single[:before] if before else single, _MOSTLY))
        return np.maximum(lasting, single[before:] / max(mostly, _LEAST_OUT))


def _weight(frames: Frames, metrics: int) -> float:
    """What a distance of windows counts: less where windows are few for their features."""
    features = FEATURES_A_METRIC * min(metrics, METRICS)
    return float(min(1.0, np.count_nonzero(frames.whole) / (_WINDOWS_A_FEATURE * features)))


def _off_level(rows: Rows, values: Floats) -> Floats:
    floor = least_spread(values)
    level = learn_level(rows.times, values, rows.table.period_ns, floor=floor, newest=False)
    return np.abs(level.distance(rows.times, values))


def _multiples(values: Floats, before: int) -> Floats:
    return values[before:] / usual(values[:before] if before else values)
