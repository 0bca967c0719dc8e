"""Reads times that are written as text, in every form that says which day it is without doubt.

Where the order of day and month is in doubt, the texts of a whole column decide, or the caller.
Times without a day (``9:00:07``) are read as the time since midnight, or since a start.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from enum import StrEnum

import numpy as np
import pandas as pd

from reveal_analyzer.arrays import Indices, Ints
from reveal_contract.time_units import NS_PER_DAY, NS_PER_SECOND

UNREADABLE = np.iinfo(np.int64).min
FARTHEST = 1 << 62  # ns, the year 2116: differences of times fit into 64 bits, too
# a day: year first with any mark or none, or year last
DATE = re.compile(r"\s*(?:\d{4}([-/.]?)\d\d\1\d\d|\d\d?([-/.])\d\d?\2\d{4})\s*\Z")
TIME_OF_DAY = re.compile(
    r"\s*(\d\d?:\d\d(:\d\d([.,]\d+)?)?(\s*[AP]M)?|(?:[01]\d|2[0-3])([-.])[0-5]\d\5[0-5]\d)\s*\Z",
    re.IGNORECASE,
)
_SPELLINGS = (
    # 2023-05-05_09-00-00, 2023/05/05-09:00:00, 2023-05-05 09.00.00, 20230505-090000
    (
        re.compile(r"^\s*(\d{4})([-/.]?)(\d\d)\2(\d\d)[ T_-](\d\d)([-:.]?)(\d\d)\6(\d\d)(?=\D|$)"),
        r"\1-\3-\4T\5:\7:\8",
    ),
    (re.compile(r"^\s*(\d{4})([/.])(\d\d)\2(\d\d)(?=\D|$)"), r"\1-\3-\4"),
    (re.compile(r"^\s*(\d{4})(\d\d)(\d\d)(?=[ T]|$)"), r"\1-\2-\3"),
    (re.compile(r"^\s*(\d\d)\.(\d\d)\.(\d{4})(?=\D|$)"), r"\3-\2-\1"),
    (re.compile(r"(:\d\d),(\d+)"), r"\1.\2"),
    # Go writes the offset and its name
    (re.compile(r"([+-]\d\d:?\d\d)\s+[A-Z]{2,5}\s*$"), r"\1"),
    # date(1) writes the zone before the year
    (
        re.compile(r"^\s*[A-Z][a-z]{2} ([A-Z][a-z]{2}) +(\d+) (\S+) (?:UTC|GMT) (\d{4})\s*$"),
        r"\2 \1 \4 \3",
    ),
    (re.compile(r"\s+(?:UTC|GMT|Z)\s*$", re.IGNORECASE), "Z"),
    # in brackets, and with the name of the zone after its offset as in Java
    (re.compile(r"^\s*\[(.*)\]\s*$"), r"\1"),
    (re.compile(r"([+-]\d\d:\d\d|Z)\[[\w/+-]+\]\s*$"), r"\1"),
    (re.compile(r"(:\d\d(?:\.\d+)?[+-]\d\d)\s*$"), r"\1:00"),
    # with the name of the month first, as in Grafana and Kibana
    (re.compile(r"^\s*([A-Z][a-z]{2})[a-z]* (\d\d?),? (\d{4}),?(?: @)? (?=\d)"), r"\2 \1 \3 "),
    (re.compile(r"(\d)\s+([+-]\d\d:?\d\d)\s*$"), r"\1\2"),
)
_ISO = "ISO8601"  # of pandas
# with names of months: RFC 1123, logs of web servers, ctime(3)
_FORMS = (
    "%a, %d %b %Y %H:%M:%S%z", "%d/%b/%Y:%H:%M:%S%z", "%d %b %Y %H:%M:%S", "%d-%b-%Y %H:%M:%S",
    "%a %b %d %H:%M:%S %Y", "%d %b %Y %H:%M:%S.%f", "%d %b %Y %I:%M:%S %p",
    "%d %b %YT%H:%M:%S", "%Y-%jT%H:%M:%S",
)  # fmt: skip
_YEAR_LAST = re.compile(r"^\s*(\d\d?)([/-])(\d\d?)\2(\d{4})(?=\D|$)")
_CLOCK = (
    r"^\s*(?:(?P<days>\d+)(?:-|\s*days?,?\s+))?(?P<first>\d+):(?P<second>\d\d)"
    r"(?::(?P<third>\d\d))?(?:[.,](?P<part>\d{1,9}))?(?:\s*(?P<half>[AaPp])[Mm])?\s*\Z"
)
_HALF_DAY_NS = NS_PER_DAY // 2
_MONTHS = 12
_SECONDS = re.compile(r"\s*(\d{9,10}):\s*$")  # since the epoch, as rrdtool writes them
_TWELVE_HOURS = re.compile(r"[ T](\d\d?):(\d\d(?::\d\d(?:\.\d+)?)?)\s*([AP])M\s*$", re.IGNORECASE)


class DayOrder(StrEnum):
    """Which of day and month comes first in a date with the year last."""

    NONE = "no such date"
    DAY_FIRST = "day first"
    MONTH_FIRST = "month first"
    IN_DOUBT = "in doubt"


def day_order(values: pd.Series) -> DayOrder:
    """Return the order of day and month by which all dates of a column exist."""
    texts = values.dropna().astype(str).unique().tolist()
    found = [match for text in texts if (match := _YEAR_LAST.match(text))]
    if 2 * len(found) < max(1, len(texts)):
        return DayOrder.NONE
    if any(int(match[1]) > _MONTHS for match in found):
        return DayOrder.DAY_FIRST
    same = all(int(match[1]) == int(match[3]) for match in found)
    if same or any(int(match[3]) > _MONTHS for match in found):
        return DayOrder.MONTH_FIRST
    return DayOrder.IN_DOUBT


def times_of(values: pd.Series, order: DayOrder = DayOrder.NONE) -> Ints:
    """Return ns since the epoch, ``UNREADABLE`` where a text is no time; UTC without a zone."""
    if order is not DayOrder.NONE:
        values = values.map(lambda text: _year_first(text, order), na_action="ignore")
    read = _in_form(values, _ISO)
    if not pd.api.types.is_datetime64_any_dtype(values.dtype):
        lost = _lost(read, values)
        _read_again(read, lost, values.iloc[lost].astype(str).map(spelled_as_iso))
    read[(read <= -FARTHEST) | (read >= FARTHEST)] = UNREADABLE
    return read


def _lost(read: Ints, values: pd.Series) -> Indices:
    """Return the rows that have a value, and no time was read from it."""
    return np.flatnonzero((read == UNREADABLE) & values.notna().to_numpy())


def _read_again(read: Ints, lost: Indices, texts: pd.Series) -> None:
    """Read the texts of these rows by ISO 8601, then the rest in the form of their first."""
    read[lost] = _in_form(texts, _ISO)
    still = read[lost] == UNREADABLE
    lost, texts = lost[still], texts[still]
    first = texts.iloc[:1]
    form = next((form for form in _FORMS if (_in_form(first, form) != UNREADABLE).any()), "")
    if form:
        read[lost] = _in_form(texts, form)


def spelled_as_iso(text: str) -> str:
    """Return a time in the spelling of ISO 8601, if it has one of the known others."""
    if seconds := _SECONDS.match(text):
        return datetime.fromtimestamp(int(seconds[1]), UTC).isoformat()
    text = text.strip().strip("'")
    for pattern, replacement in _SPELLINGS:
        text = pattern.sub(replacement, text)
    return _TWELVE_HOURS.sub(_in_24_hours, text)


def _year_first(text: object, order: DayOrder) -> object:
    match = _YEAR_LAST.match(text) if isinstance(text, str) else None
    if match is None:
        return text
    day, month = (match[1], match[3]) if order is DayOrder.DAY_FIRST else (match[3], match[1])
    return f"{match[4]}-{int(month):02d}-{int(day):02d}{match.string[match.end() :]}"


def day_of(text: str, order: DayOrder) -> date | None:
    """Return the day of a text such as ``05/06/23``; None if there is no such day."""
    if match := re.fullmatch(r"(\d{4})[-/.](\d\d)[-/.](\d\d)", text):
        year, month, day = (int(part) for part in match.groups())
    elif match := re.fullmatch(r"(\d\d?)([-/.])(\d\d?)\2(\d{4}|\d\d)", text):
        first, second, year = int(match[1]), int(match[3]), int(match[4])
        year += 2000 if year < 100 else 0
        by_day = match[2] == "." or order is DayOrder.DAY_FIRST
        day, month = (first, second) if by_day else (second, first)
    else:
        return None
    try:
        return date(year, month, day)
    except ValueError:
        return None


def seconds_of_clock(text: str) -> float | None:
    """Return the seconds since midnight of a text such as ``09:00:07 PM``; None for others."""
    match = re.fullmatch(r"(\d\d?):(\d\d):(\d\d(?:\.\d+)?)(?:\s*([AP])M)?", text.replace(",", "."))
    if match is None:
        return None
    hour = int(match[1]) if match[4] is None else int(match[1]) % 12 + 12 * (match[4] == "P")
    return hour * 3600 + int(match[2]) * 60 + float(match[3])


def clock_times_of(values: pd.Series, *, minutes_first: bool = False) -> Ints:
    """Return ns since midnight or a start for ``9:00:07``; ``UNREADABLE`` for other texts.

    ``minutes_first``: a text with two numbers has minutes and seconds, not hours and minutes.
    """
    if not (pd.api.types.is_object_dtype(values.dtype) or pd.api.types.is_string_dtype(values)):
        return np.full(len(values), UNREADABLE)
    parts = values.astype(str).str.extract(_CLOCK)
    short = parts["third"].isna()
    minutes_first = minutes_first or bool((short & parts["part"].notna()).any())
    numbers = parts.drop(columns=["half", "part"]).astype(np.float64).fillna(0.0)
    hours, minutes, seconds = (numbers[name].copy() for name in ("first", "second", "third"))
    if minutes_first:
        seconds[short], minutes[short], hours[short] = minutes[short], hours[short], 0.0
    half = parts["half"].str.lower()
    hours[half.notna()] = hours[half.notna()] % 12 + 12 * (half[half.notna()] == "p")
    total = ((numbers["days"] * 24 + hours) * 60 + minutes) * 60 + seconds
    good = (parts["first"].notna() & (total < FARTHEST / NS_PER_SECOND)).to_numpy()
    whole = np.where(good, total.to_numpy(np.float64), 0.0).astype(np.int64) * NS_PER_SECOND
    fraction = parts["part"].fillna("0").str.pad(9, side="right", fillchar="0").astype(np.int64)
    return np.where(good, whole + fraction.to_numpy(np.int64), UNREADABLE)


def across_midnight(times: Ints) -> Ints:
    """Return times of day that go on after midnight, in the order of the rows."""
    known = times != UNREADABLE
    read = times[known]
    if not len(read) or read.max() >= NS_PER_DAY or read.min() < 0:
        return times
    steps = np.diff(read, prepend=read[:1])
    days = np.cumsum((steps < -_HALF_DAY_NS).astype(np.int64) - (steps > _HALF_DAY_NS))
    result = times.copy()
    result[known] = read + (days - days.min()) * NS_PER_DAY
    return result


def _in_24_hours(match: re.Match[str]) -> str:
    hour = int(match[1]) % 12 + (12 if match[3].upper() == "P" else 0)
    return f"T{hour:02d}:{match[2]}"


def _in_form(values: pd.Series, form: str) -> Ints:
    try:
        moments = pd.to_datetime(values, utc=True, format=form, errors="coerce")
        return np.array(moments.dt.as_unit("ns").astype(np.int64).to_numpy(), np.int64)
    except (ValueError, TypeError, OverflowError, AttributeError):
        return np.full(len(values), UNREADABLE)
