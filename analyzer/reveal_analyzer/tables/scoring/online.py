"""The online form: every sample judged by what came before it alone.

Five views: distance from the usual level of all the past (by the time of day, once three days
are known), from the last day, from a one-step forecast, and the Mahalanobis distance of the
last windows of two sizes.  Levels follow the past closely.  Forecast and distances are learned
anew only when the past has doubled, and so is the usual level of each view, from samples that
its models had not seen: learned anew each day they take a fault in as part of what is usual.
A metric that the usual one of these days took far off its level is no news when it does it again,
and its distance counts for less.

The cut is a fixed multiple of the usual level.  A generalised Pareto tail fitted to the healthy
scores (SPOT, Siffer et al., KDD 2017) was measured beside it: of healthy days at equal recall it
leaves fewer without an alarm, since the healthy past holds faults of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.arrays import Floats
from reveal_analyzer.tables.scoring.forecast import Forecast
from reveal_analyzer.tables.scoring.frames import Frames, shape_features, window_features
from reveal_analyzer.tables.scoring.parts import (
    MIN_WINDOWS,
    Parts,
    fold,
    learn_distance,
    squared_distances,
    usual,
    window_name,
)
from reveal_analyzer.tables.scoring.rows import Rows
from reveal_analyzer.tables.scoring.scales import CAP, least_spread, median, robust_scale
from reveal_analyzer.tables.scoring.season import learn_level
from reveal_analyzer.tables.scoring.settings import SampleSettings, day_rows
from reveal_analyzer.tables.scoring.smooth import WorstMetrics, trailing_mean

CUT = 4.0  # multiples of a view's usual level; measured on labelled minute data

_WEIGHTS = {"Day": 3.0, "Forecast": 3.0}  # what sees events of a few samples
_EACH_DAY = 10.0  # spreads: a metric that its usual day takes further counts for less by so much

_FRAMES = ((10, 5), (30, 5))
_DISTANCES = ("Level", "Day", "Forecast")
_MEAN = 3  # samples
_HOLD = 30  # newest samples that are no reference yet: a fault must not excuse itself
_LEAST_WARM_UP = 120  # samples
_MOST_WARM_UP = 1_440
_GROWTH = 0.05  # of the past, after which levels are learned anew


def warm_up_rows(period_ns: int) -> int:
    """Samples, a baseline's among them, that are learned from before the first is judged."""
    return min(max(day_rows(period_ns), _LEAST_WARM_UP), _MOST_WARM_UP)


