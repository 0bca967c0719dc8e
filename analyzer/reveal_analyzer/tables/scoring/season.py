"""The daily course of each metric, for those that have one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.arrays import Bools, Floats, Ints
from reveal_analyzer.tables.scoring.scales import Scale, deviation, median, robust_scale
from reveal_contract.time_units import NS_PER_DAY

_LEAST_DAYS = 3  # before a course of a day can be told from a drift
_MOST_DAYS = 14  # of which a course is learned where the past goes on: hosts drift
_MOST_SLOTS = 288  # of five minutes
_EARNED = 0.8  # the course must leave this share of the spread or less


@dataclass(frozen=True)
class Level:
    """What is usual: a centre and a spread, or where that says more the course of the day.

    ``daily`` (m,) marks the metrics that are judged by their ``course`` (slots, m).
    """

    plain: Scale
    daily: Bools
    course: Floats
    off_course: Scale

    def distance(self, times: Ints, values: Floats) -> Floats:
        """Signed distance (n, m) from what is usual, in spreads; 0 where missing."""
        if not self.daily.any():
            return self.plain.distance(values)
        expected = self.course[_slots(times, len(self.course))]
        off = self.off_course.distance(values - expected)
        return np.where(self.daily, off, self.plain.distance(values))


def learn_level(
    times: Ints, values: Floats, period_ns: int, *, floor: Floats, newest: bool
) -> Level:
    """The usual level of metrics (n, m), whose spread is never below ``floor`` (m,).

    ``newest``: the course of the day is that of the last two weeks, not of all of the time.
    """
    plain = robust_scale(values, floor)
    day = NS_PER_DAY // period_ns if period_ns else 0
    if newest:
        times, values = times[-_MOST_DAYS * day :], values[-_MOST_DAYS * day :]
    # a day of two samples has no course
    if day < 4 or len(values) < _LEAST_DAYS * day:
        nothing = np.zeros(values.shape[1], np.bool_)
        return Level(plain, nothing, np.zeros((1, values.shape[1])), plain)
    course = _course(times, values, min(day, _MOST_SLOTS))
    off = values - course[_slots(times, len(course))]
    daily = deviation(off) < _EARNED * deviation(values)
    return Level(plain, daily, course, robust_scale(off, floor))


def _course(times: Ints, values: Floats, count: int) -> Floats:
    """Median of each slot of the day over the days, smoothed over three slots; (slots, m)."""
    slots = _slots(times, count)
    order = np.argsort(slots, kind="stable")
    edges = np.searchsorted(slots[order], np.arange(count + 1))
    course = np.tile(median(values), (count, 1))
    for slot in range(count):
        rows = order[edges[slot] : edges[slot + 1]]
        if rows.size:
            course[slot] = median(values[rows])
    return np.asarray((np.roll(course, 1, 0) + course + np.roll(course, -1, 0)) / 3.0)


def _slots(times: Ints, count: int) -> NDArray[np.intp]:
    """Which slot of its day each time lies in."""
    return np.asarray((times % NS_PER_DAY) // -(-NS_PER_DAY // count), np.intp)
