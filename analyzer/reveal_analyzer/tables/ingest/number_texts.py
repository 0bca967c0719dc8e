"""Reads numbers that are written as text: with units, marks of thousands, or a decimal comma."""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import pandas as pd

from reveal_analyzer.arrays import Floats

_DECIMAL = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_BINARY = {"Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40, "Pi": 2.0**50}
_SMALL = {"": 1.0, "m": 1e-3, "u": 1e-6, "µ": 1e-6, "n": 1e-9}
_SECONDS = {"min": 60.0, "h": 3600.0}


def _units() -> dict[str, tuple[str, float]]:
    """Return the base unit and the factor of each unit as it is written."""
    found = {"%": ("%", 1.0), "C": ("C", 1.0), "°C": ("C", 1.0), "rpm": ("rpm", 1.0)}
    found["RPM"] = found["rpm"]
    for prefix, factor in (_DECIMAL | _BINARY).items():
        found |= {prefix + unit: (unit, factor) for unit in ("B", "B/s")}
    for prefix, factor in _DECIMAL.items():
        for unit in ("Hz", "bit/s", "bps", "b/s"):
            found[prefix + unit] = (unit if unit == "Hz" else "bit/s", factor)
    for unit in ("s", "W", "V", "A", "J"):
        found |= {prefix + unit: (unit, factor) for prefix, factor in _SMALL.items()}
    for unit in ("W", "V", "J"):
        found |= {prefix + unit: (unit, factor) for prefix, factor in _DECIMAL.items() if prefix}
    found |= {prefix: ("", _DECIMAL[prefix]) for prefix in "kKMGT"}
    # quantities of Kubernetes: 250m of a CPU, 512Mi of memory
    found |= {"m": ("", 1e-3)} | {prefix: ("B", factor) for prefix, factor in _BINARY.items()}
    return found | {name: ("s", factor) for name, factor in _SECONDS.items()}


_UNITS = _units()
# a character that is not UTF-8 is read as U+FFFD: the degree sign or the micro sign of Latin-1
_UNITS |= {"\ufffdC": _UNITS["°C"], "\ufffds": _UNITS["µs"]}
_WITH_UNIT = re.compile(
    r"\s*(?P<number>[-+]?[\d.,]+(?:[eE][-+]?\d+)?)(?P<gap>\s*)(?P<unit>[A-Za-zµ°%/\ufffd]+)\s*\Z"
)
_THOUSANDS_COMMA = re.compile(r"[-+]?\d{1,3}(?:,\d{3})+(?:\.\d+)?\Z")
# an apostrophe as in Switzerland, or a narrow or other blank that does not break
_THOUSANDS_MARK = re.compile(r"(?<=\d)['\u2019\u00a0\u202f](?=\d{3}(?!\d))")
_DURATION = re.compile(
    r"(?=\d)(?:(?P<h>\d+)h)?(?:(?P<m>\d+)m(?!s))?(?:(?P<s>\d+(?:\.\d+)?)s)?\Z"
)  # of Go, as 1m2.5s
_MINUTES = re.compile(r"\s*\d+m\s*\Z")
_SWITCHES = tuple(
    {off: 0.0, on: 1.0}
    for off, on in (("no", "yes"), ("off", "on"), ("not active", "active"), ("disabled", "enabled"))
)


class NumberMarks(NamedTuple):
    """How a table writes numbers: its decimal mark, and that of thousands if it has one."""

    decimal: str = "."
    thousands: str | None = None


class ReadNumbers(NamedTuple):
    """The numbers of a column, NaN where there is none, the words among them, and their unit."""

    numbers: Floats
    words: int
    unit: str = ""


def numbers_of(values: pd.Series, marks: NumberMarks) -> ReadNumbers:
    """Return the numbers in a column that has not only plain ones, in base units."""
    known = values.notna().to_numpy()
    if not _may_hold_numbers(values):
        return ReadNumbers(np.full(len(values), np.nan), int(known.sum()))
    numbers = _plain(values, marks)
    rest = np.flatnonzero(np.isnan(numbers) & known)
    if not len(rest):
        return ReadNumbers(numbers, 0)
    texts = values.iloc[rest].astype(str)
    if len(rest) == int(known.sum()) and (switched := _switches(texts)) is not None:
        numbers[rest] = switched
        return ReadNumbers(numbers, 0)
    read = {text: _with_unit(text, marks) for text in texts.unique().tolist()}
    if any(map(_is_duration, read)):  # beside 1h5m, 45m are minutes
        minutes = (text for text in read if _MINUTES.match(text))
        read |= {text: (60 * float(text.strip()[:-1]), "s") for text in minutes}
    if not any(read.values()) and (unit := _unknown_unit(texts)):
        numbers[rest] = [_number(text.split()[0], marks) for text in texts.tolist()]
        return ReadNumbers(numbers, int(np.isnan(numbers[rest]).sum()), unit)
    units = {found[1] for found in read.values() if found}
    if len(units) > 1:  # words, and no quantity
        return ReadNumbers(numbers, len(rest))
    numbers[rest] = [found[0] if (found := read[text]) else np.nan for text in texts.tolist()]
    words = int(np.isnan(numbers[rest]).sum())
    return ReadNumbers(numbers, words, next(iter(units), ""))


def _unknown_unit(texts: pd.Series) -> str:
    """Return the word that stands behind a number in all texts; "" if there is none."""
    words = texts.str.extract(r"^\s*[-+]?[\d.,]+\s+(\S*[^\W\d]\S*)\s*$", expand=False)
    return str(words.iloc[0]) if words.notna().all() and words.nunique() == 1 else ""


def _number(written: str, marks: NumberMarks) -> float:
    read = _with_unit(written, marks)
    return read[0] if read else np.nan


def _switches(texts: pd.Series) -> Floats | None:
    """Return 1 for ``yes`` and 0 for ``no``, and the like; None if there are other words."""
    words = texts.str.strip().str.lower()
    found = set(words.unique().tolist())
    numbers = next((each for each in _SWITCHES if found <= each.keys()), None)
    return None if numbers is None else np.asarray(words.map(numbers).to_numpy(np.float64))


def numbers_if_all(column: pd.Series) -> pd.Series:
    """Return a column as numbers, if all of its values are some."""
    try:
        return pd.to_numeric(column)
    except (ValueError, TypeError):
        return column


def _may_hold_numbers(values: pd.Series) -> bool:
    """Return whether a column has no times or durations, which are no quantities of a metric."""
    kinds = pd.api.types
    return not (
        kinds.is_datetime64_any_dtype(values.dtype)
        or kinds.is_timedelta64_dtype(values.dtype)
        or isinstance(values.dtype, pd.PeriodDtype)
    )


def _plain(values: pd.Series, marks: NumberMarks) -> Floats:
    if marks.decimal != ".":
        values = values.map(lambda value: _with_point(value, marks), na_action="ignore")
    try:
        numbers = pd.to_numeric(values, errors="coerce").to_numpy(np.float64, na_value=np.nan)
    except (TypeError, ValueError):  # lists and the like
        return np.full(len(values), np.nan)
    return np.array(numbers, np.float64)


def _with_point(value: object, marks: NumberMarks) -> object:
    if not isinstance(value, str):
        return value
    if marks.thousands:
        value = value.replace(marks.thousands, "")
    return value.replace(marks.decimal, ".")


def _is_duration(text: str) -> bool:
    """Return whether a text is a duration of several units, or of hours."""
    parts = _DURATION.match(text.strip())
    return bool(parts and (parts["h"] or (parts["m"] and parts["s"])))


def _with_unit(text: str, marks: NumberMarks) -> tuple[float, str] | None:
    """Return the number and the base unit of a text such as ``1.2 GiB``; None if it is none."""
    bare = _THOUSANDS_MARK.sub("", text.strip().strip("'").replace("\u2212", "-"))
    parts = _DURATION.match(bare)
    if parts and _is_duration(bare):
        hours, minutes, seconds = (float(parts[name] or 0) for name in "hms")
        return hours * 3600 + minutes * 60 + seconds, "s"
    match = _WITH_UNIT.match(bare)
    written, unit, factor = bare, "", 1.0
    if match is not None:
        # 300 K is a temperature
        if match["unit"] not in _UNITS or (match["unit"] == "K" and match["gap"]):
            return None
        written, (unit, factor) = match["number"], _UNITS[match["unit"]]
    if marks.decimal != ".":
        written = str(_with_point(written, marks))
    elif _THOUSANDS_COMMA.match(written):
        written = written.replace(",", "")
    try:
        return float(written) * factor, unit
    except ValueError:
        return None
