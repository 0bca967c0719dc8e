"""Daily and weekly profile of each metric, for those that have one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reveal_analyzer.arrays import Bools, Floats, Indices, Ints
from reveal_analyzer.tables.scoring.scales import (
    Scale,
    Spreads,
    deviation,
    mean,
    median,
    robust_scale,
)
from reveal_contract.time_units import NS_PER_DAY, NS_PER_HOUR

_LEAST_DAYS = 3  # before a daily profile differs from a drift
_MOST_DAYS = 14  # of history in a profile that is learned again: hosts drift
_MOST_SLOTS = 288  # slots of five minutes
_MOST_IN_SLOT = 32  # samples of a day: quartiles need no more
_EARNED = 0.8  # share of the spread that a profile may leave
_WEEK_HOURS = 168
_REST_HOURS = 48  # of a week, wherever the weekend begins
_LEAST_WEEKS = 1.9
_EDGE = 0.3  # of a profile's range, between neighboring slots, or days in a slot
_ALIKE = 0.25  # share of the spread that days leave which are alike, edges and all
_SHARP = 0.5  # of a profile's range: an edge between two levels
_WIDER = 3.0  # than most slots
_QUARTILES = (0.25, 0.5, 0.75)


@dataclass(frozen=True)
class Profile:
    """Lowest and highest normal value of each slot of the day, (2 x slots, m).

    Both are the same, except near the edges of a profile, which may come early or late.
    The second half are the slots of the two rest days, which begin at an hour of the week.
    """

    low: Floats
    high: Floats
    rest: int

    def off(self, times: Ints, values: Floats) -> Floats:
        """Return values (n, m) less those that are normal by the profile."""
        count = len(self.low) // 2
        slots = _slots(times, count) + count * _rests(times, self.rest)
        return np.asarray(values - np.clip(values, self.low[slots], self.high[slots]))


@dataclass(frozen=True)
class NormalLevel:
    """What is normal: center and spread, or the profile of day and week where it explains more.

    ``daily`` (m,) marks the metrics that are compared with the profile.
    """

    plain: Scale
    daily: Bools
    profile: Profile | None
    residual: Scale

    def distance(self, times: Ints, values: Floats) -> Floats:
        """Return the signed distance (n, m) from the normal level in spreads; 0 where missing."""
        if self.profile is None or not self.daily.any():
            return self.plain.distance(values)
        residuals = self.residual.distance(self.profile.off(times, values))
        return np.where(self.daily, residuals, self.plain.distance(values))


@dataclass(frozen=True)
class Flattened:
    """Values (n, m) about their center, without the profile of day and week.

    ``level`` is the normal level of the values before.  ``edges`` (m,) marks metrics whose profile
    has edges, which no forecast expects.
    """

    values: Floats
    level: NormalLevel
    edges: Bools

    @classmethod
    def of(cls, times: Ints, values: Floats, period_ns: int, spreads: Spreads) -> Flattened:
        """Subtract the profile of the metrics that have one; ``spreads`` are those of values."""
        level = learn_level(times, values, period_ns, spreads, newest=False)
        if level.profile is None or not level.daily.any():
            return cls(values, level, np.zeros(values.shape[1], np.bool_))
        off = level.profile.off(times, values)
        flat = np.where(level.daily, level.plain.center + off, values)
        low, high = level.profile.low, level.profile.high
        sharp = (high - low).max(0) > _SHARP * (high.max(0) - low.min(0))
        alike = deviation(off) < _ALIKE * deviation(values)
        return cls(flat, level, level.daily & sharp & alike)


def learn_level(
    times: Ints, values: Floats, period_ns: int, spreads: Spreads, *, newest: bool
) -> NormalLevel:
    """Learn the normal level of metrics (n, m); ``spreads`` are those of the values.

    ``newest``: the profile is that of the last two weeks instead of all the time.
    """
    plain = spreads.scale()
    day = NS_PER_DAY // period_ns if period_ns else 0
    if newest:
        times, values = times[-_MOST_DAYS * day :], values[-_MOST_DAYS * day :]
    # a day of two samples has no profile
    if day < 4 or len(values) < _LEAST_DAYS * day:
        return NormalLevel(plain, np.zeros(values.shape[1], np.bool_), None, plain)
    # two weeks of history are too few for a profile of the week that is learned again
    weeks = 0.0 if newest else len(values) / (7 * day)
    step = max(1, day // (_MOST_SLOTS * _MOST_IN_SLOT))
    times, values = times[::step], values[::step]
    profile = _learn_profile(times, values, min(day, _MOST_SLOTS), weeks)
    residuals = profile.off(times, values)
    daily = deviation(residuals) < _EARNED * deviation(values)
    return NormalLevel(plain, daily, profile, robust_scale(residuals, spreads.least))


def _learn_profile(times: Ints, values: Floats, count: int, weeks: float) -> Profile:
    low, high = _bands(_slots(times, count), values, count)
    alike = Profile(np.concatenate([low, low]), np.concatenate([high, high]), 0)
    if weeks < _LEAST_WEEKS:
        return alike
    residuals = alike.off(times, values)
    rest = _rest_begin(times, residuals)
    resting = _rests(times, rest) == 1
    kinds = [
        _bands(_slots(times[chosen], count), values[chosen], count)
        for chosen in (~resting, resting)
    ]
    lows, highs = (np.concatenate(each) for each in zip(*kinds, strict=True))
    weekly = Profile(lows, highs, rest)
    better = deviation(weekly.off(times, values)) < _EARNED * deviation(residuals)
    low = np.where(better, weekly.low, alike.low)
    return Profile(low, np.where(better, weekly.high, alike.high), rest)


def _rest_begin(times: Ints, residuals: Floats) -> int:
    """Return the hour of the week from which two days differ most from the others."""
    hours = np.asarray((times // NS_PER_HOUR) % _WEEK_HOURS, np.intp)
    spread = deviation(residuals)
    scaled = residuals / np.where(spread > 0.0, spread, np.inf)
    means = np.stack([mean(scaled[hours == hour]) for hour in range(_WEEK_HOURS)])
    running = np.cumsum(np.concatenate([np.zeros((1, means.shape[1])), means, means]), axis=0)
    within = running[_REST_HOURS : _REST_HOURS + _WEEK_HOURS] - running[:_WEEK_HOURS]
    apart = within / _REST_HOURS - (means.sum(0) - within) / (_WEEK_HOURS - _REST_HOURS)
    return int((apart * apart).sum(1).argmax())


def _rests(times: Ints, begin: int) -> Indices:
    """Return 1 for times on a rest day, else 0."""
    hours = (times // NS_PER_HOUR - begin) % _WEEK_HOURS
    return np.asarray(hours < _REST_HOURS, np.intp)


def _bands(slots: Indices, values: Floats, count: int) -> tuple[Floats, Floats]:
    """Return what is normal in each slot, lowest and highest (slots, m).

    It is the mean of the medians of three slots; at an edge, where days or neighbors differ by much
    of the profile, all between.
    """
    quartiles = _quartiles(slots, values, count)
    middle = quartiles[1]
    near = np.stack([np.roll(middle, 1, 0), middle, np.roll(middle, -1, 0)])
    low, high = np.minimum(near.min(0), quartiles[0]), np.maximum(near.max(0), quartiles[2])
    width = high - low
    # noise alone is as wide in every slot
    edge = width > np.maximum(_EDGE * np.ptp(middle, axis=0), _WIDER * median(width))
    smooth = near.mean(0)
    return np.where(edge, low, smooth), np.where(edge, high, smooth)


def _quartiles(slots: Indices, values: Floats, count: int) -> Floats:
    """Return the quartiles of the known values of each slot, (3, slots, m)."""
    order = np.argsort(slots, kind="stable")
    ordered = slots[order]
    begins = np.searchsorted(ordered, np.arange(count))
    position = np.arange(len(slots)) - begins[ordered]
    days = np.full((count, int(position.max()) + 1, values.shape[1]), np.nan)
    days[ordered, position] = values[order]
    days.sort(axis=1)
    last = (~np.isnan(days)).sum(1) - 1
    unknown = last < 0
    middle = median(values) if unknown.any() else 0.0
    found = []
    for share in _QUARTILES:
        exact = share * np.maximum(last, 0)
        below = np.floor(exact).astype(np.intp)
        above = np.minimum(below + 1, np.maximum(last, 0))
        low, high = (
            np.take_along_axis(days, each[:, None], axis=1)[:, 0] for each in (below, above)
        )
        found.append(np.where(unknown, middle, low + (exact - below) * (high - low)))
    return np.stack(found)


def _slots(times: Ints, count: int) -> Indices:
    """Return the slot of the day of each time."""
    return np.asarray((times % NS_PER_DAY) // -(-NS_PER_DAY // count), np.intp)
