"""Detects the time column of a table and the unit of its values.

Numbers are seconds, ms, us or ns since the epoch, by their size if the column's name has no unit.
Below 10^8 they count from a start of their own.  Texts are ISO 8601 (with RFC 3339); without a zone
they are UTC.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, timezone, tzinfo

import numpy as np
import pandas as pd

from reveal_analyzer.arrays import Floats, Ints
from reveal_analyzer.tables.ingest.open import TableFileError
from reveal_analyzer.tables.ingest.time_texts import (
    DATE,
    FARTHEST,
    TIME_OF_DAY,
    UNREADABLE,
    times_of,
)
from reveal_contract.time_units import NS_PER_SECOND

_UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": NS_PER_SECOND}
_SIZES = ((1e17, 1), (1e14, 1_000), (1e11, 1_000_000), (1e8, NS_PER_SECOND))
_EPOCH = 1e8  # 1973 in seconds: smaller numbers count from a start of their own
_NAME = re.compile(
    r"[\W_]*(time|date|ts|t|epoch|datetime|date[_ ]?time|time[_ ]?stamp|unix[_ ]?time(stamp)?"
    r"|elapsed|elapsed[_ ]time|wall[_ ]?time|relative[_ ]time(?:[_ ]\(\w+\))?"
    r"|time[_ ]of[_ ]day)[\W_]*"
    r"(?P<unit>s|sec|secs|seconds?|ms|msec|millis|milliseconds?|us|usec|micros|microseconds?"
    r"|ns|nsec|nanos|nanoseconds?|utc)?[\W_]*\Z",
    re.IGNORECASE,
)
_INDEX = re.compile(r"(index|row|sample|step|no\.?|#|id|)\Z|Unnamed: 0\Z", re.IGNORECASE)
_DIGITS = {8: "%Y%m%d", 12: "%Y%m%d%H%M", 14: "%Y%m%d%H%M%S"}  # of dates without marks
_MOST_ROWS = 10_000  # by which the column is found
_MOVES = 0.02  # of the rows of a clock have another time than the row above
_FEWEST_STEPS = 20  # by which a clock shows that it is none
_MOST_FALLS = 0.05  # of the steps of a clock that counts from a start of its own
_SHORT = re.compile(r"ts?\Z", re.IGNORECASE)  # a temperature may be called so, too
_ZONE = re.compile(r":\d\d[\d:.,]*\s*(?:(Z)|([+-])(\d\d):?(\d\d)?)\s*\Z", re.IGNORECASE)
_LISTED = 4


@dataclass(frozen=True)
class TimeColumn:
    """How a table gives times.

    ``column`` is ``None`` if rows are only numbered.  ``unit_ns`` is the value of 1, 0 for texts.
    ``zone`` is that of the texts (``None`` for numbers since the epoch).  ``of_day`` is the column
    of times if ``column`` has dates only.  ``digits`` is the form of dates that are written as
    numbers, such as 202305050850.
    """

    column: int | None
    unit_ns: int = 0
    absolute: bool = True
    zone: tzinfo | None = None
    of_day: int | None = None
    digits: str = ""

    def read(self, block: pd.DataFrame) -> Ints:
        """Return nanoseconds, ``UNREADABLE`` where a value is missing or is no time.

        ``block`` are rows of the table, its columns by number.
        """
        if self.column is None:
            raise ValueError("rows that are merely numbered hold no times")
        values = block[self.column]
        if self.digits:
            values = _dates_of_digits(values, self.digits)
        if self.unit_ns:
            return _numbers(values, self.unit_ns)
        if self.of_day is None:
            return times_of(values)
        # a date that was read as a time of its own would show midnight
        days = values.astype(str).str.strip().str[:10]
        return times_of(days + " " + block[self.of_day].astype(str).str.strip())

    def show(self, ns: int) -> str:
        """Return a time as the table writes it: a number of the same unit, or RFC 3339."""
        if self.unit_ns and self.column is not None:
            return _decimal(ns, self.unit_ns)
        if not self.absolute:
            return _decimal(ns, NS_PER_SECOND)
        seconds, rest = divmod(ns, NS_PER_SECOND)
        moment = datetime.fromtimestamp(seconds, self.zone or UTC).isoformat()
        fraction = f".{rest:09d}".rstrip("0") if rest else ""
        return (moment[:19] + fraction + moment[19:]).replace("+00:00", "Z")


def _decimal(ns: int, unit_ns: int) -> str:
    whole, rest = divmod(abs(ns), unit_ns)
    digits = len(str(unit_ns)) - 1
    fraction = f".{rest:0{digits}d}".rstrip("0") if rest else ""
    return f"{'-' if ns < 0 else ''}{whole}{fraction}"


def numbered_rows(period_ns: int) -> TimeColumn:
    """Return the time column of rows that are only numbered."""
    return TimeColumn(None, period_ns, absolute=False)


def find_time_column(
    names: Sequence[str], rows: pd.DataFrame, requested: str, period_ns: int
) -> TimeColumn | None:
    """Return the time column of a table from its first rows; ``None`` if it has none.

    ``requested`` names the column.  If it is "", the column is found: by its name, else a column of
    times in text, else a first column of numbers that rise like a clock's or a row's.  Raises
    ``TableFileError`` if the requested column has no times.
    """
    rows = rows.iloc[:_MOST_ROWS]
    if requested:
        index = _index_of(names, requested)
        clock = _time_column(index, names[index], rows[index], period_ns)
        if clock is None:
            raise TableFileError(
                f"column {requested} holds no times ({_sample(rows[index])}):"
                " write RFC 3339, ISO 8601, or seconds, ms, us or ns since the epoch"
            )
        return _with_time_of_day(clock, names, rows)
    found = [
        clock
        for index in _candidates(names, rows)
        if (clock := _time_column(index, names[index], rows[index], period_ns)) is not None
        and _trusted(names[index], index, clock, rows[index])
    ]
    # one that says which day it is, before one that counts from a start of its own
    clock = next((clock for clock in found if clock.absolute), next(iter(found), None))
    return _with_time_of_day(clock, names, rows) if clock else None


def _index_of(names: Sequence[str], requested: str) -> int:
    folded = [name.strip().casefold() for name in names]
    if requested in names:
        return list(names).index(requested)
    if requested.strip().casefold() in folded:
        return folded.index(requested.strip().casefold())
    listed = ", ".join(names[:_LISTED]) + (", ..." if len(names) > _LISTED else "")
    raise TableFileError(f"there is no column {requested}: the columns are {listed}")


def _candidates(names: Sequence[str], rows: pd.DataFrame) -> list[int]:
    """Return columns with a name for a time, then columns of text, then the first column."""
    named = [index for index, name in enumerate(names) if _NAME.match(name)]
    texts = [
        index for index, kind in enumerate(rows.dtypes) if not pd.api.types.is_numeric_dtype(kind)
    ]
    return list(dict.fromkeys([*named, *texts, 0])) if names else []


def _with_time_of_day(clock: TimeColumn, names: Sequence[str], rows: pd.DataFrame) -> TimeColumn:
    """Return the time column with a column of times added, if it has dates only."""
    if clock.column is None or not _all_like(rows[clock.column], DATE):
        return clock
    others = (
        index for index, name in enumerate(names) if index != clock.column and _NAME.match(name)
    )
    of_day = next((index for index in others if _all_like(rows[index], TIME_OF_DAY)), None)
    return replace(clock, of_day=of_day)


def _all_like(values: pd.Series, pattern: re.Pattern[str]) -> bool:
    return bool(len(values)) and all(pattern.match(str(value)) for value in values)


def _trusted(name: str, index: int, clock: TimeColumn, values: pd.Series) -> bool:
    """Return whether a column with an uncertain name behaves like a clock."""
    named = bool(_NAME.match(name))
    if named and clock.absolute:
        return True
    if not clock.unit_ns:
        return _moves(clock.read(values.to_frame(index)))
    times = _numbers(values, clock.unit_ns)
    if named:
        rising = bool((np.diff(times) > 0).all())
        return rising if _SHORT.match(name) else _advances(times)
    return index == 0 and _counts(name, clock, times)


def _counts(name: str, clock: TimeColumn, times: Ints) -> bool:
    """Return whether a first column of numbers rises as a clock's, or as the number of a row."""
    if len(times) < 3 or (times == UNREADABLE).any():
        return False
    steps = np.diff(times)
    if _INDEX.match(name):
        return bool((steps == clock.unit_ns).all())
    return clock.absolute and bool((steps > 0).all()) and bool(steps.max() < 4 * np.median(steps))


