"""Reads times that are written as text, in every form that says which day it is without doubt."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import numpy as np
import pandas as pd

from reveal_analyzer.arrays import Indices, Ints

UNREADABLE = np.iinfo(np.int64).min
FARTHEST = 1 << 62  # ns, the year 2116: differences of times fit into 64 bits, too
# a day: year first with any mark or none, or day first with points
DATE = re.compile(r"\s*(?:\d{4}([-/.]?)\d\d\1\d\d|\d\d?\.\d\d?\.\d{4})\s*\Z")
TIME_OF_DAY = re.compile(r"\s*\d\d?:\d\d(:\d\d([.,]\d+)?)?(\s*[AP]M)?\s*\Z", re.IGNORECASE)
_SPELLINGS = (
    (re.compile(r"^\s*(\d{4})([/.])(\d\d)\2(\d\d)(?=\D|$)"), r"\1-\3-\4"),
    (re.compile(r"^\s*(\d{4})(\d\d)(\d\d)(?=[ T]|$)"), r"\1-\2-\3"),
    (re.compile(r"^\s*(\d\d)\.(\d\d)\.(\d{4})(?=\D|$)"), r"\3-\2-\1"),
    (re.compile(r"(:\d\d),(\d+)"), r"\1.\2"),
    # Go writes the offset and its name
    (re.compile(r"([+-]\d\d:?\d\d)\s+[A-Z]{2,5}\s*$"), r"\1"),
    (re.compile(r"\s+(?:UTC|GMT|Z)\s*$", re.IGNORECASE), "Z"),
    (re.compile(r"(\d)\s+([+-]\d\d:?\d\d)\s*$"), r"\1\2"),
)
_ISO = "ISO8601"  # of pandas
# with names of months: RFC 1123, logs of web servers, ctime(3)
_FORMS = (
    "%a, %d %b %Y %H:%M:%S%z", "%d/%b/%Y:%H:%M:%S%z", "%d %b %Y %H:%M:%S", "%d-%b-%Y %H:%M:%S",
    "%a %b %d %H:%M:%S %Y",
)  # fmt: skip
_SECONDS = re.compile(r"\s*(\d{9,10}):\s*$")  # since the epoch, as rrdtool writes them
_TWELVE_HOURS = re.compile(r"[ T](\d\d?):(\d\d(?::\d\d(?:\.\d+)?)?)\s*([AP])M\s*$", re.IGNORECASE)


def times_of(values: pd.Series) -> Ints:
    """Return ns since the epoch, ``UNREADABLE`` where a text is no time; UTC without a zone."""
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
    for pattern, replacement in _SPELLINGS:
        text = pattern.sub(replacement, text)
    return _TWELVE_HOURS.sub(_in_24_hours, text)


def _in_24_hours(match: re.Match[str]) -> str:
    hour = int(match[1]) % 12 + (12 if match[3].upper() == "P" else 0)
    return f"T{hour:02d}:{match[2]}"


def _in_form(values: pd.Series, form: str) -> Ints:
    try:
        moments = pd.to_datetime(values, utc=True, format=form, errors="coerce")
        return np.array(moments.dt.as_unit("ns").astype(np.int64).to_numpy(), np.int64)
    except (ValueError, TypeError, OverflowError, AttributeError):
        return np.full(len(values), UNREADABLE)
