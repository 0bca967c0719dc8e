"""Common times for series of one period that were each sampled at moments of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from reveal_analyzer.arrays import Floats

_SAME_PERIOD = 0.01  # by which the periods of series may differ
_ROUND = 0.01  # by which a period may differ from the round one that was asked for
_MOST_EXTRA = 1.5  # times as many different times as the longest series has: no common moments


def common_times(series: Sequence[Sequence[Any]]) -> list[Sequence[Any]]:
    """Return the times of each series; where they interleave, those of common periods.

    Numbers stay in their unit, texts become nanoseconds since the epoch.  The times stay as they
    are if the series share them, or if their periods differ.
    """
    if len({time for times in series for time in times}) <= _MOST_EXTRA * max(map(len, series)):
        return list(series)
    read = [_numbers(times) for times in series]
    known = [each for each in read if each is not None and len(each) > 1]
    periods = [float(np.median(np.diff(np.sort(each)))) for each in known]
    if len(known) < len(series) or not periods or min(periods) <= 0:
        return list(series)
    if max(periods) > (1 + _SAME_PERIOD) * min(periods):
        return list(series)
    period = _round_period(float(np.median(periods)))
    return [_in_periods(each, period) for each in known]


def _numbers(times: Sequence[Any]) -> Floats | None:
    try:
        if times and isinstance(times[0], str):
            read = pd.to_datetime(list(times), utc=True, format="ISO8601")
            return np.asarray(read.as_unit("ns").asi8, np.float64)
        return np.asarray(times, np.float64)
    except (TypeError, ValueError):
        return None


def _round_period(period: float) -> float:
    """Return a round number near a period: samples come some milliseconds early or late."""
    rounded = float(f"{period:.2g}")
    return rounded if abs(rounded - period) <= _ROUND * period else period


def _in_periods(times: Floats, period: float) -> list[int]:
    """Return the begin of the period of each time; its middle is where most samples are."""
    first = float(times[0])
    phase = first + float(np.median((times - first + period / 2) % period)) - period / 2
    begin = np.floor(phase / period)
    number = begin + np.rint((times - phase) / period)
    found: list[int] = np.rint(number * period).astype(np.int64).tolist()
    return found
