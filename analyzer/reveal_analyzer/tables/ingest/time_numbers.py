"""Reads times that are written as numbers: since an epoch, as digits of a date, or as days."""

from __future__ import annotations

import numpy as np
import pandas as pd

from reveal_analyzer.arrays import Floats, Ints
from reveal_analyzer.tables.ingest.time_texts import FARTHEST, UNREADABLE
from reveal_contract.time_units import NS_PER_DAY, NS_PER_SECOND

EXCEL_DAYS = (36_526, 73_050)  # of the years 2000 to 2099
_EXCEL_EPOCH = 25_569  # days from 1899-12-30 to 1970
_DIGITS = {8: "%Y%m%d", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}  # of dates without marks
DAY_DIGITS = len(_DIGITS[8])
EARLIEST_NS, LATEST_NS = 631_152_000 * NS_PER_SECOND, 4_102_444_800 * NS_PER_SECOND  # 1990, 2100
_SIZES = ((1e17, 1), (1e14, 1_000), (1e11, 1_000_000), (1e8, NS_PER_SECOND))
_MOST_STEPS = 4  # of the median, until the next row of a clock
# 100 ns from the year 1601 (Windows: FILETIME) and from the year 1 (.NET: DateTime.Ticks) to 1970
_TICKS = (116_444_736_000_000_000, 621_355_968_000_000_000)
_TICKS_A_SECOND, _NS_A_TICK = 10_000_000, 100
_YEAR_2000, _YEAR_2100 = 946_684_800, LATEST_NS // NS_PER_SECOND  # seconds since 1970
_REGULAR = 0.9  # of the steps of a clock that no name shows are the same
_JITTER_S = 0.1  # and differ by less
_FEWEST_STEPS = 10


def numbered_times(values: pd.Series, unit_ns: int) -> Ints:
    """Return whole numbers exactly, fractions of s and ms to the us, the precision of a float."""
    if pd.api.types.is_integer_dtype(values.dtype) and not values.hasnans:
        whole = values.to_numpy(np.int64)
        if not len(whole) or max(int(whole.max()), -int(whole.min())) * unit_ns < FARTHEST:
            return np.asarray(whole * unit_ns, np.int64)
    step = 1_000 if unit_ns > 1_000 else 1
    with np.errstate(invalid="ignore", over="ignore"):
        steps = np.rint(floats_of(values) * (unit_ns / step))
        good = np.abs(steps) < FARTHEST / step
    ns = np.where(good, steps, 0.0).astype(np.int64) * step
    return np.where(good, ns, UNREADABLE)


def floats_of(values: pd.Series) -> Floats:
    """Return a column as numbers, NaN where there is none."""
    try:
        numbers = pd.to_numeric(values, errors="coerce")
    except TypeError:  # lists and the like
        return np.full(len(values), np.nan)
    return np.asarray(numbers.to_numpy(np.float64, na_value=np.nan))


def excel_times(values: pd.Series) -> Ints:
    """Return ns since the epoch, to the millisecond: a float of days is no more precise."""
    with np.errstate(invalid="ignore", over="ignore"):
        ms = np.rint((floats_of(values) - _EXCEL_EPOCH) * (NS_PER_DAY / 1_000_000))
        good = np.abs(ms) < FARTHEST / 1_000_000
    return np.where(good, np.where(good, ms, 0.0).astype(np.int64) * 1_000_000, UNREADABLE)


def ticks_to_1970(known: Floats) -> int:
    """Return the ticks before 1970 of numbers that count ticks since 1601 or 1; 0 for others."""
    for ticks in _TICKS:
        seconds = (known - ticks) / _TICKS_A_SECOND
        if ((seconds >= _YEAR_2000) & (seconds < _YEAR_2100)).all():
            return ticks
    return 0


def ticks_times(values: pd.Series, ticks: int) -> Ints:
    """Return ns since 1970 for numbers that count from ``ticks`` before it."""
    if pd.api.types.is_integer_dtype(values.dtype) and not values.hasnans:
        since = values.to_numpy(np.int64) - ticks
        good = np.abs(since) < FARTHEST // _NS_A_TICK
        return np.where(good, np.where(good, since, 0) * _NS_A_TICK, UNREADABLE)
    return numbered_times(pd.Series(floats_of(values) - ticks), _NS_A_TICK)


def unit_by_size(size: float) -> int:
    """Return the ns of the unit of a number since 1970 by its size; 0 if it is too small."""
    return next((ns for least, ns in _SIZES if size >= least), 0)


def regular_epoch(rows: pd.DataFrame) -> tuple[int, int] | None:
    """Return a column with the regular moments of a clock, and its unit in ns; None without.

    Its steps are the same but for some jitter, which those of a counter are not.
    """
    for index, kind in enumerate(rows.dtypes):
        if pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_bool_dtype(kind):
            values = floats_of(rows[index])
            unit_ns = unit_by_size(float(np.abs(values[-1]))) if len(values) else 0
            if unit_ns and _is_regular(values, unit_ns):
                return index, unit_ns
    return None


def _is_regular(values: Floats, unit_ns: int) -> bool:
    seconds = values[np.isfinite(values)] * (unit_ns / NS_PER_SECOND)
    if not len(seconds) or seconds.min() < _YEAR_2000 or seconds.max() >= _YEAR_2100:
        return False
    steps = np.diff(np.unique(seconds))
    if len(steps) < _FEWEST_STEPS:
        return False
    middle = float(np.median(steps))
    near = np.abs(steps - middle) <= min(_JITTER_S, middle / 2)
    return middle <= NS_PER_DAY / NS_PER_SECOND and bool(near.mean() >= _REGULAR)


def form_of_digits(known: Floats) -> str:
    """Return the form of numbers that are all dates of our time, such as 20230505; "" if not."""
    if (known != np.rint(known)).any() or (known <= 0).any():
        return ""
    texts = pd.Series(known).map("{:.0f}".format)
    form = _DIGITS.get(len(texts.iloc[0]), "")
    if not form or not texts.str.match(r"(?:19|20)\d+\Z").all():
        return ""
    dates = pd.to_datetime(texts, format=form, errors="coerce")
    return form if dates.notna().all() else ""


def dates_of_digits(values: pd.Series, form: str) -> pd.Series:
    """Return dates that are written as numbers as times."""
    texts = pd.to_numeric(values, errors="coerce").map("{:.0f}".format, na_action="ignore")
    return pd.to_datetime(texts, format=form, errors="coerce", utc=True)


def is_epoch(times: Ints) -> bool:
    """Return whether ns rise from moment to moment of our time, each in one or more rows."""
    known = times[times != UNREADABLE]
    if not len(known) or known.min() < EARLIEST_NS or known.max() >= LATEST_NS:
        return False
    steps = np.diff(known)
    rises = steps[steps > 0]
    evenly = len(rises) > 0 and bool(rises.max() < _MOST_STEPS * np.median(rises))
    return evenly and bool((steps >= 0).all())
