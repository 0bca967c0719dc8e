"""Values without the events that recur by the clock, which are the job's own.

A regular event is replaced by the samples before it, so that no view of a sample shows it.  What
exceeds the other events of its train stays: the part of an event that is longer or larger than
they are.  Where an event is missing, the values are as far from normal as it would be, below it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from reveal_analyzer.arrays import Bools, Floats, Indices
from reveal_analyzer.tables.scoring.event_trains import Clock, EventTrain, trains
from reveal_analyzer.tables.scoring.excursions import BEGIN, Excursions, excursions, far_metrics
from reveal_analyzer.tables.scoring.scales import Scale, robust_scale

_SOURCE = 64  # samples before an event that replace it, again and again in a long one
_LEAST_EVENTS = 3
_COINCIDE = 0.7  # share of the events of a train that another metric has, too
_CHANCE = 0.35  # share of the rows near events: in more, they coincide by chance
_PRESENT = 0.5  # share of the events that are expected


_Side = tuple[int, float]  # a metric, and 1 or -1 for events above or below its normal level


@dataclass(frozen=True)
class _MetricTrain:
    """A train of a metric's events to one side (``sign``), and all its events to that side."""

    metric: int
    sign: float
    train: EventTrain
    events: Excursions


@dataclass(frozen=True)
class RecurringEvents:
    """The trains of events of some metrics, and the scale by which they were found."""

    scale: Scale
    found: tuple[_MetricTrain, ...]

    @classmethod
    def learn(cls, values: Floats, clock: Clock, scale: Scale | None = None) -> RecurringEvents:
        """Find the trains of metrics (n, m), NaN where missing.

        ``scale`` is their robust scale, if it is known.
        """
        scale = scale or robust_scale(values)
        out: dict[_Side, Excursions] = {}
        for metric, distance in far_metrics(values, scale):
            for sign in (1.0, -1.0):
                events = excursions(sign * distance)
                if len(events) >= _LEAST_EVENTS:
                    out[metric, sign] = events
        found = [
            _MetricTrain(*side, train, events)
            for side, events in out.items()
            for train in trains(events, clock)
        ]
        found += _shared(found, out, len(values))
        return cls(scale, tuple(found))

    def within(self, period: float) -> RecurringEvents:
        """Return the trains of at most a period."""
        found = tuple(each for each in self.found if each.train.period <= period)
        return RecurringEvents(self.scale, found)

    def known_before(self, row: int, clock: Clock) -> RecurringEvents:
        """Return the trains that the rows before ``row`` show, or are too short to show."""
        known = clock.until(row).known
        found = tuple(each for each in self.found if _recurs_before(each.train, row, known))
        return RecurringEvents(self.scale, found)

    def removed(self, values: Floats, clock: Clock) -> Floats:
        """Return the values (n, m) that the trains were found in without their events."""
        if not self.found:
            return values
        removal = _Removal(values, self.scale)
        for each in self.found:
            removal.remove(each, each.train.events)
            hidden, missing = _left_out(each, clock)
            removal.remove(each, hidden)
            if not each.train.skips:
                removal.add_missing(each, missing)
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


def _shared(
    found: Sequence[_MetricTrain], out: Mapping[_Side, Excursions], rows: int
) -> Iterator[_MetricTrain]:
    """Yield trains in metrics whose own events hide them: most events of a train are there, too."""
    for train in _distinct(found):
        have = {(each.metric, each.sign) for each in found if _are_same(train, each.train)}
        for side in sorted(out.keys() - have):
            events = _coinciding(train, out[side], rows)
            if events is not None:
                yield _MetricTrain(*side, replace(train, events=events, skips=True), out[side])


def _distinct(found: Sequence[_MetricTrain]) -> list[EventTrain]:
    """Return a train for all metrics that have the same, those with most events first."""
    distinct: list[EventTrain] = []
    for each in sorted(found, key=lambda each: -len(each.train.events)):
        if not any(_are_same(each.train, other) for other in distinct):
            distinct.append(each.train)
    return distinct


def _are_same(train: EventTrain, other: EventTrain) -> bool:
    """Return whether most events of two trains begin together."""
    onsets, others = train.events.firsts, other.events.firsts
    near = max(_together(train), _together(other))
    return min(_met(onsets, others, near), _met(others, onsets, near)) >= _COINCIDE


def _met(onsets: Indices, others: Indices, near: int) -> float:
    """Return the share of onsets that have one of the others near."""
    found = np.searchsorted(others, onsets + near, "right") > np.searchsorted(others, onsets - near)
    return float(found.mean())


def _coinciding(train: EventTrain, events: Excursions, rows: int) -> Excursions | None:
    """Return the parts of events that coincide with a train; None if that can be chance."""
    near = _together(train)
    if float((events.lengths + 2 * near).sum()) > _CHANCE * rows:
        return None
    onsets = train.events.firsts
    meets, parts = _meeting(events, onsets - near, onsets + near)
    return parts if float(meets.mean()) >= _COINCIDE else None


