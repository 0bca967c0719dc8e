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
_MOST_STEPS = 4  # of the median, until the next row of a clock


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
