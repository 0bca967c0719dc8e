"""Values without the events that recur by the clock, which are the job's own.

A regular event is replaced by the samples before it, so that no view of a sample shows it.  What
exceeds the other events of its train stays: the part of an event that is longer or larger than
they are.  Where an event is missing, the values are as far from normal as it would be, below it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reveal_analyzer.arrays import Bools, Floats, Indices
from reveal_analyzer.tables.scoring.event_trains import Clock, EventTrain, trains
from reveal_analyzer.tables.scoring.excursions import BEGIN, Excursions, excursions, in_spreads
from reveal_analyzer.tables.scoring.scales import Scale, robust_scale

_SOURCE = 64  # samples before an event that replace it, again and again in a long one
_LEAST_EVENTS = 3


@dataclass(frozen=True)
class _MetricTrain:
    """A train of a metric's events to one side (``sign``)."""

    metric: int
    sign: float
    train: EventTrain


@dataclass(frozen=True)
class RecurringEvents:
    """The trains of events of some metrics, and the scale by which they were found."""

    scale: Scale
    found: tuple[_MetricTrain, ...]

    @classmethod
    def learn(cls, values: Floats, clock: Clock) -> RecurringEvents:
        """Find the trains of metrics (n, m), NaN where missing."""
        scale = robust_scale(values)
        distance = in_spreads(values, scale)
        found = []
        for metric in range(values.shape[1]):
            for sign in (1.0, -1.0):
                events = excursions(sign * distance[:, metric])
                if len(events) >= _LEAST_EVENTS:
                    some = trains(events, clock)
                    found += [_MetricTrain(metric, sign, train) for train in some]
        return cls(scale, tuple(found))

    def within(self, period: float) -> RecurringEvents:
        """Return the trains of at most a period."""
        found = tuple(each for each in self.found if each.train.period <= period)
        return RecurringEvents(self.scale, found)

    def removed(self, values: Floats, clock: Clock) -> Floats:
        """Return the values (n, m) that the trains were found in without their events."""
        if not self.found:
            return values
        removal = _Removal(values, self.scale)
        for each in self.found:
            removal.remove(each, each.train.events)
            if not each.train.skips:
                removal.add_missing(each, _missing(each.train, clock))
        return removal.result()

    def continued(self, values: Floats, clock: Clock, first: int) -> Floats:
        """Return values (n, m) without events that continue the trains from row ``first`` on.

        A sample depends on no later ones.
        """
        if not self.found:
            return values
        removal = _Removal(values, self.scale)
        for each in self.found:
            distance = each.sign * removal.distance(each.metric)
            events, missing = _continuation(each.train, distance, clock, first)
            removal.remove(each, events)
            removal.add_missing(each, missing)
        return removal.result()


class _Removal:
    """Collects what is removed from values, metric by metric."""

    def __init__(self, values: Floats, scale: Scale) -> None:
        self._values, self._scale = values, scale
        self._regular: dict[int, Bools] = {}
        self._excess: dict[int, Floats] = {}

    def distance(self, metric: int) -> Floats:
        """Return the signed distance (n,) of a metric in spreads."""
        spread = self._scale.spread[metric]
        return np.asarray((self._values[:, metric] - self._scale.center[metric]) / spread)

    def remove(self, each: _MetricTrain, events: Excursions) -> None:
        """Remove events up to the length and height of their train."""
        ends = np.minimum(events.ends, events.firsts + each.train.longest)
        rows = _rows_of(events.firsts, ends)
        regular, excess = self._changes(each.metric)
        regular[rows] = True
        above = each.sign * self.distance(each.metric)[rows] - each.train.highest
        excess[rows] = each.sign * np.fmax(above, 0.0)

    def add_missing(self, each: _MetricTrain, onsets: Indices) -> None:
        """Add an excursion to the other side where an event is missing."""
        length = int(np.median(each.train.events.lengths))
        ends = np.minimum(onsets + length, len(self._values))
        self._changes(each.metric)[1][_rows_of(onsets, ends)] -= each.sign * each.train.lowest

    def result(self) -> Floats:
        """Return the values without what was removed."""
        out = self._values.copy()
        for metric, regular in self._regular.items():
            rows, sources = _sources(regular | np.isnan(self._values[:, metric]), regular)
            out[rows, metric] = self._values[sources, metric]
            out[:, metric] += self._excess[metric] * self._scale.spread[metric]
        return out

    def _changes(self, metric: int) -> tuple[Bools, Floats]:
        if metric not in self._regular:
            self._regular[metric] = np.zeros(len(self._values), np.bool_)
            self._excess[metric] = np.zeros(len(self._values))
        return self._regular[metric], self._excess[metric]


