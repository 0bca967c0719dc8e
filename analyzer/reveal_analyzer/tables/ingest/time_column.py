"""Detects the time column of a table and the unit of its values.

Numbers are seconds, ms, us or ns since the epoch, by their size if the column's name has no unit.
Below 10^8 they count from a start of their own.  Texts are ISO 8601 (with RFC 3339); without a zone
they are UTC.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo

import numpy as np
import pandas as pd

from reveal_analyzer.arrays import Floats, Ints
from reveal_analyzer.tables.ingest.open import TableFileError
from reveal_analyzer.tables.ingest.refused_times import (
    first_of,
    refuse_days,
    refuse_units,
    refuse_unread,
)
from reveal_analyzer.tables.ingest.time_names import (
    ELAPSED,
    INDEX,
    NAME,
    NUMBERED,
    OF_TRAINING,
    SHORT,
    unit_named,
)
from reveal_analyzer.tables.ingest.time_numbers import (
    DAY_DIGITS,
    EXCEL_DAYS,
    dates_of_digits,
    excel_times,
    floats_of,
    form_of_digits,
    is_epoch,
    numbered_times,
    regular_epoch,
    ticks_times,
    ticks_to_1970,
    unit_by_size,
)
from reveal_analyzer.tables.ingest.time_texts import (
    DATE,
    TIME_OF_DAY,
    UNREADABLE,
    DayOrder,
    clock_times_of,
    day_order,
    spelled_as_iso,
    times_of,
)
from reveal_analyzer.tables.ingest.yearless_times import are_yearless, order_of, with_years
from reveal_contract.time_units import NS_PER_SECOND

_EPOCH = 1e8  # 1973 in seconds: smaller numbers count from a start of their own
_MOST_ROWS = 10_000  # by which the column is found
_MOVES = 0.02  # of the rows of a clock have another time than the row above
_FEWEST_STEPS = 20  # by which a clock shows that it is none
_MOST_FALLS = 0.05  # of the steps of a clock that counts from a start of its own
_ZONE = re.compile(r":\d\d[\d:.,]*\s*(?:(Z)|([+-])(\d\d):?(\d\d)?)\s*\Z", re.IGNORECASE)
_LISTED = 4


@dataclass(frozen=True)
class TimeColumn:
    """How a table gives times.

    ``column`` is ``None`` if rows are only numbered.  ``unit_ns`` is the value of 1, 0 for texts.
    ``zone`` is that of the texts (``None`` for numbers since the epoch).  ``of_day`` is the column
    of times if ``column`` has dates only.  ``digits`` is the form of dates that are written as
    numbers, such as 202305050850.  ``ticks``: numbers count ticks of 100 ns from as many before
    1970.  ``order`` is that of day and month where the year is last.
    ``of_clock``: texts such as 9:00:07 have no day; ``minutes_first``: two numbers in them are
    minutes and seconds.  ``excel``: numbers are days as spreadsheets count them.  ``since``: times
    have no year, and are after this day.
    """

    column: int | None
    unit_ns: int = 0
    absolute: bool = True
    zone: tzinfo | None = None
    of_day: int | None = None
    digits: str = ""
    order: DayOrder = DayOrder.NONE
    of_clock: bool = False
    minutes_first: bool = False
    excel: bool = False
    since: date | None = None
    ticks: int = 0

    @property
    def has_time_of_day(self) -> bool:
        """Return whether its times are those of a clock, with or without a day."""
        return self.absolute or self.of_clock

    def read(self, block: pd.DataFrame) -> Ints:
        """Return nanoseconds, ``UNREADABLE`` where a value is missing or is no time.

        ``block`` are rows of the table, its columns by number.
        """
        if self.column is None:
            raise ValueError("rows that are merely numbered hold no times")
        values = block[self.column]
        if self.excel or self.ticks:
            return ticks_times(values, self.ticks) if self.ticks else excel_times(values)
        if self.of_clock:
            return clock_times_of(values, minutes_first=self.minutes_first)
        if self.digits:
            values = dates_of_digits(values, self.digits)
        if self.unit_ns:
            return numbered_times(values, self.unit_ns)
        if self.since is not None:
            return times_of(with_years(values, self.since, self.order))
        if self.of_day is None:
            return times_of(values, self.order)
        # a date that was read as a time of its own would show midnight
        days = values.astype(str).str.strip().str.extract(r"^([^\sT]*)", expand=False)
        return times_of(days + " " + block[self.of_day].astype(str).str.strip(), self.order)

    def show(self, ns: int) -> str:
        """Return a time as the table writes it: a number of the same unit, or RFC 3339."""
        if self.unit_ns and self.column is not None:
            return _decimal(ns, self.unit_ns)
        if self.of_clock:
            return _of_clock(ns)
        if not self.absolute:
            return _decimal(ns, NS_PER_SECOND)
        seconds, rest = divmod(ns, NS_PER_SECOND)
        moment = datetime.fromtimestamp(seconds, self.zone or UTC).isoformat()
        fraction = f".{rest:09d}".rstrip("0") if rest else ""
        return (moment[:19] + fraction + moment[19:]).replace("+00:00", "Z")


def _of_clock(ns: int) -> str:
    seconds, rest = divmod(ns, NS_PER_SECOND)
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    return f"{seconds // 3600}:{seconds // 60 % 60:02d}:{seconds % 60:02d}{fraction}"


def _decimal(ns: int, unit_ns: int) -> str:
    if unit_ns > NS_PER_SECOND:  # minutes and hours have no finite decimals
        return f"{ns / unit_ns:.9g}"
    whole, rest = divmod(abs(ns), unit_ns)
    digits = len(str(unit_ns)) - 1
    fraction = f".{rest:0{digits}d}".rstrip("0") if rest else ""
    return f"{'-' if ns < 0 else ''}{whole}{fraction}"


def numbered_rows(period_ns: int) -> TimeColumn:
    """Return the time column of rows that are only numbered."""
    return TimeColumn(None, period_ns, absolute=False)


@dataclass(frozen=True)
class TimeRequest:
    """What the caller knows of a table's times.

    ``column`` names the time column ("": find it); ``period_ns`` is the period of numbered rows;
    ``order`` is that of day and month; ``excel``: days are numbered as spreadsheets do; ``since``
    is a day that the file names, for times without a year.
    """

    column: str = ""
    period_ns: int = 0
    order: DayOrder = DayOrder.NONE
    excel: bool = False
    since: date | None = None


def find_time_column(
    names: Sequence[str], rows: pd.DataFrame, request: TimeRequest
) -> TimeColumn | None:
    """Return the time column of a table from its first rows; ``None`` if it has none.

    A column that is not named is found: by its name, else a column of times in text, else a first
    column of numbers that rise like a clock's or a row's.  Raises ``TableFileError`` if the
    requested column has no times, or if the order of day and month is in doubt.
    """
    rows = rows.iloc[:_MOST_ROWS]
    if request.column:
        index = index_of(names, request.column)
        clock = _time_column(index, names[index], rows[index], request)
        if clock is None:
            raise TableFileError(
                f"column {request.column} holds no times ({first_of(rows[index])}):"
                " write RFC 3339, ISO 8601, or seconds, ms, us or ns since the epoch"
            )
        return _with_time_of_day(_decided(clock, names, rows), names, rows, request)
    found = [
        clock
        for index in _candidates(names, rows)
        if (clock := _time_column(index, names[index], rows[index], request)) is not None
        and _trusted(names[index], index, clock, rows[index])
    ]
    # one that says which day it is, before one that counts from a start of its own
    clear = (clock for clock in found if clock.absolute and clock.order is not DayOrder.IN_DOUBT)
    clock = next(clear, None) or next((clock for clock in found if clock.absolute), None)
    clock = clock or next(iter(found), None)
    if clock is None and not request.period_ns and (regular := regular_epoch(rows)):
        return TimeColumn(*regular)
    if clock is None:
        if not request.period_ns:
            refuse_unread([(name, bool(NAME.match(name))) for name in names], rows)
        return None
    if clock.column is not None and not clock.absolute and clock.unit_ns == NS_PER_SECOND:
        refuse_days(names[clock.column], rows[clock.column])
    return _with_time_of_day(_decided(clock, names, rows), names, rows, request)


def _decided(clock: TimeColumn, names: Sequence[str], rows: pd.DataFrame) -> TimeColumn:
    """Return the time column; raises ``TableFileError`` if its days may be months."""
    if clock.column is None or clock.order is not DayOrder.IN_DOUBT:
        return clock
    first = str(rows[clock.column].dropna().iloc[0]).strip()
    raise TableFileError(
        f"column {names[clock.column]} does not say which of day and month is first, as in"
        f" {first[:30]!r}: add --day-first or --month-first"
    )


def index_of(names: Sequence[str], requested: str) -> int:
    """Return the column of this name, in any case; raises ``TableFileError``."""
    folded = [name.strip().casefold() for name in names]
    if requested in names:
        return list(names).index(requested)
    if requested.strip().casefold() in folded:
        return folded.index(requested.strip().casefold())
    listed = ", ".join(names[:_LISTED]) + (", ..." if len(names) > _LISTED else "")
    raise TableFileError(f"there is no column {requested}: the columns are {listed}")


def _candidates(names: Sequence[str], rows: pd.DataFrame) -> list[int]:
    """Return columns with a name for a time, then columns of text, then the first column."""
    named = [index for index, name in enumerate(names) if NAME.match(name)]
    texts = [
        index for index, kind in enumerate(rows.dtypes) if not pd.api.types.is_numeric_dtype(kind)
    ]
    unnamed = range(len(names)) if names and names == _unnamed(len(names)) else [0]
    return list(dict.fromkeys([*named, *texts, *unnamed])) if names else []


def _unnamed(count: int) -> tuple[str, ...]:
    """Return the names of the columns of a table without a header."""
    return tuple(f"c{number}" for number in range(1, count + 1))


def _with_time_of_day(
    clock: TimeColumn, names: Sequence[str], rows: pd.DataFrame, request: TimeRequest
) -> TimeColumn:
    """Return the time column with the other half of its times, if it has only days or times."""
    if clock.of_clock and clock.column is not None and not request.column:
        days = next((index for index in range(len(names)) if _all_like(rows[index], DATE)), None)
        dated = _time_column(days, names[days], rows[days], request) if days is not None else None
        if dated is not None and dated.absolute:  # eight digits may be a quantity
            return replace(_decided(dated, names, rows), of_day=clock.column)
    if clock.column is None or not _all_like(rows[clock.column], DATE):
        return clock
    others = (index for index in range(len(names)) if index != clock.column)
    of_day = next((index for index in others if _all_like(rows[index], TIME_OF_DAY)), None)
    return replace(clock, of_day=of_day)


def _all_like(values: pd.Series, pattern: re.Pattern[str]) -> bool:
    return bool(len(values)) and all(pattern.match(str(value)) for value in values)


def _trusted(name: str, index: int, clock: TimeColumn, values: pd.Series) -> bool:
    """Return whether a column with an uncertain name behaves like a clock."""
    named = bool(NAME.match(name))
    if named and clock.absolute:
        return True
    if not clock.unit_ns:
        return _moves(clock.read(values.to_frame(index)))
    times = numbered_times(values, clock.unit_ns)
    if OF_TRAINING.match(name):
        return False
    if named:
        rising = bool((np.diff(times) > 0).all())
        return rising if SHORT.match(name) else _advances(times)
    if NUMBERED.match(name) and clock.absolute:
        return is_epoch(times)
    return index == 0 and _counts(name, clock, times)


def _counts(name: str, clock: TimeColumn, times: Ints) -> bool:
    """Return whether a first column of numbers rises as a clock's, or as the number of a row."""
    if len(times) < 3 or (times == UNREADABLE).any():
        return False
    steps = np.diff(times)
    if INDEX.match(name):
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


