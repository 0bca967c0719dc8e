"""Wide text tables, CSV and similar: one row per sample, one column per metric.

Fields are separated by comma, semicolon, tab, bar or blanks.  The header is optional.  Files may be
plain, gzip or zstd.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pandas as pd

from reveal_analyzer.arrays import Bools
from reveal_analyzer.tables.ingest.field_kinds import MISSING
from reveal_analyzer.tables.ingest.formats import BLANKS, TableFormat
from reveal_analyzer.tables.ingest.head_lines import Head
from reveal_analyzer.tables.ingest.layout import layout_of, split_fields
from reveal_analyzer.tables.ingest.number_texts import NumberMarks, numbers_if_all
from reveal_analyzer.tables.ingest.open import TableFileError, open_text, readable_errors
from reveal_analyzer.tables.ingest.yearless_times import day_named

# values in a block of rows: 64 MB as numbers; the parser needs about five times that
BLOCK_VALUES = 8_000_000
_COUNTED, _MOST_SHORT = 200, 0.05  # rows whose fields are counted; may have too few
_CHECKED = 3  # columns in which a repeated header is looked for


class TextTable:
    """Rows of a text file, block by block; raises ``TableFileError`` if it is no table."""

    host = ""

    def __init__(self, path: Path, head: Head, known: TableFormat | None = None) -> None:
        self.path = path
        self._layout = layout_of(path, head, known)
        above = self._layout.lines_above
        self._short = self._short_rows(head, known)
        self.since = day_named(line.text for line in head.lines if line.number <= above)
        self._skipped = re.compile(known.skipped) if known and known.skipped else None
        self._repeated = 0

    @property
    def names(self) -> tuple[str, ...]:
        return self._layout.names

    @property
    def notes(self) -> list[str]:
        """What was left out, and what was understood; complete after the last block."""
        notes = []
        if self._layout.skipped:
            below = "header" if self._layout.header else "first row"
            notes.append(f"skipped {_lines(self._layout.skipped)} above the {below}")
        if self._layout.below:
            notes.append(f"skipped {_lines(self._layout.below)} below the header")
        if not self._layout.header:
            notes.append(f"no header: its columns are called {self.names[0]} to {self.names[-1]}")
        if self._short:
            notes.append(f"{_lines(self._short)} of the first have fewer fields than the header")
        if self._repeated:
            notes.append(f"skipped {_lines(self._repeated)} that repeat the header")
        if self._layout.decimal == ",":
            thousands = (
                f", thousands as 1{self._layout.thousands}000" if self._layout.thousands else ""
            )
            notes.append(f"numbers are written as 1,5{thousands}")
        return notes

    @property
    def marks(self) -> NumberMarks:
        """How its numbers are written."""
        return NumberMarks(self._layout.decimal, self._layout.thousands)

    def _short_rows(self, head: Head, known: TableFormat | None) -> int:
        """Return how many of the first rows have too few fields; raises if these may be any."""
        layout = self._layout
        rows = [line.text for line in head.lines if line.number > layout.lines_above]
        counts = [
            len(split_fields(row, layout.separator)) for row in rows[:_COUNTED] if row.strip()
        ]
        short = sum(1 < count < len(layout.names) for count in counts)
        if known is None and layout.separator == BLANKS and short > _MOST_SHORT * len(counts):
            raise TableFileError(
                f"{self.path}: {short} of the first {len(counts)} rows have fewer fields than the"
                f" {len(layout.names)} of the header, and blanks do not say which is missing: write"
                " CSV"
            )
        return short

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
                raise TableFileError(f"{self.path}: {self._message(error)}") from None

    def _parsed(self, file: BinaryIO) -> Iterator[pd.DataFrame]:
        width, layout = len(self.names), self._layout
        file.read(layout.start)
        reader = pd.read_csv(
            file,
            sep=layout.separator,
            header=None,
            # one extra column: a surplus field lands there instead of shifting the others
            names=list(range(width + 1)),
            decimal=layout.decimal,
            thousands=layout.thousands,
            # the mark of thousands must not vanish from dates
            dtype=dict.fromkeys(layout.texts, str) if layout.thousands else None,
            na_values=list(MISSING),
            skipinitialspace=True,
            low_memory=False,
            encoding="utf-8-sig",
            encoding_errors="replace",
            chunksize=max(1, BLOCK_VALUES // (width + 1)),
        )
        with reader:
            for block in reader:
                rows = self._without_headers(block)
                self._check_width(rows)
                yield rows.iloc[:, :width]

    def _check_width(self, rows: pd.DataFrame) -> None:
        """Raise ``TableFileError`` if a row has more fields than the header has names."""
        width = len(self.names)
        wide = rows[width].notna().to_numpy()
        if isinstance(rows.index, pd.RangeIndex) and not wide.any():
            return
        row = rows[wide].iloc[0] if wide.any() else rows.iloc[0]
        text = " ".join(
            f"{value:.15g}" if isinstance(value, float) else str(value) for value in row.dropna()
        )
        raise TableFileError(
            f"{self.path}: a row has more fields than the {width} of the header: {text[:60]!r}"
        )

    def _message(self, error: Exception) -> str:
        """Return the parser's message without its internals, with the line of the file."""
        message = str(error).strip().replace("Error tokenizing data. C error: ", "")
        above = self._layout.lines_above
        message = re.sub(r"(?<=in line )\d+", lambda line: str(int(line[0]) + above), message)
        return f"this is no table: {message}"

    def _without_headers(self, block: pd.DataFrame) -> pd.DataFrame:
        """Return the rows that do not repeat the header, as after a restart of what writes."""
        repeats = self._repeats(block)
        self._check_other_header(block[~repeats])
        if not repeats.any():
            return block
        self._repeated += int(repeats.sum())
        return block[~repeats].reset_index(drop=True).apply(numbers_if_all)

    def _check_other_header(self, block: pd.DataFrame) -> None:
        """Raise ``TableFileError`` for a line with other names than the header.

        What is below it would be read under the wrong names.
        """
        names = list(self._layout.header)
        if len(names) < 2 or any(map(_is_number, block.dtypes.iloc[: len(names)])):
            return
        texts = block.iloc[:, : len(names)].apply(
            lambda column: column.fillna("").astype(str).str.strip()
        )
        texts = texts[(texts.isin(names)).any(axis=1)]
        same = (texts == names).to_numpy()
        numbers = texts.apply(pd.to_numeric, errors="coerce").notna() | (texts == "")
        other = (
            ~numbers.any(axis=1).to_numpy()
            & ~same.all(axis=1)
            & (same[:, 0] | (texts.isin(names).sum(axis=1).to_numpy() >= len(names) - 1))
        )
        if other.any():
            raise TableFileError(
                f"{self.path}: a row has other names than the header"
                f" ({', '.join(texts[other].iloc[0])[:60]}): write what is below it to a file of"
                " its own"
            )

    def _repeats(self, block: pd.DataFrame) -> Bools:
        header = self._layout.header
        texts = [index for index, kind in enumerate(block.dtypes) if not _is_number(kind)]
        compared = [index for index in texts if index < len(header)][-_CHECKED:]
        named = [index for index, name in enumerate(header[: block.shape[1]]) if name]
        # a line of names would leave no column as numbers
        repeats = np.full(len(block), bool(compared) and set(named) <= set(texts))
        for index in compared:
            repeats &= (block[index].astype(str).str.strip() == header[index]).to_numpy()
        if 0 not in texts:
            return repeats
        first = block[0].astype(str)
        if header and header[0].startswith("#"):  # and so do its units
            repeats |= first.str.startswith("#").to_numpy()
        if self._skipped is not None:
            repeats |= first.str.match(self._skipped).to_numpy()
        return repeats


def _is_number(kind: object) -> bool:
    return bool(pd.api.types.is_numeric_dtype(kind))  # type: ignore[arg-type]


def _lines(count: int) -> str:
    return "1 line" if count == 1 else f"{count} lines"
