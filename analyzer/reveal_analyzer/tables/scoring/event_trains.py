"""Trains of events: excursions of a metric that recur by the clock.

Checkpoints, evaluations, log rotation, backups and the working day recur after the same time, give
or take some jitter, and are not skipped often.  Excursions that are linked by such steps through
most of a run are a train; all others are not, whatever their shape.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.arrays import Bools, Floats, Indices
from reveal_analyzer.tables.scoring.excursions import Excursions
from reveal_analyzer.tables.scoring.scales import MAD
from reveal_contract.time_units import NS_PER_DAY

LEAST_EVENTS = 4  # fewer recur by chance
_LEAST_DAYS_APART = 5  # events, if they are whole days apart
_MANY_EVENTS = 6  # with fewer, the jitter must be small
_SIGNIFICANT = 3.5  # standard deviations of a number of steps found by chance
_LEAST_PERIOD = 5.0  # samples
_SKIPPED = 3  # periods: a weekend of a daily event is skipped
_JITTER = 0.25  # of the period
_MOST_JITTER = 0.3  # of the period, with rounding
_SMALL_JITTER = 0.12
_CHANCE = 0.35  # of the tolerance: the spread of steps is wider if they are linked by chance
_ROUNDING = 1.5  # samples
_REGULAR = 0.75  # share of steps of a single period: five of a week's seven days
_COVERED = 0.5  # share of the run: what began recently may be a fault
_SKIPS = 0.1  # of the steps: with more left out, an event that is missing is normal
_ALIKE = 0.7  # share of events of similar length
_MOST_TRAINS = 3  # of a metric, to one side


@dataclass(frozen=True)
class Clock:
    """Times of the rows (n,) in periods of the table, and the stretch without a gap of each."""

    times: Floats
    stretch: Indices
    day: float

    @classmethod
    def of(cls, times_ns: NDArray[np.int64], since: Indices, period_ns: int) -> Clock:
        """Return the clock of rows whose times may jump back where a baseline ends."""
        steps = np.diff(times_ns) / max(1, period_ns)
        steps[steps <= 0.0] = 1.0
        times = np.concatenate([np.zeros(min(1, len(times_ns))), np.cumsum(steps)])
        stretch = np.cumsum(since == 0)
        return cls(times, np.asarray(stretch, np.intp), NS_PER_DAY / max(1, period_ns))

    def until(self, end: int) -> Clock:
        """Return the clock of the first rows."""
        return Clock(self.times[:end], self.stretch[:end], self.day)

    def rows(self, times: Floats | float) -> Indices:
        """Return the first rows that are no earlier than these times."""
        return np.asarray(np.searchsorted(self.times, times), np.intp)

    @property
    def end(self) -> float:
        """Return the time of the last row."""
        return float(self.times[-1])

    @property
    def known(self) -> float:
        """Return the time in stretches."""
        steps = np.diff(self.times)
        return float(steps[np.diff(self.stretch) == 0].sum()) + 1.0


@dataclass(frozen=True)
class EventTrain:
    """Events that recur every ``period`` samples, within ``jitter``.

    ``skips`` tells whether events are left out so often that a missing event is normal.
    """

    events: Excursions
    period: float
    jitter: float
    skips: bool

    @property
    def longest(self) -> int:
        """Return the number of rows after which an event is longer than normal."""
        lengths = self.events.lengths
        return int(max(2.0 * np.median(lengths), 1.25 * np.quantile(lengths, 0.8))) + 1

    @property
    def highest(self) -> float:
        """Return the distance above which an event is larger than normal."""
        return 1.3 * float(np.quantile(self.events.heights, 0.75)) + 2.0

    @property
    def lowest(self) -> float:
        """Return the distance that an event reaches at least, in general."""
        return float(np.quantile(self.events.heights, 0.25))


def trains(events: Excursions, clock: Clock) -> list[EventTrain]:
    """Return the trains of a metric's excursions to one side, those with most events first."""
    found: list[EventTrain] = []
    while len(events) >= _LEAST_DAYS_APART and len(found) < _MOST_TRAINS:
        best = _best_train(events, clock)
        if best is None:
            break
        train, members = best
        found.append(train)
        events = events.selected(~members)
    return found


def _best_train(events: Excursions, clock: Clock) -> tuple[EventTrain, Bools] | None:
    best: tuple[EventTrain, Bools] | None = None
    for period in _periods(clock.times[events.firsts]):
        members = _train(events, clock, period)
        if members is not None and (best is None or members[1].sum() > best[1].sum()):
            best = members
    return best


def _periods(onsets: Floats) -> list[float]:
    """Return the likely periods of onsets: of each event to the next, or to one after it."""
    found: list[float] = []
    for lag in (1, 2, 3):
        steps = np.sort(onsets[lag:] - onsets[:-lag])
        if not len(steps):
            break
        if lag == 1:
            found.append(float(np.median(steps)))
        alike = np.searchsorted(steps, 1.1 * steps, side="right") - np.arange(len(steps))
        first = int(np.argmax(alike))
        found.append(float(np.median(steps[first : first + int(alike[first])])))
    return [period for period in dict.fromkeys(found) if period >= _LEAST_PERIOD]


