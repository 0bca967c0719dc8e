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
from reveal_analyzer.samples.frames import Frames, shape_features, window_features
from reveal_analyzer.samples.parts import (
    MIN_WINDOWS,
    Parts,
    learn_distance,
    squared_distances,
    usual,
    window_name,
)
from reveal_analyzer.samples.rows import Rows
from reveal_analyzer.samples.scales import least_spread, robust_scale
from reveal_analyzer.samples.season import learn_level
from reveal_analyzer.samples.settings import SampleSettings
from reveal_analyzer.samples.smooth import WorstMetrics, centred_mean
from reveal_analyzer.samples.table import Floats

CUT = 3.3  # multiples of a view's usual level; measured on labelled minute data
# beside a baseline: a fault that lasts all of the run shows in the level and in little else
WEIGHTS = {"Level": 1.5}
LEAST_ROWS = 30  # of run and baseline: in fewer nothing is usual
LAGS = 3  # samples that a forecast knows
LEVEL_MEAN = 5  # samples
FORECAST_MEAN = 3

_FRAMES = ((10, 5), (30, 10), (60, 20))


def views(rows: Rows, settings: SampleSettings) -> Parts:
    """Each view of the table's samples as multiples of its usual level."""
    asked = [Frames(size, stride, rows.since) for size, stride in settings.frames(_FRAMES)]
    frames = [each for each in asked if np.count_nonzero(each.whole) >= MIN_WINDOWS]
    level, forecast = WorstMetrics(), WorstMetrics()
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
    for each, total in zip(frames, squares, strict=True):
        found[window_name(each.size)] = each.covering(np.sqrt(total))
    return {name: _multiples(values, rows.before) for name, values in found.items()}


def _off_level(rows: Rows, values: Floats) -> Floats:
    floor = least_spread(values)
    level = learn_level(rows.times, values, rows.table.period_ns, floor=floor, newest=False)
    return centred_mean(np.abs(level.distance(rows.times, values)), LEVEL_MEAN)


def _multiples(values: Floats, before: int) -> Floats:
    return values[before:] / usual(values[:before] if before else values)
