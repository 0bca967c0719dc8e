"""Reads times that say no year, such as ``Nov-29 02:27:19``, after a day that the file names.

``dstat`` and ``dool`` write such times below a line with the date at which they were started.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date

import pandas as pd

from reveal_analyzer.tables.ingest.time_texts import DayOrder

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = r"[A-Za-z]{3}"
_YEARLESS = re.compile(
    rf"\s*(?:(?P<month>{_MONTH})[- ]+(?P<day>\d\d?)|(?P<first>\d\d?)[-/](?P<second>\d\d?|{_MONTH}))"
    r"[ T]+(?P<clock>\d\d?:\d\d(?::\d\d(?:[.,]\d+)?)?)\s*\Z"
)
_DAY_NAMED = re.compile(rf"\b(\d\d?) ({_MONTH}) (\d{{4}})\b|\b(\d{{4}})-(\d\d)-(\d\d)\b")
_HALF_YEAR = 183  # days by which a time may be before the day that the file names


def day_named(lines: Iterable[str]) -> date | None:
    """Return the first day with a year in these lines; None if there is none."""
    for match in (found for line in lines for found in _DAY_NAMED.finditer(line)):
        day, month, year, *iso = match.groups()
        if day and month.lower() not in _MONTHS:
            continue
        number = _MONTHS.index(month.lower()) + 1 if day else int(iso[1])
        found = _day(
            *((int(year), number, int(day)) if day else (int(iso[0]), number, int(iso[2])))
        )
        if found is not None:
            return found
    return None


def are_yearless(values: pd.Series) -> bool:
    """Return whether most texts are times without a year."""
    texts = values.dropna().astype(str)
    return bool(len(texts)) and bool(texts.str.match(_YEARLESS).mean() >= 0.5)


def order_of(values: pd.Series, since: date) -> DayOrder:
    """Return the order of two numbers for month and day, the same in all rows of a column.

    A number above twelve decides, else the first row: it is of the day that the file names.  The
    day is first if neither does.
    """
    texts = values.dropna().astype(str).unique().tolist()
    found = [match for text in texts if (match := _YEARLESS.match(text)) and match["first"]]
    pairs = [(int(each["first"]), int(each["second"])) for each in found if _is_number(each)]
    if any(first > len(_MONTHS) for first, _ in pairs):
        return DayOrder.DAY_FIRST
    is_month_first = any(second > len(_MONTHS) for _, second in pairs)
    if is_month_first or pairs[:1] == [(since.month, since.day)]:
        return DayOrder.MONTH_FIRST
    return DayOrder.DAY_FIRST


def with_years(values: pd.Series, since: date, order: DayOrder) -> pd.Series:
    """Return times in ISO 8601, with the year in which each is the next after ``since``."""
    return values.map(lambda text: _with_year(str(text), since, order), na_action="ignore")


def _is_number(match: re.Match[str]) -> bool:
    return bool(match["second"].isdecimal())


def _with_year(text: str, since: date, order: DayOrder) -> str:
    match = _YEARLESS.match(text)
    found = _month_and_day(match, order) if match else None
    if match is None or found is None:
        return text
    for year in (since.year, since.year + 1):
        day = _day(year, *found)
        if day is not None and (day - since).days > -_HALF_YEAR:
            return f"{day}T{match['clock'].replace(',', '.').zfill(5)}"
    return text


def _month_and_day(match: re.Match[str], order: DayOrder) -> tuple[int, int] | None:
    name = match["month"] or match["second"]
    if name.isalpha():
        number = int(match["day"] or match["first"])
        return (_MONTHS.index(name.lower()) + 1, number) if name.lower() in _MONTHS else None
    first, second = int(match["first"]), int(match["second"])
    return (first, second) if order is DayOrder.MONTH_FIRST else (second, first)


def _day(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None
