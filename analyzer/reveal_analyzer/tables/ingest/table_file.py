"""Opens the table in a file, whatever has written it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import NamedTuple, Protocol

import pandas as pd

from reveal_analyzer.tables.ingest.csv import TextTable
from reveal_analyzer.tables.ingest.formats import (
    TableFormat,
    format_named,
    recognized_format,
    requested_format,
)
from reveal_analyzer.tables.ingest.head_lines import head_of
from reveal_analyzer.tables.ingest.json_table import JsonTable, begins_json
from reveal_analyzer.tables.ingest.number_texts import NumberMarks
from reveal_analyzer.tables.ingest.open import (
    FileKind,
    TableFileError,
    kind_of,
    open_text,
    readable_errors,
)
from reveal_analyzer.tables.ingest.parquet import ParquetTable
from reveal_analyzer.tables.ingest.section_report import SectionReport
from reveal_analyzer.tables.ingest.time_texts import DayOrder

_PEEKED = 256  # bytes by which JSON is recognized


class TableFile(Protocol):
    """A table file: the names of its columns and their values, block by block.

    ``host`` is the host that it names above the table; "" if it names none.  ``since`` is the first
    day that it names there.
    """

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def host(self) -> str: ...

    @property
    def since(self) -> date | None: ...

    @property
    def notes(self) -> list[str]: ...

    @property
    def marks(self) -> NumberMarks: ...

    def blocks(self) -> Iterator[pd.DataFrame]: ...


class OpenedTable(NamedTuple):
    """A table file, and the format of the tool that has written it, if that is known."""

    file: TableFile
    format: TableFormat | None


def open_table(path: Path, format_name: str, order: DayOrder) -> OpenedTable:
    """Open a table; raises ``TableFileError`` for a file that is none, or not of this format."""
    if kind_of(path) is FileKind.PARQUET:
        if format_name:
            raise TableFileError(f"{path} is Parquet, which needs no --format")
        return OpenedTable(ParquetTable(path), None)
    with readable_errors(path), open_text(path) as file:
        if begins_json(file.peek(_PEEKED)[:_PEEKED].decode("utf-8", "replace")):
            return _json_table(path, format_name)
        head = head_of(path, file)
    chosen = requested_format(path, format_name, head) if format_name else recognized_format(head)
    if chosen is not None and chosen.sections is not None:
        return OpenedTable(SectionReport(path, chosen, order), chosen)
    return OpenedTable(TextTable(path, head, chosen), chosen)


def _json_table(path: Path, format_name: str) -> OpenedTable:
    """Open JSON; raises ``TableFileError`` if it is not of this format."""
    table = JsonTable(path)
    found, requested = format_named(table.format), format_named(format_name)
    if requested is not None and found not in (None, requested):
        raise TableFileError(
            f"{path} is not what {requested.command} writes: leave out --format {format_name}"
        )
    return OpenedTable(table, requested or found)
