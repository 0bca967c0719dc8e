"""Wide text tables: one row a sample, a column a metric; CSV and what is like it.

Comma, semicolon, tab, bar or blanks between the fields, a header or none, plain, gzip or zstd.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import pandas as pd

from reveal_analyzer.tables.ingest.open import TableFileError, failures_told, text

# values a block of rows holds: 64 MB as numbers, and the parser needs about five times that
BLOCK_VALUES = 8_000_000
_MISSING = ("-", "--", "?")  # beside those of pandas: "", NA, N/A, NaN, null, None ...
_LONGEST_LINE = 64 << 20
_BLANKS = r"\s+"
_DECIMAL_COMMA = re.compile(r"(?:^|;)\s*-?\d+,\d+\s*(?:;|$)")


@dataclass(frozen=True)
class Dialect:
    """How a text table is written; ``names`` are those of the header, or made up."""

    names: tuple[str, ...]
    separator: str
    header: bool
    decimal: str = "."


class TextTable:
    """Rows of a text file, block by block; raises ``TableFileError`` where it makes no table."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with text(path) as file:
            self._dialect = _dialect(path, file)

    @property
    def names(self) -> tuple[str, ...]:
        return self._dialect.names

    @property
    def notes(self) -> list[str]:
        if self._dialect.header:
            return []
        return [f"no header: its columns are called {self.names[0]} to {self.names[-1]}"]

    def blocks(self) -> Iterator[pd.DataFrame]:
        """Columns by number; numbers where all of a block are, else texts."""
        # pandas may raise from any of the reads, and what the decompressor raises passes through
        with failures_told(self.path), text(self.path) as file:
            try:
                yield from self._parsed(file)
            except pd.errors.EmptyDataError:
                return
            except (pd.errors.ParserError, ValueError) as error:
                if isinstance(error, TableFileError):
                    raise
                raise TableFileError(f"{self.path}: {_plainly(error)}") from None

    def _parsed(self, file: BinaryIO) -> Iterator[pd.DataFrame]:
        width = len(self.names)
        reader = pd.read_csv(
            file,
            sep=self._dialect.separator,
            header=None,
            # one more than there are: a field too many shows there, and shifts no other
            names=list(range(width + 1)),
            skiprows=1 if self._dialect.header else 0,
            decimal=self._dialect.decimal,
            na_values=list(_MISSING),
            skipinitialspace=True,
            low_memory=False,
            encoding="utf-8-sig",
            encoding_errors="replace",
            chunksize=max(1, BLOCK_VALUES // (width + 1)),
        )
        with reader:
            for block in reader:
                if not isinstance(block.index, pd.RangeIndex) or block[width].notna().any():
                    raise TableFileError(
                        f"{self.path}: a row has more fields than the {width} of the header"
                    )
                yield block.drop(columns=width)


def _dialect(path: Path, file: BinaryIO) -> Dialect:
    first, second = _line(path, file), _line(path, file)
    if not first.strip():
        raise TableFileError(f"{path} is empty: a table begins with the names of its columns")
    separator = _separator(first)
    fields = [field.strip() for field in _fields(first, separator)]
    numbers = all(_number_or_nothing(field) for field in fields) and any(fields)
    names = _numbered(len(fields)) if numbers else _unique(fields)
    decimal = "," if separator == ";" and _DECIMAL_COMMA.search(second) else "."
    return Dialect(names, separator, not numbers, decimal)


def _line(path: Path, file: BinaryIO) -> str:
    line = file.readline(_LONGEST_LINE)
    if len(line) == _LONGEST_LINE:
        raise TableFileError(f"{path} is no table: its first line does not end")
    return line.decode("utf-8-sig", "replace").rstrip("\r\n")


def _separator(line: str) -> str:
    bare = re.sub(r'"[^"]*"', "", line)
    best = max(",;\t|", key=bare.count)
    if best in bare:
        return best
    return _BLANKS if len(bare.split()) > 1 else ","


def _fields(line: str, separator: str) -> list[str]:
    if separator == _BLANKS:
        return line.split()
    return next(csv.reader([line], delimiter=separator, skipinitialspace=True), [])


def _number_or_nothing(field: str) -> bool:
    try:
        float(field or "0")
    except ValueError:
        return False
    return True


def _numbered(count: int) -> tuple[str, ...]:
    return tuple(f"c{number}" for number in range(1, count + 1))


def _unique(fields: list[str]) -> tuple[str, ...]:
    """A name that stands again gets a number: ``user``, ``user#2``."""
    seen: dict[str, int] = {}
    names = []
    for field in fields:
        seen[field] = count = seen.get(field, 0) + 1
        names.append(field if count == 1 else f"{field}#{count}")
    return tuple(names)


def _plainly(error: Exception) -> str:
    """The parser's own words where they tell a line, without those that tell its insides."""
    said = str(error).strip().replace("Error tokenizing data. C error: ", "")
    return f"this is no table: {said}"
