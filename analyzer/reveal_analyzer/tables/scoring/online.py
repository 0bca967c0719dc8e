"""Online mode of tables: every sample is scored by earlier samples alone.

Every sample has five views: the distance from the normal level of all history (by the time of day,
once three days are known), from the last day, from a one-step forecast, and the Mahalanobis
distance of the last windows of two sizes.  Levels follow the history closely.  Forecasts and
distances are learned again only when the history has doubled, and so is the normal level of each
view, from samples that its models had not used: if they were learned every day, a fault would
become part of what is normal.  A metric that deviates far on a normal day of this history is no
news when it does so again, and its distance counts for less.  Events that continue a train that
recurs by the clock are removed from the values first.

The threshold is a fixed multiple of the normal level.  A generalized Pareto tail fitted to the
healthy scores (SPOT, Siffer et al., KDD 2017) was measured as an alternative: at equal recall it
leaves fewer healthy days without an alarm, since the healthy history contains faults of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.arrays import Floats
from reveal_analyzer.tables.scoring.event_trains import Clock
from reveal_analyzer.tables.scoring.forecast import Forecast
from reveal_analyzer.tables.scoring.frames import Frames, shape_features, window_features
from reveal_analyzer.tables.scoring.recurring import RecurringEvents
from reveal_analyzer.tables.scoring.rows import TableRows
from reveal_analyzer.tables.scoring.scales import CAP, Scale, Spreads, median, robust_scale
from reveal_analyzer.tables.scoring.season import learn_level
from reveal_analyzer.tables.scoring.settings import SampleSettings, day_rows
from reveal_analyzer.tables.scoring.smooth import WorstMetrics, trailing_mean
from reveal_analyzer.tables.scoring.views import (
    MIN_WINDOWS,
    ViewScores,
    combine_views,
    learn_distance,
    normal_level,
    squared_distances,
    window_name,
)

THRESHOLD = 4.0  # multiples of a view's normal level; measured on labeled minute data

_WEIGHTS = {"Day": 3.0, "Forecast": 3.0}  # the views that show events of a few samples
_DAILY_SPREADS = 10.0  # a metric counts less by how far a normal day exceeds these spreads

_FRAMES = ((10, 5), (30, 5))
_DISTANCES = ("Level", "Day", "Forecast")
MEAN = 3  # samples: a score shows an event at most two samples later
_HOLD = 30  # newest samples that are no reference yet: a fault must not suppress itself
_LEAST_WARM_UP = 120  # samples
_MOST_WARM_UP = 1_440
_MOST_PERIOD = 0.5  # days: of events that are removed
_GROWTH = 0.05  # growth of the history after which levels are learned again


def warm_up_rows(period_ns: int) -> int:
    """Return how many samples, a baseline's included, are learned before the first is scored."""
    return min(max(day_rows(period_ns), _LEAST_WARM_UP), _MOST_WARM_UP)