def _moves(times: Ints) -> bool:
    """Return whether rows have other times than those above, unlike a date of old."""
    return len(times) < 2 or float((np.diff(times) != 0).mean()) >= _MOVES


def _advances(times: Ints) -> bool:
    """Return whether times rise, fall as in a file that begins with the newest, or are regular."""
    known = times[times != UNREADABLE]
    steps, even = np.diff(known), np.diff(np.sort(known))
    if len(steps) < _FEWEST_STEPS:
        return True
    falls, rises = int((steps < 0).sum()), int((steps > 0).sum())
    if rises + falls > 0 and min(falls, rises) <= _MOST_FALLS * len(steps):
        return True
    return bool(0 < even.max() < 4 * np.median(even))  # rows that somebody has put into disorder


def _time_column(index: int, name: str, values: pd.Series, period_ns: int) -> TimeColumn | None:
    """Return the time column for a column's values if at least half of them are times."""
    if not pd.api.types.is_datetime64_any_dtype(values.dtype):
        known = _floats(values)
        known = known[np.isfinite(known)]
        if len(known) and 2 * len(known) >= len(values):
            return _numbered(index, name, known, period_ns)
    if pd.api.types.is_numeric_dtype(values.dtype):
        return None
    read = times_of(values)
    if not len(read) or (read != UNREADABLE).mean() < 0.5:
        return None
    return TimeColumn(index, zone=_zone(values))