def _meeting(events: Excursions, begins: Indices, latest: Indices) -> tuple[Bools, Excursions]:
    """Return which spans of rows an event meets, and the parts of these events from there on.

    ``begins`` are the first rows of the spans, ``latest`` the last.
    """
    chosen = np.minimum(np.searchsorted(events.ends, begins, "right"), len(events) - 1)
    meets = (events.firsts[chosen] <= latest) & (events.ends[chosen] > begins)
    chosen = chosen[meets]
    firsts = np.maximum(events.firsts[chosen], begins[meets])
    return meets, Excursions(firsts, events.ends[chosen], events.heights[chosen])


def _together(train: EventTrain) -> int:
    """Return the samples between events of different metrics that are the same event."""
    return max(3, int(0.02 * train.period))


def _recurs_before(train: EventTrain, row: int, known: float) -> bool:
    """Return whether at least half of the events expected before a row are there."""
    return int((train.events.firsts < row).sum()) >= _PRESENT * (known // train.period)


class _Removal:
    """Collects what is removed from values, metric by metric."""

    def __init__(self, values: Floats, scale: Scale) -> None:
        self._values, self._scale = values, scale
        # by metric and sign: the normal distance of each row in an event, those of trains added up
        self._normal: dict[_Side, Floats] = {}
        self._missing: dict[int, Floats] = {}

    def distance(self, metric: int) -> Floats:
        """Return the signed distance (n,) of a metric in spreads."""
        spread = self._scale.spread[metric]
        return np.asarray((self._values[:, metric] - self._scale.center[metric]) / spread)

    def remove(self, each: _MetricTrain, events: Excursions) -> None:
        """Remove events up to the length and height of their train."""
        ends = np.minimum(events.ends, events.firsts + each.train.longest)
        empty = np.zeros(len(self._values))
        normal = self._normal.setdefault((each.metric, each.sign), empty)
        within = np.zeros(len(normal), np.bool_)
        within[_rows_of(events.firsts, ends)] = True
        normal[within] += each.train.highest

    def add_missing(self, each: _MetricTrain, onsets: Indices) -> None:
        """Add an excursion to the other side where an event is missing."""
        length = int(np.median(each.train.events.lengths))
        ends = np.minimum(onsets + length, len(self._values))
        missing = self._missing.setdefault(each.metric, np.zeros(len(self._values)))
        missing[_rows_of(onsets, ends)] -= each.sign * each.train.lowest

    def result(self) -> Floats:
        """Return the values without what was removed."""
        out = self._values.copy()
        for metric in {metric for metric, _ in self._normal}:
            distance = self.distance(metric)
            regular, excess = np.zeros(len(out), np.bool_), self._missing.get(metric, 0.0)
            for sign in (1.0, -1.0):
                normal = self._normal.get((metric, sign), np.zeros(len(out)))
                regular |= normal > 0.0
                above = np.where(normal > 0.0, sign * distance - normal, 0.0)
                excess = excess + sign * np.fmax(above, 0.0)
            rows, sources = _sources(regular | np.isnan(self._values[:, metric]), regular)
            out[rows, metric] = self._values[sources, metric]
            out[:, metric] += excess * self._scale.spread[metric]
        return out


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


def _left_out(each: _MetricTrain, clock: Clock) -> tuple[Excursions, Indices]:
    """Return events of a train hidden in another event, and the rows at which one is missing."""
    train = each.train
    firsts = train.events.firsts
    onsets, stretch = clock.times[firsts], clock.stretch[firsts]
    counts = np.round(np.diff(onsets) / train.period).astype(np.intp)
    alone = np.flatnonzero((counts == 2) & (np.diff(stretch) == 0))
    between = onsets[alone] + 0.5 * (onsets[alone + 1] - onsets[alone])
    # before the first event and after the last one it may not recur yet, or no more
    outside = np.array([onsets[0] - train.period, onsets[-1] + train.period])
    due = np.concatenate([between, outside[(outside > clock.times[0]) & (outside < clock.end)]])
    begins, latest = (clock.rows(due + step) for step in (-train.jitter - 1.0, train.jitter + 1.0))
    is_hidden, hidden = _meeting(each.events, begins, latest)
    is_missing = ~is_hidden & (np.arange(len(due)) < len(between))
    return hidden, clock.rows(due[is_missing])


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
            known = _after_due(train, clock, latest)
            if not _is_hidden(train, distance[:known], clock, latest):
                missing.append(known)
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
    return int(clock.rows(clock.times[latest] + train.period + train.jitter + 2.0))


def _is_hidden(train: EventTrain, distance: Floats, clock: Clock, latest: int) -> bool:
    """Return whether another event covers the time at which the one after ``latest`` is due."""
    begin = clock.times[latest] + train.period - train.jitter - 1.0
    around = distance[int(clock.rows(begin)) :]
    return bool((around > BEGIN).any())