def _time_column(
    index: int, name: str, values: pd.Series, request: TimeRequest
) -> TimeColumn | None:
    """Return the time column for a column's values if at least half of them are times."""
    if not pd.api.types.is_datetime64_any_dtype(values.dtype):
        known = floats_of(values)
        known = known[np.isfinite(known)]
        if len(known) and 2 * len(known) >= len(values):
            return _numbered(index, name, known, request)
    if pd.api.types.is_numeric_dtype(values.dtype):
        return None
    return next((clock for clock in _of_texts(index, name, request, values) if clock), None)


def _of_texts(
    index: int, name: str, request: TimeRequest, values: pd.Series
) -> Iterator[TimeColumn | None]:
    """Yield the ways to read a column of texts, if at least half of them are such times."""
    if are_yearless(values):
        if (since := request.since) is not None:
            order = order_of(values, since) if request.order is DayOrder.NONE else request.order
            found = TimeColumn(index, zone=UTC, order=order, since=since)
            yield found if _mostly_known(found, values) else None
        return
    order = day_order(values)
    if order is DayOrder.IN_DOUBT and request.order is not DayOrder.NONE:
        order = request.order
    written = TimeColumn(index, zone=_zone(values), order=order)
    yield written if _mostly_known(written, values) else None
    clock = TimeColumn(
        index, absolute=False, of_clock=True, minutes_first=bool(ELAPSED.match(name))
    )
    yield clock if _mostly_known(clock, values) else None