def _numbered(index: int, name: str, known: Floats, period_ns: int) -> TimeColumn:
    match = _NAME.match(name)
    if (form := _form_of_digits(known)) and (match or len(form) > len(_DIGITS[8])):
        return TimeColumn(index, zone=UTC, digits=form)
    unit = _UNITS.get(_short((match["unit"] if match else "") or ""), 0)
    size = abs(float(known[-1]))
    if unit:
        return TimeColumn(index, unit, absolute=size * unit >= _EPOCH * NS_PER_SECOND)
    if by_size := next((ns for least, ns in _SIZES if size >= least), 0):
        return TimeColumn(index, by_size)
    numbers_rows = bool((known == np.rint(known)).all())
    return TimeColumn(index, (period_ns if numbers_rows else 0) or NS_PER_SECOND, absolute=False)


def _short(unit: str) -> str:
    """Return the short unit: ``milliseconds``, ``msec`` and ``ms`` are the same."""
    word = unit.lower()
    if word in ("", "utc"):
        return ""
    return {"m": "ms", "u": "us", "n": "ns", "s": "s"}.get(
        "u" if word[:3] == "mic" else word[0], ""
    )


def _numbers(values: pd.Series, unit_ns: int) -> Ints:
    """Return whole numbers exactly, fractions of s and ms to the us, the precision of a float."""
    if pd.api.types.is_integer_dtype(values.dtype) and not values.hasnans:
        whole = values.to_numpy(np.int64)
        if not len(whole) or max(int(whole.max()), -int(whole.min())) * unit_ns < FARTHEST:
            return np.asarray(whole * unit_ns, np.int64)
    step = 1_000 if unit_ns > 1_000 else 1
    with np.errstate(invalid="ignore", over="ignore"):
        steps = np.rint(_floats(values) * (unit_ns / step))
        good = np.abs(steps) < FARTHEST / step
    ns = np.where(good, steps, 0.0).astype(np.int64) * step
    return np.where(good, ns, UNREADABLE)


def _floats(values: pd.Series) -> Floats:
    try:
        numbers = pd.to_numeric(values, errors="coerce")
    except TypeError:  # lists and the like
        return np.full(len(values), np.nan)
    return np.asarray(numbers.to_numpy(np.float64, na_value=np.nan))


def _form_of_digits(known: Floats) -> str:
    """Return the form of numbers that are all dates of our time, such as 20230505; "" if not."""
    if (known != np.rint(known)).any() or (known <= 0).any():
        return ""
    texts = pd.Series(known).map("{:.0f}".format)
    form = _DIGITS.get(len(texts.iloc[0]), "")
    if not form or not texts.str.match(r"(?:19|20)\d+\Z").all():
        return ""
    dates = pd.to_datetime(texts, format=form, errors="coerce")
    return form if dates.notna().all() else ""


def _dates_of_digits(values: pd.Series, form: str) -> pd.Series:
    """Return dates that are written as numbers as times."""
    texts = pd.to_numeric(values, errors="coerce").map("{:.0f}".format, na_action="ignore")
    return pd.to_datetime(texts, format=form, errors="coerce", utc=True)


def _zone(values: pd.Series) -> tzinfo:
    """Return the zone of the first text; times that people enter are in this zone."""
    match = _ZONE.search(str(next(iter(values.dropna()), "")))
    if match is None or match[1]:
        return UTC
    offset = timedelta(hours=int(match[3]), minutes=int(match[4] or 0))
    return timezone(-offset if match[2] == "-" else offset)


def _sample(values: pd.Series) -> str:
    known = values.dropna()
    return f"its first is {str(known.iloc[0])[:40]!r}" if len(known) else "it is empty"
