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
from reveal_analyzer.tables.ingest.field_kinds import (
    MOST_FIELDS,
    ColumnKinds,
    is_missing,
    kind_of_field,
)
from reveal_analyzer.tables.ingest.formats import BLANKS, TableFormat
from reveal_analyzer.tables.ingest.head_lines import Head, HeadLine
from reveal_analyzer.tables.ingest.open import TableFileError

_SEPARATORS = (",", ";", "\t", "|", BLANKS)
_QUOTED_OR_BARE = re.compile(r'"[^"]*"|\S+')
_HAS_BLANK = re.compile(r"\s")
_NAMED_SEPARATOR = re.compile(r'"?sep=([,;|\t])"?\s*\Z', re.IGNORECASE)
_RULE = re.compile(r"[-+=|\s]*\Z")  # a line of dashes below a header, and an empty one
_UNIT = r"(?:\s?[A-Za-zµ°%/]{1,5})?\Z"
_DECIMAL_COMMA = re.compile(rf"[-+]?(?:\d+|\d{{1,3}}(?:\.\d{{3}})+),\d+{_UNIT}")
_DECIMAL_POINT = re.compile(rf"[-+]?\d*\.(?:\d{{1,2}}|\d{{4,}}){_UNIT}")
_THOUSANDS_POINT = re.compile(rf"[-+]?\d{{1,3}}(?:\.\d{{3}})+(?:,\d+)?{_UNIT}")
_MOST_ROWS = 200
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
    kinds = ColumnKinds.of([row.fields for row in rows if len(row.fields) == width])
    first = _first_row(rows, kinds)
    while first and _is_missing(rows[first - 1], width):
        first -= 1  # a row, too
    rows = _with_row_names(rows, first, width)
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
        if '"' not in line:
            return tuple(line.split())
        return tuple(field.strip('"') for field in _QUOTED_OR_BARE.findall(line))
    try:
        fields = next(csv.reader([line], delimiter=separator, skipinitialspace=True), [])
    except csv.Error:  # a field of more than 128 KiB, or a line end within
        fields = line.split(separator)
    return tuple(field.strip() for field in fields)


def _separator(lines: Sequence[str]) -> str:
    """Return the separator by which most lines have the same number of fields, and numbers."""
    sample = [line for line in lines if not line.startswith("#")][-_MOST_ROWS:] or lines[:1]
    budget = max(3, MOST_FIELDS // (1 + max(len(line) for line in sample) // 4))
    best, chosen, joined = (0.0, 0), ",", True
    for separator in _SEPARATORS:
        rows = [split_fields(line, separator) for line in sample[-budget:]]
        width, count = Counter(len(row) for row in rows).most_common(1)[0]
        if width < 2:
            continue
        values = [field for row in rows if len(row) == width for field in row]
        texts = [field for field in values if kind_of_field(field) == "text"]
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


def _first_row(rows: Sequence[_Row], kinds: ColumnKinds) -> int:
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
    if (levels := _of_levels(names)) is not None:
        return start, levels
    if len(names) > 1 and "" in names[0][1:] and "" not in names[1]:
        return start + 1, _grouped(names[0], names[1])
    return start, names[0]


def _of_levels(lines: Sequence[tuple[str, ...]]) -> tuple[str, ...] | None:
    """Return names of several levels, one a line, as pandas writes them; None for other lines.

    The first line repeats names, which the lines below it tell apart.
    """
    top = lines[0][1:] if lines else ()
    if len(lines) < 2 or "" in top or len(set(top)) == len(top):
        return None
    parts = [list(dict.fromkeys(filter(None, column))) for column in zip(*lines, strict=True)]
    names = (*parts[0][-1:], *(":".join(each) for each in parts[1:]))
    return names if len(names) == len(set(names)) == len(lines[0]) else None


def _with_row_names(rows: list[_Row], first: int, width: int) -> list[_Row]:
    """Return the rows with a name for the row numbers of R, which its header does not name.

    R quotes them.  Without quotes it may be the last column that has no name.
    """
    if not 0 < first < len(rows) - 1 or len(rows[first - 1].fields) != width - 1:
        return rows
    if not all(row.line.text.lstrip().startswith('"') for row in rows[first - 1 : first + 1]):
        return rows
    numbers = [row.fields[0] for row in rows[first : first + _MOST_ROWS] if row.fields]
    begin = int(numbers[0]) if numbers[0].isdecimal() else -1
    if begin < 0 or numbers != [str(begin + index) for index in range(len(numbers))]:
        return rows
    line, names = rows[first - 1]
    return [*rows[: first - 1], _Row(line, ("row", *names)), *rows[first:]]


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
    if len(fields) == width and not all(map(is_missing, fields)):
        return tuple(" ".join(field.split()).strip("'") for field in fields)
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
    count = max(3, MOST_FIELDS // max(1, len(rows[0])))
    fields = [field for row in rows[:count] for field in row]
    if not any(map(_DECIMAL_COMMA.match, fields)) or any(map(_DECIMAL_POINT.match, fields)):
        return ".", None
    return ",", "." if any(map(_THOUSANDS_POINT.match, fields)) else None


def _numbered(count: int) -> tuple[str, ...]:
    return tuple(f"c{number}" for number in range(1, count + 1))
