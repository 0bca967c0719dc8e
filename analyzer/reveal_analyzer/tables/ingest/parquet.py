"""Wide Parquet tables, read in batches of rows by pyarrow, which is an optional extra."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from reveal_analyzer.tables.ingest.column_names import unique_names
from reveal_analyzer.tables.ingest.csv import BLOCK_VALUES
from reveal_analyzer.tables.ingest.number_texts import NumberMarks
from reveal_analyzer.tables.ingest.open import TableFileError, readable_errors


class ParquetTable:
    """Rows of a Parquet file, block by block; raises ``TableFileError`` if it is no table."""

    host = ""
    since = None

    def __init__(self, path: Path) -> None:
        try:
            import pyarrow  # noqa: PLC0415 - an extra, needed for this format only
            import pyarrow.parquet  # noqa: PLC0415
        except ImportError:
            raise TableFileError(
                f"{path} is Parquet, which needs pyarrow: pip install pyarrow"
            ) from None
        self.path = path
        self._damaged = pyarrow.ArrowException
        with readable_errors(path):
            try:
                self._file = pyarrow.parquet.ParquetFile(path)
            except pyarrow.ArrowException as error:
                raise self._damage(error) from None
        self.names = unique_names([str(name) for name in self._file.schema_arrow.names])
        self.marks = NumberMarks()

    @property
    def notes(self) -> list[str]:
        return []

    def blocks(self) -> Iterator[pd.DataFrame]:
        """Yield blocks with columns by number; nested columns hold objects."""
        rows = max(1, BLOCK_VALUES // max(1, len(self.names)))
        with readable_errors(self.path):
            try:
                for batch in self._file.iter_batches(rows):
                    frame = batch.to_pandas(ignore_metadata=True)
                    frame.columns = pd.RangeIndex(len(self.names))
                    yield frame
            except self._damaged as error:
                raise self._damage(error) from None

    def _damage(self, error: Exception) -> TableFileError:
        return TableFileError(f"{self.path} is damaged or cut off: {str(error).splitlines()[0]}")
