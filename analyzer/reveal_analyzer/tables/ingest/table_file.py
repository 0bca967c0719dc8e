"""Opens the table in a file, whatever has written it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol

import pandas as pd

from reveal_analyzer.tables.ingest.csv import TextTable
from reveal_analyzer.tables.ingest.formats import (
    TableFormat,
    recognized_format,
    requested_format,
)
from reveal_analyzer.tables.ingest.head_lines import head_of
from reveal_analyzer.tables.ingest.number_texts import NumberMarks
from reveal_analyzer.tables.ingest.open import FileKind, TableFileError, kind_of, open_text
from reveal_analyzer.tables.ingest.parquet import ParquetTable
from reveal_analyzer.tables.ingest.section_report import SectionReport
from reveal_analyzer.tables.ingest.time_texts import DayOrder


class TableFile(Protocol):
    """A table file: the names of its columns and their values, block by block.

    ``host`` is the host that it names above the table; "" if it names none.
    """

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def host(self) -> str: ...

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
    with open_text(path) as file:
        head = head_of(path, file)
    chosen = requested_format(path, format_name, head) if format_name else recognized_format(head)
    if chosen is not None and chosen.sections is not None:
        return OpenedTable(SectionReport(path, chosen, order), chosen)
    return OpenedTable(TextTable(path, head, chosen), chosen)
