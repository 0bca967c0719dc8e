"""Daily profile of each metric, for those that have one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.arrays import Bools, Floats, Ints
from reveal_analyzer.tables.scoring.scales import Scale, deviation, median, robust_scale
from reveal_contract.time_units import NS_PER_DAY

_LEAST_DAYS = 3  # before a daily profile differs from a drift
_MOST_DAYS = 14  # of history in a profile that is learned again: hosts drift
_MOST_SLOTS = 288  # slots of five minutes
_EARNED = 0.8  # share of the spread that a profile may leave


@dataclass(frozen=True)
class NormalLevel:
    """What is normal: center and spread, or the profile of the day where it explains more.

    ``daily`` (m,) marks the metrics that are compared with their ``profile`` (slots, m).
    """

    plain: Scale
    daily: Bools
    profile: Floats
    residual: Scale

    def distance(self, times: Ints, values: Floats) -> Floats:
        """Return the signed distance (n, m) from the normal level in spreads; 0 where missing."""
        if not self.daily.any():
            return self.plain.distance(values)
        expected = self.profile[_slots(times, len(self.profile))]
        residuals = self.residual.distance(values - expected)
        return np.where(self.daily, residuals, self.plain.distance(values))


def learn_level(
    times: Ints, values: Floats, period_ns: int, *, floor: Floats, newest: bool
) -> NormalLevel:
    """Learn the normal level of metrics (n, m), with spreads of at least ``floor`` (m,).

    ``newest``: the profile of the day is that of the last two weeks instead of all the time.
    """
    plain = robust_scale(values, floor)
    day = NS_PER_DAY // period_ns if period_ns else 0
    if newest:
        times, values = times[-_MOST_DAYS * day :], values[-_MOST_DAYS * day :]
    # a day of two samples has no profile
    if day < 4 or len(values) < _LEAST_DAYS * day:
        none_daily = np.zeros(values.shape[1], np.bool_)
        return NormalLevel(plain, none_daily, np.zeros((1, values.shape[1])), plain)
    profile = _daily_profile(times, values, min(day, _MOST_SLOTS))
    residuals = values - profile[_slots(times, len(profile))]
    daily = deviation(residuals) < _EARNED * deviation(values)
    return NormalLevel(plain, daily, profile, robust_scale(residuals, floor))


def _daily_profile(times: Ints, values: Floats, count: int) -> Floats:
    """Return the median of each slot of the day over the days, (slots, m), smoothed."""
    slots = _slots(times, count)
    order = np.argsort(slots, kind="stable")
    edges = np.searchsorted(slots[order], np.arange(count + 1))
    profile = np.tile(median(values), (count, 1))
    for slot in range(count):
        rows = order[edges[slot] : edges[slot + 1]]
        if rows.size:
            profile[slot] = median(values[rows])
    return np.asarray((np.roll(profile, 1, 0) + profile + np.roll(profile, -1, 0)) / 3.0)


def _slots(times: Ints, count: int) -> NDArray[np.intp]:
    """Return the slot of the day of each time."""
    return np.asarray((times % NS_PER_DAY) // -(-NS_PER_DAY // count), np.intp)
