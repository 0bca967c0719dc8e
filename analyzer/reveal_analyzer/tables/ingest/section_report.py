"""Reports in sections, as ``sar``, ``sadf``, ``iostat``, ``pidstat`` and ``perf stat`` write them.

Each section has a line of names, and rows of one device each.  All rows of one time are one sample.
A report is read as a whole: it is as long as somebody has looked at a host, not as a data base.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path

import pandas as pd

from reveal_analyzer.tables.ingest.column_names import unique_names
from reveal_analyzer.tables.ingest.field_kinds import is_missing
from reveal_analyzer.tables.ingest.formats import BLANKS, Sections, TableFormat
from reveal_analyzer.tables.ingest.layout import split_fields
from reveal_analyzer.tables.ingest.number_texts import NumberMarks, numbers_if_all
from reveal_analyzer.tables.ingest.open import TableFileError, open_text, readable_errors
from reveal_analyzer.tables.ingest.time_texts import DayOrder, day_of, seconds_of_clock

TIME = "time"
_CLOCK = r"\d\d?:\d\d:\d\d(?:[.,]\d+)?(?:\s[AP]M)?"
_LEADING_CLOCK = re.compile(rf"\s*({_CLOCK})\s+(?=\S)")
_ALONE = re.compile(rf"\s*(\S*\d[-/.]\d\S*?)[ T]({_CLOCK})(?:\s?(?:Z|[+-]\d\d:?\d\d))?\s*\Z")
# of a host, as programs of sysstat begin: the kernel, the host, the day
_PREAMBLE = re.compile(r"\w+\s\S+\s\((?P<host>[^)]*)\)\s+(?P<day>\d[\d/.-]+)\s")
_FREE_TEXT = frozenset(("Command",))  # a last column whose values may have blanks
_NEXT_DAY = 12 * 3600  # seconds that a clock falls by at midnight, at least
_MOST_ODD = 0.05  # of the rows


@dataclass
class _Kind:
    """The sections with the same names: their columns, and how far their clock is."""

    number: int
    names: tuple[str, ...]
    labels: dict[str, None] = field(default_factory=dict)
    day: date | None = None
    seconds: float = 0.0


class SectionReport:
    """The table of a report; raises ``TableFileError`` if it has no row."""

    marks = NumberMarks()
    since = None

    def __init__(self, path: Path, chosen: TableFormat, order: DayOrder) -> None:
        if chosen.sections is None:
            raise ValueError(f"{chosen.name} is no report in sections")
        self._path, self._format, self._order = path, chosen, order
        self._sections: Sections = chosen.sections
        self._header = re.compile(self._sections.header) if self._sections.header else None
        self._line = re.compile(self._sections.line) if self._sections.line else None
        self._kinds: dict[tuple[str, ...], _Kind] = {}
        self._kind: _Kind | None = None
        self._samples: dict[str, int] = {}
        self._values: dict[tuple[int, str, str], dict[int, str | None]] = {}
        self._moment = ""
        self._day: date | None = None
        self._in_sample: set[tuple[str, ...]] = set()
        self._above = self._averages = self._odd = self._rows = self._read = self._replaced = 0
        self._hosts: dict[str, None] = {}
        with readable_errors(path), open_text(path) as file:
            for line in io.TextIOWrapper(file, "utf-8-sig", "replace"):
                self._take(line.rstrip("\r\n"))
        self._check()
        self.names = unique_names(
            [TIME, *self._column_names()] if self._timed else self._column_names()
        )

    @property
    def host(self) -> str:
        """The host that the report names; "" if it names none, or several."""
        return next(iter(self._hosts)) if len(self._hosts) == 1 else ""

    @property
    def _timed(self) -> bool:
        return not next(iter(self._samples)).startswith("#")

    @property
    def notes(self) -> list[str]:
        """What is in the file and not in the table."""
        counted = (
            (self._above, "above the first names"),
            (self._averages, "of averages"),
            (self._odd, "without a row"),
        )
        notes = (
            [f"{self._replaced} values replace others of the same time and name"]
            if self._replaced
            else []
        )
        dropped = {name for kind in self._kinds.values() for name in kind.names}
        dropped &= self._sections.dropped
        if dropped:
            notes.append(f"left out, as they are no metrics: {', '.join(sorted(dropped))}")
        return notes + [
            f"skipped {count} line{'s' if count > 1 else ''} {what}"
            for count, what in counted
            if count
        ]

    def blocks(self) -> Iterator[pd.DataFrame]:
        """Yield the whole table, its columns by number."""
        count = len(self._samples)
        columns: list[pd.Series] = [pd.Series(list(self._samples))] if self._timed else []
        for column in self._values.values():
            texts = [column.get(sample) for sample in range(count)]
            columns.append(numbers_if_all(pd.Series(texts, dtype=object)))
        yield pd.concat(columns, axis=1, ignore_index=True)

    def _column_names(self) -> list[str]:
        kinds = list(self._kinds.values())
        return [
            f"{name}{{{label}}}" if label and len(kinds[kind].labels) > 1 else name
            for kind, name, label in self._values
        ]

    def _check(self) -> None:
        chosen = self._format
        if not self._samples:
            raise TableFileError(
                f"{self._path} holds no rows of {chosen.command}: nothing to judge"
            )
        if self._odd > _MOST_ODD * (self._odd + self._rows):
            raise TableFileError(
                f"{self._path}: {self._odd} of {self._odd + self._rows} lines are no rows of"
                f" {chosen.command}: {chosen.advice}"
            )

        if len(self._hosts) > 1 and self._sections.host:
            raise TableFileError(
                f"{self._path} has rows of {len(self._hosts)} hosts: write each to a file of its"
                " own"
            )
        values = sum(map(len, self._values.values()))
        if self._replaced > _MOST_ODD * values:
            raise TableFileError(
                f"{self._path}: {self._replaced} values have the time and the name of another:"
                f" {chosen.advice}, once for each time"
            )

    def _take(self, line: str) -> None:
        """Read a line: a value, a time, names, a row, or none of them."""
        if not line.strip():
            return
        if self._line is not None:
            self._take_value(line)
        elif match := _PREAMBLE.match(line):
            self._hosts[match["host"]] = None
            self._begin(day_of(match["day"], self._known_order(match["day"], line)))
            self._above += 1
        elif (match := _ALONE.match(line)) and not self._sections.time:
            day = day_of(match[1], self._known_order(match[1], line))
            self._moment = line.strip() if day is None else f"{day} {match[2]}"
        elif self._header is not None and self._header.search(line):
            self._take_names(line)
        elif self._kind is None:
            self._above += 1
        elif line.startswith(("Average", "Durchschn", "Moyenne", "Summary")):
            self._averages += 1
        else:
            self._take_row(line, self._kind)

    def _known_order(self, day: str, line: str) -> DayOrder:
        """Return the order of day and month: a clock with AM and PM goes with the month first."""
        if self._order is not DayOrder.NONE:
            return self._order
        if day_of(day, DayOrder.DAY_FIRST) == day_of(day, DayOrder.MONTH_FIRST):
            return DayOrder.MONTH_FIRST
        for order, other in (
            (DayOrder.DAY_FIRST, DayOrder.MONTH_FIRST), (DayOrder.MONTH_FIRST, DayOrder.DAY_FIRST),
        ):  # fmt: skip
            if day_of(day, other) is None:
                return order
        if re.search(r"\d\s[AP]M\b", line):
            return DayOrder.MONTH_FIRST
        raise TableFileError(
            f"{self._path} does not say which of day and month is first in {day}:"
            " add --day-first or --month-first"
        )

    def _begin(self, day: date | None) -> None:
        self._day = day
        for kind in self._kinds.values():
            kind.day, kind.seconds = day, 0.0

    def _take_value(self, line: str) -> None:
        match = self._line.match(line) if self._line else None
        if match is None:
            self._above += not self._rows
            self._odd += bool(self._rows) and not line.lstrip().startswith("#")
            return
        self._rows += 1
        self._add(match["time"], 0, match["name"], "", match["value"])

    def _take_names(self, line: str) -> None:
        leading = _LEADING_CLOCK.match(line)
        fields = self._split(line[leading.end() :] if leading else line)
        names = tuple(name for name in fields if name not in ("#", "avg-cpu:"))
        names = unique_names([name.lstrip("# ") for name in names])
        if names in self._in_sample and not self._moment:  # no times: a sample begins
            self._in_sample.clear()
            self._read += 1
        self._in_sample.add(names)
        if names not in self._kinds:
            self._kinds[names] = _Kind(len(self._kinds), names, day=self._day)
        self._kind = self._kinds[names]

    def _take_row(self, line: str, kind: _Kind) -> None:
        sections, names = self._sections, kind.names
        leading = _LEADING_CLOCK.match(line)
        moment = leading[1] if leading else ""
        fields = self._split(line[leading.end() :] if leading else line)
        if leading and names[:1] == (sections.time,):
            names = names[1:]
        if len(fields) > len(names) and _FREE_TEXT.intersection(names[-1:]):
            fields = [*fields[: len(names) - 1], " ".join(fields[len(names) - 1 :])]
        if len(fields) != len(names):
            self._odd += 1
            return
        row = dict(zip(names, fields, strict=True))
        moment = row.pop(sections.time, "") or moment
        self._hosts |= {host: None} if (host := row.pop(sections.host, "")) else {}
        label = "/".join([row.pop(name) for name in names if name in sections.labels])
        kind.labels[label] = None
        self._rows += 1
        time = self._time_of(moment, kind)
        for name, value in row.items():
            if name not in sections.dropped:
                self._add(time, kind.number, name, label, value)

    def _time_of(self, moment: str, kind: _Kind) -> str:
        """Return the time of a row, with its day if that is known."""
        if not moment:
            return self._moment or f"#{self._read}"
        seconds = seconds_of_clock(moment)
        if seconds is None or kind.day is None:
            return moment
        if seconds < kind.seconds - _NEXT_DAY:
            kind.day += timedelta(days=1)
        kind.seconds = seconds
        return f"{kind.day} {moment}"

    def _add(self, time: str, kind: int, name: str, label: str, value: str) -> None:
        sample = self._samples.setdefault(time, len(self._samples))
        column = self._values.setdefault((kind, name, label), {})
        self._replaced += sample in column
        column[sample] = None if is_missing(value) else value

    def _split(self, line: str) -> list[str]:
        separator = self._sections.separator
        return line.split() if separator == BLANKS else list(split_fields(line, separator))