@dataclass(frozen=True)
class Plan:
    """When what is learned, in rows of baseline and table together.

    Models are learned from the rows before each of ``epochs`` (rising, the last is the number
    of rows); what is judged begins with the second.  ``day``: rows of the newest reference.
    """

    epochs: tuple[int, ...]
    day: int

    @classmethod
    def of(cls, rows: Rows) -> Plan:
        day, warm_up = day_rows(rows.table.period_ns), warm_up_rows(rows.table.period_ns)
        epochs = [warm_up // 2, warm_up]
        if rows.before >= warm_up:
            epochs = [rows.before // 2, rows.before]
        while epochs[-1] < len(rows):
            epochs.append(2 * epochs[-1])
        return cls(tuple(min(each, len(rows)) for each in epochs), day)

    @property
    def judged(self) -> int:
        """The first row that has a score."""
        return self.epochs[1]

    def levels(self, first: int, end: int) -> Iterator[tuple[int, int]]:
        """Stretches of an epoch that share a level."""
        while first < end:
            after = min(end, first + max(self.day, int(_GROWTH * first)))
            yield first, after
            first = after


def judge(rows: Rows, settings: SampleSettings) -> tuple[Parts, Floats]:
    """Each view of the table's samples as multiples of its usual level, and the score.

    Both are 0 in the warm-up.
    """
    plan = Plan.of(rows)
    asked = settings.frames(_FRAMES)
    frames = [Frames(size, stride, rows.since, to_end=False) for size, stride in asked]
    worst = {name: WorstMetrics(len(rows.table.names)) for name in _DISTANCES}
    squares = [np.zeros(len(each.starts)) for each in frames]
    for values in rows.blocks():
        block = _Block(rows, values, plan)
        for name, distances in block.distances().items():
            worst[name].add(trailing_mean(distances, _MEAN))
        for place, each in enumerate(frames):
            squares[place] += block.squares(each)
    parts = {name: each.mean() for name, each in worst.items()}
    for each, total in zip(frames, squares, strict=True):
        parts[window_name(each.size)] = each.finished(np.sqrt(total))
    own = slice(rows.before, None)
    multiples = {name: _multiples(values, plan)[own] for name, values in parts.items()}
    return multiples, fold(multiples, _WEIGHTS)


@dataclass(frozen=True)
class _Block:
    """The views of a few metrics (n, m), epoch after epoch."""

    rows: Rows
    values: Floats
    plan: Plan

    def distances(self) -> dict[str, Floats]:
        """Distances (n, m) from level, last day and forecast; 0 before the first epoch."""
        out = {name: np.zeros(self.values.shape) for name in _DISTANCES}
        for first, end in pairwise(self.plan.epochs):
            if first == end:
                continue
            floor = least_spread(self.values[:first])
            out["Forecast"][first:end] = self._off_forecast(first, end, floor)
            out["Day"][first:end] = self._off_day(first, end, floor)
            for begin, after in self.plan.levels(first, end):
                out["Level"][begin:after] = self._off_level(begin, after)
        out["Level"] = self._silenced(out["Level"])
        return out

    def _silenced(self, off: Floats) -> Floats:
        """Distances (n, m), each epoch's over what the usual day of the one before it reached."""
        out = off.copy()
        for (before, first), (_, end) in pairwise(pairwise(self.plan.epochs)):
            reached = _usual_day(off[before:first], self.plan.day) / _EACH_DAY
            out[first:end] = off[first:end] / np.maximum(reached, 1.0)
        return out

    def squares(self, frames: Frames) -> Floats:
        """Squared distances of the windows (windows,); 0 for those before the first epoch."""
        out = np.zeros(len(frames.starts))
        if not len(out):
            return out
        scale = robust_scale(self.values[: self.plan.epochs[0]])
        features = window_features(scale.in_spreads(self.values), frames, shape_features)
        ends = frames.starts + frames.size
        for epoch in pairwise(self.plan.epochs):
            past, after = np.searchsorted(ends, epoch, side="right")
            if past >= MIN_WINDOWS and past < after:
                learned = learn_distance(features[:past])
                out[past:after] = squared_distances(learned, features[past:after])
        return out

    def _off_forecast(self, first: int, end: int, floor: Floats) -> Floats:
        since = self.rows.since
        learned = Forecast().fit(self.values[:first], since[:first], floor)
        # the row before the first tells its forecast
        begin = first - learned.lags
        ages = np.minimum(since[begin:end], np.arange(end - begin))
        return learned.residual(self.values[begin:end], ages)[learned.lags :]

    def _off_level(self, first: int, end: int) -> Floats:
        times, past = self.rows.times, self.values[:first]
        period, floor = self.rows.table.period_ns, least_spread(past)
        level = learn_level(times[:first], past, period, floor=floor, newest=True)
        return np.abs(level.distance(times[first:end], self.values[first:end]))

    def _off_day(self, first: int, end: int, floor: Floats) -> Floats:
        """|z| against the last day but for the newest samples; the spread not below ``floor``."""
        begin = max(0, first - self.plan.day - _HOLD)
        scale = robust_scale(self.values[:first], floor)
        scaled = scale.in_spreads(self.values[begin:end])
        missing = np.isnan(scaled)
        scaled[missing] = 0.0
        newest = np.maximum(np.arange(first, end) - begin - _HOLD + 1, 0)
        oldest = np.maximum(newest - self.plan.day, 0)
        held = np.maximum(_between(oldest, newest, (~missing).astype(np.float64)), 1.0)
        mean = _between(oldest, newest, scaled) / held
        variance = _between(oldest, newest, scaled * scaled) / held - mean * mean
        least = floor / np.where(scale.spread > 0.0, scale.spread, 1.0)
        spread = np.maximum(np.sqrt(np.maximum(variance, 0.0)), least)
        off = np.minimum(np.abs(scaled[first - begin :] - mean) / spread, CAP)
        off[missing[first - begin :] | np.isnan(off)] = 0.0
        return off


def _between(oldest: NDArray[np.intp], newest: NDArray[np.intp], values: Floats) -> Floats:
    """Sums of the rows from each of ``oldest`` up to each of ``newest``, which is left out."""
    running = np.zeros((len(values) + 1, values.shape[1]))
    np.cumsum(values, axis=0, out=running[1:])
    return np.asarray(running[newest] - running[oldest])


def _usual_day(off: Floats, day: int) -> Floats:
    """The largest distance of each day of ``day`` rows (m,), the median over days.

    Of less than a day the largest: it could have been any day's.
    """
    days = len(off) // day
    if not days:
        return np.asarray(off.max(0, initial=0.0))
    return median(off[: days * day].reshape(days, day, -1).max(1))


def _multiples(values: Floats, plan: Plan) -> Floats:
    """Each epoch over what was usual in the one before it; 0 before the second."""
    out = np.zeros(len(values))
    for (before, first), (_, end) in pairwise(pairwise(plan.epochs)):
        out[first:end] = values[first:end] / usual(values[before:first])
    return out