@dataclass(frozen=True)
class LearningSchedule:
    """When models are learned, in rows of baseline and table together.

    Models are learned from the rows before each of ``epochs`` (rising, the last is the number of
    rows); scores begin with the second.  ``day`` is the number of rows of the newest reference.
    """

    epochs: tuple[int, ...]
    day: int

    @classmethod
    def of(cls, rows: TableRows) -> LearningSchedule:
        day, warm_up = day_rows(rows.table.period_ns), warm_up_rows(rows.table.period_ns)
        epochs = [warm_up // 2, warm_up]
        if rows.baseline_rows >= warm_up:
            epochs = [rows.baseline_rows // 2, rows.baseline_rows]
        while epochs[-1] < len(rows):
            epochs.append(2 * epochs[-1])
        return cls(tuple(min(each, len(rows)) for each in epochs), day)

    @property
    def judged(self) -> int:
        """Return the first row that has a score."""
        return self.epochs[1]

    def levels(self, first: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield the stretches of an epoch that share a level."""
        while first < end:
            after = min(end, first + max(self.day, int(_GROWTH * first)))
            yield first, after
            first = after


def judge(rows: TableRows, settings: SampleSettings) -> tuple[ViewScores, Floats]:
    """Return each view of the table's samples as multiples of its normal level, and the score.

    Both are 0 in the warm-up.
    """
    schedule = LearningSchedule.of(rows)
    sizes = settings.frames(_FRAMES)
    frames = [Frames(size, stride, rows.since, to_end=False) for size, stride in sizes]
    worst = {name: WorstMetrics(len(rows), len(rows.table.names)) for name in _DISTANCES}
    squares = [np.zeros(len(each.starts)) for each in frames]
    clock = Clock.of(rows.times, rows.since, rows.table.period_ns)
    for values in rows.blocks():
        block = _Block(rows, _without_recurring(values, schedule, clock), schedule)
        for name, distances in block.distances().items():
            worst[name].add(trailing_mean(distances, MEAN))
        for index, each in enumerate(frames):
            squares[index] += block.squares(each)
    parts = {name: each.mean() for name, each in worst.items()}
    for each, total in zip(frames, squares, strict=True):
        parts[window_name(each.size)] = each.finished(np.sqrt(total))
    own = slice(rows.baseline_rows, None)
    multiples = {name: _multiples(values, schedule)[own] for name, values in parts.items()}
    return multiples, combine_views(multiples, _WEIGHTS)


def _without_recurring(values: Floats, schedule: LearningSchedule, clock: Clock) -> Floats:
    """Return values (n, m) without the events that recur in the epochs before each of them."""
    first = schedule.judged
    known = clock.until(first)
    out = [_learned(values[:first], known).removed(values[:first], known)]
    for first, end in pairwise(schedule.epochs[1:]):
        learned = _learned(values[:first], clock.until(first))
        out.append(learned.continued(values[:end], clock.until(end), first)[first:])
    return np.concatenate(out)


def _learned(values: Floats, clock: Clock) -> RecurringEvents:
    """Return the events that recur within the day; those of each day have levels of their own."""
    return RecurringEvents.learn(values, clock).within(_MOST_PERIOD * clock.day)


@dataclass(frozen=True)
class _Block:
    """The views of a few metrics (n, m), epoch by epoch."""

    rows: TableRows
    values: Floats
    schedule: LearningSchedule

    def distances(self) -> dict[str, Floats]:
        """Return distances (n, m) from level, last day and forecast; 0 before the first epoch."""
        out = {name: np.zeros(self.values.shape) for name in _DISTANCES}
        for first, end in pairwise(self.schedule.epochs):
            if first == end:
                continue
            spreads = Spreads.of(self.values[:first])
            out["Forecast"][first:end] = self._off_forecast(first, end, spreads.scale())
            out["Day"][first:end] = self._off_day(first, end, spreads)
            for begin, after in self.schedule.levels(first, end):
                out["Level"][begin:after] = self._off_level(begin, after)
        out["Level"] = self._suppress_daily(out["Level"])
        return out

    def _suppress_daily(self, off: Floats) -> Floats:
        """Return distances (n, m) of each epoch over those of a normal day of the previous one."""
        out = off.copy()
        for (before, first), (_, end) in pairwise(pairwise(self.schedule.epochs)):
            reached = _normal_day(off[before:first], self.schedule.day) / _DAILY_SPREADS
            out[first:end] = off[first:end] / np.maximum(reached, 1.0)
        return out

    def squares(self, frames: Frames) -> Floats:
        """Return squared distances of the windows (windows,); 0 before the first epoch."""
        out = np.zeros(len(frames.starts))
        if not len(out):
            return out
        scale = robust_scale(self.values[: self.schedule.epochs[0]])
        features = window_features(scale.in_spreads(self.values), frames, shape_features)
        ends = frames.starts + frames.size
        for epoch in pairwise(self.schedule.epochs):
            learned_end, after = np.searchsorted(ends, epoch, side="right")
            if learned_end >= MIN_WINDOWS and learned_end < after:
                model = learn_distance(features[:learned_end])
                out[learned_end:after] = squared_distances(model, features[learned_end:after])
        return out

    def _off_forecast(self, first: int, end: int, scale: Scale) -> Floats:
        since = self.rows.since
        learned = Forecast().fit(self.values[:first], since[:first], scale)
        # the forecast of the first row needs the row before
        begin = first - learned.lags
        ages = np.minimum(since[begin:end], np.arange(end - begin))
        return learned.residual(self.values[begin:end], ages)[learned.lags :]

    def _off_level(self, first: int, end: int) -> Floats:
        times, history = self.rows.times, self.values[:first]
        period, spreads = self.rows.table.period_ns, Spreads.of(history)
        level = learn_level(times[:first], history, period, spreads, newest=True)
        return np.abs(level.distance(times[first:end], self.values[first:end]))

    def _off_day(self, first: int, end: int, spreads: Spreads) -> Floats:
        """Return |z| against the last day without its newest samples.

        ``spreads`` are those of all rows before; the spread is at least their least one.
        """
        begin = max(0, first - self.schedule.day - _HOLD)
        scale = spreads.scale()
        scaled = scale.in_spreads(self.values[begin:end])
        missing = np.isnan(scaled)
        scaled[missing] = 0.0
        newest = np.maximum(np.arange(first, end) - begin - _HOLD + 1, 0)
        oldest = np.maximum(newest - self.schedule.day, 0)
        counts = np.maximum(_between(oldest, newest, (~missing).astype(np.float64)), 1.0)
        mean = _between(oldest, newest, scaled) / counts
        variance = _between(oldest, newest, scaled * scaled) / counts - mean * mean
        least = spreads.least / np.where(scale.spread > 0.0, scale.spread, 1.0)
        spread = np.maximum(np.sqrt(np.maximum(variance, 0.0)), least)
        off = np.minimum(np.abs(scaled[first - begin :] - mean) / spread, CAP)
        off[missing[first - begin :] | np.isnan(off)] = 0.0
        return off


def _between(oldest: NDArray[np.intp], newest: NDArray[np.intp], values: Floats) -> Floats:
    """Return sums of the rows from each of ``oldest`` up to each of ``newest``, excluded."""
    running = np.zeros((len(values) + 1, values.shape[1]))
    np.cumsum(values, axis=0, out=running[1:])
    return np.asarray(running[newest] - running[oldest])


def _normal_day(off: Floats, day: int) -> Floats:
    """Return the median over days of the largest distance of each day of ``day`` rows (m,).

    For less than a day the largest distance: it could be any day's.
    """
    days = len(off) // day
    if not days:
        return np.asarray(off.max(0, initial=0.0))
    return median(off[: days * day].reshape(days, day, -1).max(1))


def _multiples(values: Floats, schedule: LearningSchedule) -> Floats:
    """Return each epoch over the normal level of the previous one; 0 before the second."""
    out = np.zeros(len(values))
    for (before, first), (_, end) in pairwise(pairwise(schedule.epochs)):
        out[first:end] = values[first:end] / normal_level(values[before:first])
    return out