def _mostly_known(clock: TimeColumn, values: pd.Series) -> bool:
    read = clock.read(values.to_frame(clock.column))
    return len(read) > 0 and bool((read != UNREADABLE).mean() >= 0.5)


def _numbered(index: int, name: str, known: Floats, request: TimeRequest) -> TimeColumn:
    match = NAME.match(name)
    if request.excel and EXCEL_DAYS[0] <= known[0] < EXCEL_DAYS[1]:
        return TimeColumn(index, zone=UTC, excel=True)
    if (form := form_of_digits(known)) and (match or len(form) > DAY_DIGITS):
        return TimeColumn(index, zone=UTC, digits=form)
    if ticks := ticks_to_1970(known):
        return TimeColumn(index, zone=UTC, ticks=ticks)
    unit, size = unit_named(name), abs(float(known[-1]))
    if unit:
        return TimeColumn(index, unit, absolute=size * unit >= _EPOCH * NS_PER_SECOND)
    if by_size := unit_by_size(size):
        if match:
            refuse_units(name, known, by_size)
        return TimeColumn(index, by_size)
    numbers_rows = bool((known == np.rint(known)).all())
    period_ns = request.period_ns if numbers_rows else 0
    return TimeColumn(index, period_ns or NS_PER_SECOND, absolute=False)


def _zone(values: pd.Series) -> tzinfo:
    """Return the zone of the first text; times that people enter are in this zone."""
    match = _ZONE.search(spelled_as_iso(str(next(iter(values.dropna()), ""))))
    if match is None or match[1]:
        return UTC
    offset = timedelta(hours=int(match[3]), minutes=int(match[4] or 0))
    return timezone(-offset if match[2] == "-" else offset)