def _rows_of(firsts: Indices, ends: Indices) -> Indices:
    """Return all rows from each first to its end, excluded."""
    lengths = np.maximum(ends - firsts, 0)
    before = np.cumsum(lengths) - lengths
    return np.repeat(firsts - before, lengths) + np.arange(int(lengths.sum()))


def _sources(unfit: Bools, regular: Bools) -> tuple[Indices, Indices]:
    """Return the rows to replace, and the rows before each event that replace them."""
    rows, fit = np.flatnonzero(regular), np.flatnonzero(~unfit)
    if not len(fit):
        return rows[:0], rows[:0]
    begins = np.flatnonzero(np.diff(np.concatenate([[-2], rows])) > 1)
    first = np.repeat(rows[begins], np.diff(np.append(begins, len(rows))))
    before = np.searchsorted(fit, first)
    width = np.minimum(before, _SOURCE)
    offset = (rows - first) % np.maximum(width, 1)
    # nothing is known before an event that the table begins with
    later = np.minimum(rows - first, len(fit) - 1)
    return rows, fit[np.where(width > 0, before - width + offset, later)]


def _missing(train: EventTrain, clock: Clock) -> Indices:
    """Return the rows at which events of a train are missing."""
    firsts = train.events.firsts
    onsets, stretch = clock.times[firsts], clock.stretch[firsts]
    counts = np.round(np.diff(onsets) / train.period).astype(np.intp)
    alone = np.flatnonzero((counts == 2) & (np.diff(stretch) == 0))
    due = onsets[alone] + 0.5 * (onsets[alone + 1] - onsets[alone])
    return np.asarray(np.searchsorted(clock.times, due), np.intp)


def _continuation(
    train: EventTrain, distance: Floats, clock: Clock, first: int
) -> tuple[Excursions, Indices]:
    """Return the events from row ``first`` on that continue a train, and where one is missing."""
    begin = max(0, first - train.longest)
    events = _crossings(distance[begin:], begin)
    latest = int(train.events.firsts[-1])
    members, missing = [], []
    for index, row in enumerate(events.firsts.tolist()):
        if row < first:
            if row >= latest:
                members.append(index)  # the event that the history ends with
            continue
        steps = (clock.times[row] - clock.times[latest]) / train.period
        same = clock.stretch[row] == clock.stretch[latest]
        if same and not _is_due(steps, train):
            continue
        if same and round(steps) == 2 and not train.skips:
            missing.append(_after_due(train, clock, latest))
        members.append(index)
        latest = row
    chosen = np.zeros(len(events), np.bool_)
    chosen[members] = True
    rows = np.array([row for row in missing if first <= row], np.intp)
    return events.selected(chosen), rows


def _crossings(distance: Floats, begin: int) -> Excursions:
    """Return excursions that begin where they are far enough to be known as such."""
    found = excursions(distance)
    over = np.flatnonzero(distance > BEGIN)
    firsts = over[np.searchsorted(over, found.firsts)] if len(found) else found.firsts
    return Excursions(firsts + begin, found.ends + begin, found.heights)


def _is_due(steps: float, train: EventTrain) -> bool:
    count = max(1, round(steps))
    return count <= 3 and abs(steps - count) * train.period <= train.jitter + 1.0


def _after_due(train: EventTrain, clock: Clock, latest: int) -> int:
    """Return the row at which it is known that the event after ``latest`` is missing."""
    due = clock.times[latest] + train.period + train.jitter + 2.0
    return int(np.searchsorted(clock.times, due))