def _train(events: Excursions, clock: Clock, period: float) -> tuple[EventTrain, Bools] | None:
    """Return the train of a period with its members, or None if there is none."""
    tolerance = min(_JITTER * period + _ROUNDING, _MOST_JITTER * period)
    links = _Links.of(events, clock, period, tolerance)
    jitter = links.jitter
    if jitter is None:
        return None
    links = _Links.of(events, clock, links.period, jitter)
    members = links.members(_least_events(period, clock.day))
    steps = links.steps[members & (links.steps > 0)]
    if (
        not len(steps)
        or links.are_chance(clock.known)
        or not _regular(links, steps, members, clock.known)
    ):
        return None
    chosen = events.selected(members)
    if not _alike(chosen.lengths):
        return None
    skips = bool((steps - 1).sum() > max(1.0, _SKIPS * len(steps)))
    return EventTrain(chosen, links.period, jitter, skips), members


def _least_events(period: float, day: float) -> int:
    """Return how many events make a train: fewer if they are whole days apart."""
    days = round(period / day)
    exact = days >= 1 and abs(period - days * day) <= max(_ROUNDING, 0.01 * day)
    return _LEAST_DAYS_APART if exact else LEAST_EVENTS


def _regular(links: _Links, steps: Indices, members: Bools, known: float) -> bool:
    if members.sum() < _MANY_EVENTS and links.tolerance > _SMALL_JITTER * links.period + _ROUNDING:
        return False
    # events of half the period are linked twice over
    between = float(np.ptp(links.onsets[members]))
    covered = min(float(steps.sum()) * links.period, between) + links.period
    return covered >= _COVERED * known and float((steps == 1).mean()) >= _REGULAR


def _alike(lengths: Indices) -> bool:
    middle = float(np.median(lengths))
    near = (lengths >= 0.5 * middle - 2) & (lengths <= 2.0 * middle + 2)
    return bool(near.mean() >= _ALIKE)


@dataclass(frozen=True)
class _Links:
    """The event that follows each event after a few periods, -1 for none.

    ``steps`` is that number of periods, 0 for the next event after a gap.
    """

    onsets: Floats
    following: Indices
    steps: Indices
    period: float
    tolerance: float

    @classmethod
    def of(cls, events: Excursions, clock: Clock, period: float, tolerance: float) -> _Links:
        onsets, stretch = clock.times[events.firsts], clock.stretch[events.firsts]
        following = np.full(len(onsets), -1, np.intp)
        steps = np.zeros(len(onsets), np.intp)
        free = np.ones(len(onsets), np.bool_)  # not yet the follower of another
        for count in range(1, _SKIPPED + 1):
            near, deviation = _nearest(onsets, onsets + count * period)
            # in a long step the deviations of several add up
            fits = (following < 0) & (deviation <= tolerance) & (near > np.arange(len(onsets)))
            fits &= free[near] & (stretch[near] == stretch)
            chosen = _nearest_of_each(near, deviation, fits)
            following[chosen], steps[chosen] = near[chosen], count
            free[near[chosen]] = False
        after_gap = np.flatnonzero((following[:-1] < 0) & (np.diff(stretch) > 0) & free[1:])
        following[after_gap] = after_gap + 1
        return cls(onsets, following, steps, period, tolerance)

    @property
    def jitter(self) -> float | None:
        """Return the tolerance that suits the events that are linked, None if there are too few."""
        linked = np.flatnonzero(self.members(_LEAST_DAYS_APART) & (self.steps == 1))
        if len(linked) < _LEAST_DAYS_APART - 1:
            return None
        steps = self.onsets[self.following[linked]] - self.onsets[linked]
        spread = MAD * float(np.median(np.abs(steps - np.median(steps))))
        if spread > _CHANCE * self.tolerance:
            return None
        return min(4.0 * spread + _ROUNDING + 0.02 * self.period, self.tolerance)

    def are_chance(self, known: float) -> bool:
        """Return whether as many steps of a period would be found if events came at random."""
        count = len(self.onsets)
        single = np.flatnonzero(self.steps == 1)
        steps = self.onsets[self.following[single]] - self.onsets[single]
        # steps by chance are anywhere within the tolerance
        farthest = float(np.abs(steps - self.period).max(initial=0.0))
        tolerance = min(self.tolerance, 1.25 * farthest + _ROUNDING)
        chance = 1.0 - float(np.exp(-2.0 * tolerance * count / known))
        expected, spread = count * chance, float(np.sqrt(count * chance * (1.0 - chance)))
        return float((self.steps == 1).sum()) < expected + _SIGNIFICANT * spread

    def members(self, least: int) -> Bools:
        """Return the events that are linked with at least so many others."""
        after = np.ones(len(self.following), np.intp)
        before = np.ones(len(self.following), np.intp)
        links = [(event, follower) for event, follower in enumerate(self.following) if follower > 0]
        for event, follower in reversed(links):
            after[event] = after[follower] + 1
        for event, follower in links:
            before[follower] = before[event] + 1
        return np.asarray(after + before - 1 >= least)


def _nearest(onsets: Floats, due: Floats) -> tuple[Indices, Floats]:
    """Return the index of the onset nearest to each time, and how far it is."""
    above = np.clip(np.searchsorted(onsets, due), 1, len(onsets) - 1)
    below = above - 1
    near = np.where(due - onsets[below] <= onsets[above] - due, below, above)
    return near, np.abs(onsets[near] - due)


def _nearest_of_each(near: Indices, deviation: Floats, fits: Bools) -> Indices:
    """Return for each target the event that is nearest to it."""
    chosen = np.flatnonzero(fits)
    order = chosen[np.lexsort((deviation[chosen], near[chosen]))]
    _, first = np.unique(near[order], return_index=True)
    return np.asarray(order[first], np.intp)
