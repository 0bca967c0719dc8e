"""Which column of a table tells the time, and what its values mean.

Numbers are seconds, ms, us or ns since the epoch by their size, where the column's name says no
unit; below 10^8 they count from a start of their own.  Texts are ISO 8601 (RFC 3339 among them);
without a zone they are taken for UTC.
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
from reveal_contract.time_units import NS_PER_SECOND

UNREADABLE = np.iinfo(np.int64).min
_UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": NS_PER_SECOND}
_SIZES = ((1e17, 1), (1e14, 1_000), (1e11, 1_000_000), (1e8, NS_PER_SECOND))
_EPOCH = 1e8  # 1973 in seconds: smaller numbers count from a start of their own
_FARTHEST = 9.2e18  # ns that fit into 64 bits
_NAME = re.compile(
    r"[\W_]*(time|date|ts|t|epoch|datetime|date[_ ]?time|time[_ ]?stamp|unix[_ ]?time(stamp)?"
    r"|elapsed|elapsed[_ ]time|wall[_ ]?time)[\W_]*"
    r"(?P<unit>s|sec|secs|seconds?|ms|msec|millis|milliseconds?|us|usec|micros|microseconds?"
    r"|ns|nsec|nanos|nanoseconds?|utc)?[\W_]*\Z",
    re.IGNORECASE,
)
_INDEX = re.compile(r"(index|row|sample|step|no\.?|#|id|)\Z|Unnamed: 0\Z", re.IGNORECASE)
_DATE = re.compile(r"\d{4}-\d\d-\d\d\Z")
_OF_DAY = re.compile(r"\d\d:\d\d(:\d\d([.,]\d+)?)?\Z")
_SHORT = re.compile(r"ts?\Z", re.IGNORECASE)  # a temperature may be called so, too
_ZONE = re.compile(r":\d\d[\d:.,]*\s*(?:(Z)|([+-])(\d\d):?(\d\d)?)\s*\Z", re.IGNORECASE)
_SHOWN = 4


@dataclass(frozen=True)
class Clock:
    """How a table tells the time.

    ``column`` is ``None`` where rows are merely numbered; ``unit_ns`` is what 1 stands for, 0
    for texts; ``zone`` is that of the texts (``None`` for numbers since the epoch); ``of_day`` is
    the column of times where ``column`` holds dates alone.
    """

    column: int | None
    unit_ns: int = 0
    absolute: bool = True
    zone: tzinfo | None = None
    of_day: int | None = None

    def read(self, block: pd.DataFrame) -> Ints:
        """Nanoseconds, ``UNREADABLE`` where a value is missing or makes no time.

        ``block`` are rows of the table, its columns by number.
        """
        if self.column is None:
            raise ValueError("rows that are merely numbered hold no times")
        if self.unit_ns:
            return _numbers(block[self.column], self.unit_ns)
        if self.of_day is None:
            return _texts(block[self.column])
        return _texts(block[self.column].astype(str) + "T" + block[self.of_day].astype(str))

    def show(self, ns: int) -> str:
        """A time as the table writes it: a number of the same unit, or RFC 3339 in its zone."""
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


def by_rows(period_ns: int) -> Clock:
    return Clock(None, period_ns, absolute=False)


def choose(names: Sequence[str], rows: pd.DataFrame, wanted: str, period_ns: int) -> Clock | None:
    """The clock of a table by its first rows (columns by number); ``None`` if it has none.

    ``wanted`` names the column, "" leaves it to be found: by its name, else a column of times in
    text, else a first column of numbers that rise like a clock's or a row's.  Raises
    ``TableFileError`` where the wanted one does not tell the time.
    """
    if wanted:
        at = _place(names, wanted)
        clock = _of(at, names[at], rows[at], period_ns)
        if clock is None:
            raise TableFileError(
                f"column {wanted} holds no times ({_sample(rows[at])}): write RFC 3339, ISO 8601,"
                " or seconds, ms, us or ns since the epoch"
            )
        return clock
    for at in _candidates(names, rows):
        clock = _of(at, names[at], rows[at], period_ns)
        if clock is not None and _trusted(names[at], at, clock, rows[at]):
            return _with_time_of_day(clock, names, rows)
    return None


def _place(names: Sequence[str], wanted: str) -> int:
    folded = [name.strip().casefold() for name in names]
    if wanted in names:
        return list(names).index(wanted)
    if wanted.strip().casefold() in folded:
        return folded.index(wanted.strip().casefold())
    shown = ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
    raise TableFileError(f"there is no column {wanted}: the columns are {shown}")


def _candidates(names: Sequence[str], rows: pd.DataFrame) -> list[int]:
    """Columns named like a time, then those of text, then the first."""
    named = [at for at, name in enumerate(names) if _NAME.match(name)]
    texts = [at for at, kind in enumerate(rows.dtypes) if not pd.api.types.is_numeric_dtype(kind)]
    return list(dict.fromkeys([*named, *texts, 0])) if names else []


def _with_time_of_day(clock: Clock, names: Sequence[str], rows: pd.DataFrame) -> Clock:
    """With the column of times beside one of dates, if the clock's is one."""
    if clock.column is None or not _all_like(rows[clock.column], _DATE):
        return clock
    others = (at for at, name in enumerate(names) if at != clock.column and _NAME.match(name))
    of_day = next((at for at in others if _all_like(rows[at], _OF_DAY)), None)
    return replace(clock, of_day=of_day)


