"""Finds the layout of a text table by its first lines: separator, header, first row and marks.

A header is judged by the rows below it, and never alone: it has text where they have numbers or
times.  What stands above it is no part of the table.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from reveal_analyzer.tables.ingest.column_names import unique_names
from reveal_analyzer.tables.ingest.formats import BLANKS, TableFormat
from reveal_analyzer.tables.ingest.head_lines import Head, HeadLine
from reveal_analyzer.tables.ingest.open import TableFileError

# in addition to those of pandas: "", NA, N/A, NaN, null, None ...
MISSING = (
    "-", "--", "?", r"\N", "(null)", "[N/A]", "[Not Supported]", "[Unknown Error]", "NaN%",
    "<not counted>", "<not supported>", "#DIV/0!", "#N/A", "#VALUE!", "Infinity%",
)  # fmt: skip
_SEPARATORS = (",", ";", "\t", "|", BLANKS)
_HAS_BLANK = re.compile(r"\s")
_NAMED_SEPARATOR = re.compile(r'"?sep=([,;|\t])"?\s*\Z', re.IGNORECASE)
_RULE = re.compile(r"[-+=|\s]*\Z")  # a line of dashes below a header, and an empty one
_PLAIN = re.compile(r"[-+]?\d+(?:\.\d+)?\Z")
_NUMBER = re.compile(r"['\"]?[-+]?(?:\d[\d.,']*|\.\d+)(?:e[-+]?\d+)?\s?(?:%|[a-zµ°]{0,4})?\Z", re.I)
_CLOCK = (
    r"\d\d?:\d\d(?::\d\d(?:[.,]\d+)?)?\s?(?:[AP]M)?"
    r"\s?(?:Z|[A-Z]{3,4}|[+-]\d\d:?\d\d(?:\s[A-Z]{2,5})?)?"
)
_TIME = re.compile(
    r"(?:\d{4}([-/.]?)\d\d\1\d\d|\d\d?[./-]\d\d?[./-]\d{4})"
    rf"(?:T\d{{4,6}}Z?|[T ]{_CLOCK})?\Z|{_CLOCK}\Z"
    # with the name of the month, as in RFC 1123 and in logs of web servers
    rf"|(?:[a-z]{{3}},?\s)?\d\d?[\s/-][a-z]{{3}}[\s/-]\d{{4}}(?:[\s:]{_CLOCK})?\Z",
    re.IGNORECASE,
)
_NOTHING = frozenset(
    word.casefold()
    for word in (*MISSING, "", "na", "n/a", "nan", "-nan", "null", "none", "inf", "-inf", "+inf")
)
_UNIT = r"(?:\s?[A-Za-zµ°%/]{1,5})?\Z"
_DECIMAL_COMMA = re.compile(rf"[-+]?(?:\d+|\d{{1,3}}(?:\.\d{{3}})+),\d+{_UNIT}")
_DECIMAL_POINT = re.compile(rf"[-+]?\d*\.(?:\d{{1,2}}|\d{{4,}}){_UNIT}")
_THOUSANDS_POINT = re.compile(rf"[-+]?\d{{1,3}}(?:\.\d{{3}})+(?:,\d+)?{_UNIT}")
_MOST_FIELDS = 200_000  # that are looked at
_MOST_ROWS = 200
_MOST = 0.6  # of the values of a column are of its kind
_MOST_ODD = 0.5  # of the numbers of a row are words
_FULL, _FEWEST_ROWS = 0.2, 3  # of the rows have all fields


@dataclass(frozen=True)
class Layout:
    """How a text table is written.

    ``names`` come from the header or are generated, ``header`` are its fields as written.  The
    first row begins at byte ``start``.  ``texts`` are the columns that hold times or other text.
    """

    names: tuple[str, ...]
    separator: str = ","
    header: tuple[str, ...] = ()
    start: int = 0
    lines_above: int = 0  # above the first row
    decimal: str = "."
    thousands: str | None = None
    texts: tuple[int, ...] = ()
    skipped: int = 0  # lines above the header, or above the first row if there is none
    below: int = 0  # lines between the header and the first row


class _Row(NamedTuple):
    line: HeadLine
    fields: tuple[str, ...]


def layout_of(path: Path, head: Head, known: TableFormat | None = None) -> Layout:
    """Return the layout of a table by its first lines; raises ``TableFileError``.

    ``known`` is the format of the tool that has written it.
    """
    lines, size = head
    filled = [line for line in lines if line.text.strip()]
    if not filled:
        raise TableFileError(f"{path} is empty: a table begins with the names of its columns")
    named = _NAMED_SEPARATOR.match(filled[0].text)
    filled = filled[1:] if named else filled
    lines = [line for line in filled if not _RULE.match(line.text)] or filled
    separator = named[1] if named else _separator([line.text for line in lines])
    if known and known.separator and not named:
        separator = known.separator
    rows = _without_last_separator(
        [_Row(line, split_fields(line.text, separator)) for line in lines], separator
    )
    width = _width(rows, separator)
    kinds = _Kinds.of([row.fields for row in rows if len(row.fields) == width])
    first = _first_row(rows, kinds)
    while first and _is_missing(rows[first - 1], width):
        first -= 1  # a row, too
    header, names = _header(rows, first, width)
    if header < 0 and first < len(rows) and _counts_up(rows[first].fields):
        header, names, first = first, rows[first].fields, first + 1
    if known is not None:
        header, names, first = _known_header(known, rows, (header, names, first), width)
    if header < 0 and not names:
        _check_above(path, rows, first, width)
    decimal, thousands = _marks(separator, [row.fields for row in rows[first:]])
    lines_above = rows[first].line.number - 1 if first < len(rows) else 0
    top = rows[header].line.number - 1 if header >= 0 else lines_above
    return Layout(
        names=unique_names(names) if names else _numbered(width),
        separator=separator,
        header=rows[header].fields if header >= 0 else (),
        start=_begin(rows, first, size),
        lines_above=lines_above,
        decimal=decimal,
        thousands=thousands,
        texts=tuple(index for index, kind in enumerate(kinds.kinds) if kind in ("time", "text")),
        skipped=max(0, top - bool(named)),
        below=_below(rows, header, first),
    )


_Header = tuple[int, tuple[str, ...], int]


def _known_header(known: TableFormat, rows: Sequence[_Row], found: _Header, width: int) -> _Header:
    """Return the number of the header, its names and the first row, as the format has them."""
    if known.names:
        names = known.names.get(width, ())
        if not names:
            return found
        first = next((n for n, row in enumerate(rows) if len(row.fields) == width), found[2])
        return -1, names, first
    if known.grouped:
        return _with_groups(rows, found, width)
    header = next((n for n, row in enumerate(rows) if known.signs(row.line)), -1)
    if header < 0:
        return found
    split = _split_names(known, rows[header], width)
    parts = _names(_Row(rows[header].line, split), width)
    if parts is None:
        return found
    skipped = re.compile(known.skipped) if known.skipped else None
    below = range(header + 1, len(rows))
    first = next(
        (
            n
            for n in below
            if len(rows[n].fields) == width
            and not rows[n].line.text.startswith("#")
            and not (skipped and skipped.match(rows[n].fields[0]))
        ),
        len(rows),
    )
    return header, parts, first


def _with_groups(rows: Sequence[_Row], found: _Header, width: int) -> _Header:
    """Return the names directly above the first row, with the groups above them."""
    first = found[2]
    names = [_names(row, width) for row in rows[max(0, first - 2) : first]]
    if len(names) < 2 or names[0] is None or names[1] is None:
        return found
    return first - 1, _grouped(names[0], names[1]), first


def _split_names(known: TableFormat, row: _Row, width: int) -> tuple[str, ...]:
    """Return the names of a header in which a column of two words has one name."""
    bare = [name.lstrip("# ") for name in row.fields if name.strip("# ")]
    if not known.two_words or len(bare) >= width:
        return row.fields
    pattern, *both = known.two_words
    return tuple(part for name in bare for part in (both if re.match(pattern, name) else [name]))


def _below(rows: Sequence[_Row], header: int, first: int) -> int:
    """Return the number of lines between the header and the first row, without blank ones."""
    return max(0, min(first, len(rows)) - header - 1) if header >= 0 else 0


def split_fields(line: str, separator: str) -> tuple[str, ...]:
    """Return the fields of a line without the blanks around them."""
    if separator == BLANKS:
        return tuple(line.split())
    try:
        fields = next(csv.reader([line], delimiter=separator, skipinitialspace=True), [])
    except csv.Error:  # a field of more than 128 KiB, or a line end within
        fields = line.split(separator)
    return tuple(field.strip() for field in fields)


def _separator(lines: Sequence[str]) -> str:
    """Return the separator by which most lines have the same number of fields, and numbers."""
    sample = [line for line in lines if not line.startswith("#")][-_MOST_ROWS:] or lines[:1]
    budget = max(3, _MOST_FIELDS // (1 + max(len(line) for line in sample) // 4))
    best, chosen, joined = (0.0, 0), ",", True
    for separator in _SEPARATORS:
        rows = [split_fields(line, separator) for line in sample[-budget:]]
        width, count = Counter(len(row) for row in rows).most_common(1)[0]
        if width < 2:
            continue
        values = [field for row in rows if len(row) == width for field in row]
        texts = [field for field in values if _kind(field) == "text"]
        score = round((1 - len(texts) / len(values)) * count / len(rows), 1), width
        # blanks may stand in the fields of any other: they separate only what that leaves joined
        if score > best and not (separator == BLANKS and (best[0] >= score[0] or not joined)):
            best, chosen, joined = score, separator, any(map(_HAS_BLANK.search, texts))
    return chosen


def _without_last_separator(rows: list[_Row], separator: str) -> list[_Row]:
    """Return the rows without their last field, if each full one ends with a separator."""
    width = _width(rows, separator)
    full = [row.fields for row in rows if len(row.fields) == width]
    if separator == BLANKS or width < 2 or any(fields[-1] for fields in full):
        return rows
    return [_Row(row.line, row.fields[:-1]) if len(row.fields) == width else row for row in rows]


def _width(rows: Sequence[_Row], separator: str) -> int:
    """Return the number of fields of a row.

    Where a separator stands between them, fields at the end of a row may be missing.
    """
    counts = Counter(len(row.fields) for row in rows[1:] or rows)
    most = max(counts.values())
    least = most if separator == BLANKS else min(most, max(_FEWEST_ROWS, _FULL * counts.total()))
    widths = [width for width, count in counts.items() if count >= least]
    first = len(rows[0].fields)
    return first if first in widths else max(widths)


def _first_row(rows: Sequence[_Row], kinds: _Kinds) -> int:
    """Return the number of the first row with values; 1 if none has any."""
    below_names = False
    for number, row in enumerate(rows):
        if len(row.fields) != len(kinds.kinds):
            continue
        odd = kinds.odd(row.fields)
        # below a header, some of its values may be words
        if odd is not None and (odd == 0 or (below_names and odd < _MOST_ODD)):
            return number
        below_names = below_names or odd is None or odd >= _MOST_ODD
    return 1


class _Kinds(NamedTuple):
    """The kind of each column: number, time, text, or nothing that is known."""

    kinds: tuple[str, ...]

    @classmethod
    def of(cls, rows: Sequence[tuple[str, ...]]) -> _Kinds:
        if not rows:
            return cls(())
        count = max(3, min(_MOST_ROWS, _MOST_FIELDS // max(1, len(rows[0]))))
        return cls(tuple(_kind_of_column(column) for column in zip(*rows[-count:], strict=True)))

    def odd(self, fields: Sequence[str]) -> float | None:
        """Return the share of words where numbers are usual; None for a line without values."""
        found = [(kind, _kind(field)) for kind, field in zip(self.kinds, fields, strict=True)]
        times = [of in ("time", "") for kind, of in found if kind == "time"]
        numbers = [of == "number" for kind, of in found if kind == "number" and of]
        if not all(times) or not (numbers or any(of for kind, of in found if kind == "time")):
            return None
        return 1 - sum(numbers) / len(numbers) if numbers else 0.0


def _kind_of_column(column: Sequence[str]) -> str:
    kinds = Counter(kind for field in column if (kind := _kind(field)))
    if not kinds:
        return ""
    kind, count = kinds.most_common(1)[0]
    return kind if count >= _MOST * sum(kinds.values()) else "text"


def _kind(field: str) -> str:
    if _PLAIN.match(field):  # most fields are, and a wide table has many
        return "number"
    if is_missing(field):
        return ""
    if _TIME.match(field) and not field.isdigit():
        return "time"
    return (
        "number" if _NUMBER.match(field) or field in ("true", "false", "True", "False") else "text"
    )


def is_missing(field: str) -> bool:
    """Return whether a field says that there is no value."""
    return field.casefold() in _NOTHING


def _is_missing(row: _Row, width: int) -> bool:
    """Return whether a row has no values: all of them are missing."""
    return len(row.fields) == width and all(map(is_missing, row.fields))


def _header(rows: Sequence[_Row], first: int, width: int) -> tuple[int, tuple[str, ...]]:
    """Return the number of the header and its names; -1 and none if there is none.

    It is the first of the lines of names directly above the first row: a line of units may follow.
    One with empty fields names groups of columns, and the next one the columns.
    """
    names: list[tuple[str, ...]] = []
    for row in reversed(rows[:first]):
        found = _names(row, width)
        if found is None:
            break
        names.insert(0, found)
    start = first - len(names)
    if not names:
        return -1, ()
    # a comment may look like names, too
    later = next((n for n in range(start, first) if not rows[n].line.text.startswith("#")), start)
    names, start = names[later - start :], later
    if len(names) > 1 and "" in names[0][1:] and "" not in names[1]:
        return start + 1, _grouped(names[0], names[1])
    return start, names[0]


def _begin(rows: Sequence[_Row], first: int, size: int) -> int:
    """Return the offset of the first row; that of the end of the lines if there is none."""
    return rows[first].line.begin if first < len(rows) else size


def _names(row: _Row, width: int) -> tuple[str, ...] | None:
    """Return the names in a header of this width; None if it cannot be one.

    It may begin with a mark of comments, and rows may end with a separator that it has not.
    """
    fields = row.fields
    quoted = sum(field.startswith('"') or field.endswith('"') for field in fields)
    if 0 < quoted < len(fields):  # a sentence of a tool: a reader of CSV leaves no quotes
        return None
    if fields and fields[0].startswith("#"):
        bare = fields[0].lstrip("#").strip()
        fields = (bare, *fields[1:]) if bare or len(fields) == width else fields[1:]
    if len(fields) == width and any(field.casefold() not in _NOTHING for field in fields):
        return tuple(" ".join(field.split()) for field in fields)
    return None


def _check_above(path: Path, rows: Sequence[_Row], first: int, width: int) -> None:
    """Raise ``TableFileError`` if the line above the first row names too few or many columns."""
    if not first:
        return
    line, fields = rows[first - 1]
    if line.text.startswith("#") or len(fields) < 2 or first > 1:
        return
    raise TableFileError(
        f"{path}: line {line.number} names {len(fields)} columns, but the rows below have"
        f" {width} fields: give each column one name"
    )


def _grouped(groups: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """Return names as ``group:name``, where a group covers the empty fields after it."""
    result, group = [], ""
    for above, name in zip(groups, names, strict=True):
        group = above or group
        bare = name.removeprefix(f"{group}:")  # dool writes both
        result.append(f"{group}:{bare}" if group else name)
    return tuple(result)


def _counts_up(fields: Sequence[str]) -> bool:
    """Return whether a line numbers its columns from 0 on; an index column may have no number."""
    numbers = fields[1:] if fields and not fields[0].isdigit() else fields
    return len(numbers) > 1 and list(numbers) == [str(index) for index in range(len(numbers))]


def _marks(separator: str, rows: Sequence[tuple[str, ...]]) -> tuple[str, str | None]:
    """Return the decimal mark and that of thousands, by all rows that were read."""
    if separator == "," or not rows:
        return ".", None
    count = max(3, _MOST_FIELDS // max(1, len(rows[0])))
    fields = [field for row in rows[:count] for field in row]
    if not any(map(_DECIMAL_COMMA.match, fields)) or any(map(_DECIMAL_POINT.match, fields)):
        return ".", None
    return ",", "." if any(map(_THOUSANDS_POINT.match, fields)) else None


def _numbered(count: int) -> tuple[str, ...]:
    return tuple(f"c{number}" for number in range(1, count + 1))
