"""The report form: a run judged against itself when it is over.

Five views of every sample, each fitted on the run (and the baseline, if there is one): its
metrics' distance from what is usual for them, from a one-step forecast, and the Mahalanobis
distance of the windows over it, of three sizes.  Each counts in multiples of its own median,
on the baseline or else on the run, so that a run in which nothing stands out has nothing over
the cut.
"""

from __future__ import annotations

import numpy as np

from reveal_analyzer.samples.forecast import Forecast
from reveal_analyzer.samples.frames import (
    FEATURES_A_METRIC,
    Frames,
    shape_features,
    window_features,
)
from reveal_analyzer.samples.parts import (
    MIN_WINDOWS,
    Parts,
    fold,
    learn_distance,
    squared_distances,
    usual,
    window_name,
)
from reveal_analyzer.samples.rows import METRICS, Rows
from reveal_analyzer.samples.scales import least_spread, robust_scale
from reveal_analyzer.samples.season import learn_level
from reveal_analyzer.samples.settings import SampleSettings
from reveal_analyzer.samples.smooth import WorstMetrics, centred_mean
from reveal_analyzer.samples.table import Floats

CUT = 3.3  # multiples of a view's usual level; measured on labelled minute data
LEAST_ROWS = 30  # of run and baseline: in fewer nothing is usual
LAGS = 3  # samples that a forecast knows
LEVEL_MEAN = 5  # samples
FORECAST_MEAN = 3

_FRAMES = ((10, 5), (30, 10), (60, 20))
# beside a baseline: a fault that lasts all of the run shows in the level and in little else
_LEVEL_BESIDE_BASELINE = 1.5
_ENOUGH = 10.0  # a level so many times its usual is over the cut whatever other views say
_WINDOWS_A_FEATURE = 1  # where there are fewer, all windows are about as far from their centre


def judge(rows: Rows, settings: SampleSettings) -> tuple[Parts, Floats]:
    """Each view of the table's samples as multiples of its usual level, and the score."""
    asked = [Frames(size, stride, rows.since) for size, stride in settings.frames(_FRAMES)]
    frames = [each for each in asked if np.count_nonzero(each.whole) >= MIN_WINDOWS]
    level, forecast = (WorstMetrics(len(rows.table.names)) for _ in range(2))
    squares = [np.zeros(len(each.starts)) for each in frames]
    for values in rows.blocks():
        level.add(_off_level(rows, values))
        residual = Forecast(LAGS).fit(values, rows.since).residual(values, rows.since)
        forecast.add(centred_mean(residual, FORECAST_MEAN))
        scaled = robust_scale(values).in_spreads(values)
        for place, each in enumerate(frames):
            features = window_features(scaled, each, shape_features)
            squares[place] += squared_distances(learn_distance(features), features)
    found = {"Level": level.mean(), "Forecast": forecast.mean()}
    weights = {"Level": _LEVEL_BESIDE_BASELINE if rows.before else 1.0}
    for each, total in zip(frames, squares, strict=True):
        name = window_name(each.size)
        found[name] = each.covering(np.sqrt(total))
        weights[name] = _weight(each, len(rows.table.names))
    multiples = {name: _multiples(values, rows.before) for name, values in found.items()}
    times = multiples["Level"] / _ENOUGH
    alone = np.where(times >= 1.0, times * CUT, 0.0)
    return multiples, np.maximum(fold(multiples, weights), alone)


def _weight(frames: Frames, metrics: int) -> float:
    """What a distance of windows counts: less where windows are few for their features."""
    features = FEATURES_A_METRIC * min(metrics, METRICS)
    return float(min(1.0, np.count_nonzero(frames.whole) / (_WINDOWS_A_FEATURE * features)))


def _off_level(rows: Rows, values: Floats) -> Floats:
    floor = least_spread(values)
    level = learn_level(rows.times, values, rows.table.period_ns, floor=floor, newest=False)
    return centred_mean(np.abs(level.distance(rows.times, values)), LEVEL_MEAN)


def _multiples(values: Floats, before: int) -> Floats:
    return values[before:] / usual(values[:before] if before else values)
