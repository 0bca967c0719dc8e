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

_EXCEL_STEP = 0.5  # days, at most: otherwise they may be seconds
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


def refuse_excel(name: str, values: pd.Series) -> None:
    """Raise ``TableFileError`` for numbers of days, which look like seconds since a start."""
    days = floats_of(values)
    least, most = EXCEL_DAYS
    within = len(days) > 1 and bool(((days >= least) & (days < most)).all())
    if within and (days % 1).any() and float(np.median(np.abs(np.diff(days)))) < _EXCEL_STEP:
        raise TableFileError(
            f"column {name} looks like the days of a spreadsheet ({first_of(values)}): add"
            f" --excel-dates, or --time {name!r} if they are seconds"
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
