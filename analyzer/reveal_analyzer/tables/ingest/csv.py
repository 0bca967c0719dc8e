"""Wide text tables, CSV and similar: one row per sample, one column per metric.

Fields are separated by comma, semicolon, tab, bar or blanks.  The header is optional.  Files may be
plain, gzip or zstd.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import pandas as pd

from reveal_analyzer.tables.ingest.open import TableFileError, open_text, readable_errors

# values in a block of rows: 64 MB as numbers; the parser needs about five times that
BLOCK_VALUES = 8_000_000
_MISSING = ("-", "--", "?")  # in addition to those of pandas: "", NA, N/A, NaN, null, None ...
_LONGEST_LINE = 64 << 20
_BLANKS = r"\s+"
_DECIMAL_COMMA = re.compile(r"(?:^|;)\s*-?\d+,\d+\s*(?:;|$)")


@dataclass(frozen=True)
class Dialect:
    """How a text table is written; ``names`` come from the header or are generated."""

    names: tuple[str, ...]
    separator: str
    header: bool
    decimal: str = "."


class TextTable:
    """Rows of a text file, block by block; raises ``TableFileError`` if it is no table."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with open_text(path) as file:
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
        """Yield blocks with columns by number; numbers if all values of a block are, else texts."""
        # pandas may raise at any read, and errors of the decompressor pass through it
        with readable_errors(self.path), open_text(self.path) as file:
            try:
                yield from self._parsed(file)
            except pd.errors.EmptyDataError:
                return
            except (pd.errors.ParserError, ValueError) as error:
                if isinstance(error, TableFileError):
                    raise
                raise TableFileError(f"{self.path}: {_parser_message(error)}") from None

    def _parsed(self, file: BinaryIO) -> Iterator[pd.DataFrame]:
        width = len(self.names)
        reader = pd.read_csv(
            file,
            sep=self._dialect.separator,
            header=None,
            # one extra column: a surplus field lands there instead of shifting the others
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
    """Return unique names: a repeated name gets a number, as in ``user``, ``user#2``."""
    counts: dict[str, int] = {}
    names = []
    for field in fields:
        counts[field] = count = counts.get(field, 0) + 1
        names.append(field if count == 1 else f"{field}#{count}")
    return tuple(names)


def _parser_message(error: Exception) -> str:
    """Return the parser's message without its internals."""
    message = str(error).strip().replace("Error tokenizing data. C error: ", "")
    return f"this is no table: {message}"
