"""Refuses columns of times that would be read as something else, or not at all."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from reveal_analyzer.arrays import Floats
from reveal_analyzer.tables.ingest.open import TableFileError
from reveal_analyzer.tables.ingest.time_numbers import (
    EARLIEST_NS,
    EXCEL_DAYS,
    LATEST_NS,
    floats_of,
)
from reveal_analyzer.tables.ingest.time_texts import UNREADABLE, times_of

_DAY_STEP = 0.5  # days, at most: otherwise they may be seconds
# days of the years 2000 to 2099 by other counts, which no flag reads
_OTHER_DAYS = {(730_486, 767_011): "days as Matlab counts", (2_451_544, 2_488_070): "Julian days"}
_MOST_NAMED = 0.9  # of the columns are called by a time
_FEWEST_NAMED, _SHORTEST = 3, 8
_LIKE_TIME = r"\d:\d\d\b|\b\d{1,4}([-/.])\d{1,2}\1\d{2,4}\b"
_LIKE_DATE = r"\d\d?\D+\d"
_PARTS = ("year", "month", "day")
_SAME_UNIT = 100  # times of one unit since the epoch differ by less than this factor
_MOST_ODD = 0.05  # of the times may be errors


def first_of(values: pd.Series) -> str:
    """Return the first value of a column in a few words."""
    known = values.dropna()
    return f"its first is {str(known.iloc[0])[:40]!r}" if len(known) else "it is empty"


def refuse_unread(columns: Sequence[tuple[str, bool]], rows: pd.DataFrame) -> None:
    """Raise ``TableFileError`` for a column that has times in a form that is not read.

    ``columns`` are the names of all, and whether each is that of a time.
    """
    refuse_times_as_names([name for name, _ in columns])
    if {name.strip().casefold() for name, _ in columns}.issuperset(_PARTS):
        raise TableFileError(
            "the times are in columns of their parts (year, month, day): write them to a column in"
            " RFC 3339, or add --period 1s to count rows instead"
        )
    for index, (name, is_time) in enumerate(columns):
        if pd.api.types.is_numeric_dtype(rows[index].dtype):
            continue
        values = rows[index].dropna().astype(str)
        like = values.str.match(_like(is_time))
        if len(values) and like.all() and 2 * values.nunique() > len(values):
            raise TableFileError(
                f"column {name or index + 1} seems to have times in a form that is not read"
                f" ({first_of(rows[index])}): write RFC 3339 with the year and the offset, or add"
                " --period 1s to count rows instead"
            )


def _like(is_time: bool) -> str:
    return f".*(?:{_LIKE_DATE if is_time else _LIKE_TIME})"


def refuse_days(name: str, values: pd.Series) -> None:
    """Raise ``TableFileError`` for numbers of days, which look like seconds since a start."""
    days = floats_of(values)
    if len(days) < 2 or not (days % 1).any() or _step(days) >= _DAY_STEP:
        return
    if _within(days, EXCEL_DAYS):
        raise TableFileError(
            f"column {name} looks like the days of a spreadsheet ({first_of(values)}): add"
            f" --excel-dates, or --time {name!r} if they are seconds"
        )
    if known := next((what for span, what in _OTHER_DAYS.items() if _within(days, span)), ""):
        raise TableFileError(
            f"column {name} looks like {known} ({first_of(values)}): write RFC 3339 or seconds"
            f" since 1970, or add --time {name!r} if they are seconds"
        )


def _within(days: Floats, span: tuple[int, int]) -> bool:
    return bool(((days >= span[0]) & (days < span[1])).all())


def _step(days: Floats) -> float:
    return float(np.median(np.abs(np.diff(days))))


def refuse_times_as_names(names: Sequence[str]) -> None:
    """Raise ``TableFileError`` where a table has a column for each time."""
    others = pd.Series(list(names[1:]), dtype=object)
    others = others.where(others.str.len() >= _SHORTEST)  # 2019 is a number, too
    known = (times_of(others) != UNREADABLE).mean() if len(others) >= _FEWEST_NAMED else 0.0
    if known >= _MOST_NAMED:
        raise TableFileError(
            f"the names of the columns are times, such as {names[1][:40]!r}: write a row for each"
            " time, and a column for each metric"
        )


def refuse_units(name: str, known: Floats, unit_ns: int) -> None:
    """Raise ``TableFileError`` for numbers since an epoch that are not all of this unit."""
    middle = float(np.median(known))
    others = (known * _SAME_UNIT <= middle) | (known >= _SAME_UNIT * middle)
    if others.mean() > _MOST_ODD:
        raise TableFileError(
            f"column {name} has times of several units, such as {known[0]:.15g} and"
            f" {known[-1]:.15g}: write all in seconds since 1970"
        )
    if not EARLIEST_NS <= middle * unit_ns < LATEST_NS:
        raise TableFileError(
            f"column {name} has numbers of unknown meaning as times ({middle:.15g}): write seconds"
            f" since 1970 or RFC 3339, or name the unit, as in `{name} (ms)`"
        )