def _all_like(values: pd.Series, pattern: re.Pattern[str]) -> bool:
    return bool(len(values)) and all(pattern.match(str(value)) for value in values)


def _trusted(name: str, at: int, clock: Clock, values: pd.Series) -> bool:
    """Numbers in a column that is not surely named like a time must behave like a clock's."""
    if not clock.unit_ns or (_NAME.match(name) and (clock.absolute or not _SHORT.match(name))):
        return True
    times = _numbers(values, clock.unit_ns)
    if _SHORT.match(name):
        return bool((np.diff(times) > 0).all())
    if at != 0 or len(times) < 3 or (times == UNREADABLE).any():
        return False
    steps = np.diff(times)
    if _INDEX.match(name):
        return bool((steps == clock.unit_ns).all())
    return clock.absolute and bool((steps > 0).all()) and bool(steps.max() < 4 * np.median(steps))


def _of(at: int, name: str, values: pd.Series, period_ns: int) -> Clock | None:
    """The clock that a column's values make, if at least half of them make one."""
    if not pd.api.types.is_datetime64_any_dtype(values.dtype):
        known = _floats(values)
        known = known[np.isfinite(known)]
        if len(known) and 2 * len(known) >= len(values):
            return _numbered(at, name, known, period_ns)
    if pd.api.types.is_numeric_dtype(values.dtype):
        return None
    read = _texts(values)
    if not len(read) or (read != UNREADABLE).mean() < 0.5:
        return None
    return Clock(at, zone=_zone(values))


def _numbered(at: int, name: str, known: Floats, period_ns: int) -> Clock:
    match = _NAME.match(name)
    unit = _UNITS.get(_short((match["unit"] if match else "") or ""), 0)
    size = abs(float(known[-1]))
    if unit:
        return Clock(at, unit, absolute=size * unit >= _EPOCH * NS_PER_SECOND)
    if by_size := next((ns for least, ns in _SIZES if size >= least), 0):
        return Clock(at, by_size)
    numbers_rows = bool((known == np.rint(known)).all())
    return Clock(at, (period_ns if numbers_rows else 0) or NS_PER_SECOND, absolute=False)


def _short(unit: str) -> str:
    """``milliseconds``, ``msec`` and ``ms`` are one."""
    word = unit.lower()
    if word in ("", "utc"):
        return ""
    return {"m": "ms", "u": "us", "n": "ns", "s": "s"}.get(
        "u" if word[:3] == "mic" else word[0], ""
    )


def _numbers(values: pd.Series, unit_ns: int) -> Ints:
    """Whole numbers exactly; parts of s and ms to the us, which is what a float of today holds."""
    if pd.api.types.is_integer_dtype(values.dtype) and not values.hasnans:
        whole = values.to_numpy(np.int64)
        if not len(whole) or max(int(whole.max()), -int(whole.min())) * unit_ns < _FARTHEST:
            return np.asarray(whole * unit_ns, np.int64)
    step = 1_000 if unit_ns > 1_000 else 1
    with np.errstate(invalid="ignore", over="ignore"):
        steps = np.rint(_floats(values) * (unit_ns / step))
        good = np.abs(steps) < _FARTHEST / step
    ns = np.where(good, steps, 0.0).astype(np.int64) * step
    return np.where(good, ns, UNREADABLE)


def _floats(values: pd.Series) -> Floats:
    try:
        numbers = pd.to_numeric(values, errors="coerce")
    except TypeError:  # lists and the like
        return np.full(len(values), np.nan)
    return np.asarray(numbers.to_numpy(np.float64, na_value=np.nan))


def _texts(values: pd.Series) -> Ints:
    try:
        moments = pd.to_datetime(values, utc=True, format="ISO8601", errors="coerce")
        return np.asarray(moments.dt.as_unit("ns").astype(np.int64).to_numpy(), np.int64)
    except (ValueError, TypeError, OverflowError, AttributeError):
        return np.full(len(values), UNREADABLE)


def _zone(values: pd.Series) -> tzinfo:
    """Of the first text: clock times that people name are meant in it."""
    match = _ZONE.search(str(next(iter(values.dropna()), "")))
    if match is None or match[1]:
        return UTC
    offset = timedelta(hours=int(match[3]), minutes=int(match[4] or 0))
    return timezone(-offset if match[2] == "-" else offset)


def _sample(values: pd.Series) -> str:
    known = values.dropna()
    return f"its first is {str(known.iloc[0])[:40]!r}" if len(known) else "it is empty"
