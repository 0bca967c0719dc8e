"""Recordings as tables: one row for each second, one column for each metric and instance."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

import numpy as np

from reveal_analyzer.arrays import Floats
from reveal_cli.errors import CliError
from reveal_cli.metric_values import MetricValues, ValueLabels
from reveal_cli.recordings import Slices
from reveal_cli.scores_csv import name_cell
from reveal_contract.finding import rfc3339
from reveal_contract.foreign_names import printable
from reveal_contract.time_units import NS_PER_SECOND

TIME, NODE = "time", "node"  # the node only where there are several
_GROUP_ROWS = 600  # of a Parquet file: ten minutes


class Row(NamedTuple):
    """The values of one node in one second, in the order of the table's columns."""

    start_ns: int
    node: str
    values: Floats


class RecordingRows:
    """The rows of a recording; it is read once for its columns, and again for the rows.

    ``globs`` select metrics by their names, or by their names with instances; none selects all.
    Raises ``CliError`` where nothing is left.
    """

    def __init__(self, path: Path, globs: Sequence[str] = ()) -> None:
        self._path, self._globs = path, globs
        self._set_back_s = 0
        self._is_truncated = False
        indices: dict[str, int] = {}
        nodes: dict[str, None] = {}
        for node, labels, _, _ in self._seconds():
            nodes[node] = None
            for _, label in self._selected(labels):
                indices.setdefault(label, len(indices))
        if not nodes:
            raise CliError(f"{path} holds no slices: nothing to export")
        if not indices:
            raise CliError(
                f"--metric {' '.join(globs)}: {path} has no such metric; `reveal catalog` lists all"
            )
        self._indices, self.several_nodes = indices, len(nodes) > 1

    @property
    def labels(self) -> list[str]:
        """The columns of the metrics."""
        return list(self._indices)

    @property
    def warnings(self) -> list[str]:
        """What is missing in the table, after it was read."""
        found = []
        if self._is_truncated:
            found.append(f"{self._path} is incomplete; it is exported up to its end")
        if self._set_back_s:
            found.append(
                f"{self._set_back_s} s are left out: the clock was set back, and a second cannot"
                " be in two rows"
            )
        return found

    def __iter__(self) -> Iterator[Row]:
        plans: dict[int, tuple[ValueLabels, list[int], list[int]]] = {}
        for node, labels, start_ns, observed in self._seconds():
            if id(labels) not in plans:
                chosen = list(self._selected(labels))
                source = [index for index, _ in chosen]
                plans[id(labels)] = labels, source, [self._indices[label] for _, label in chosen]
            _, source, target = plans[id(labels)]
            values = np.full(len(self._indices), np.nan)
            values[target] = observed[source]
            yield Row(start_ns, node, values)

    def _seconds(self) -> Iterator[tuple[str, ValueLabels, int, Floats]]:
        nodes: dict[str, MetricValues] = {}
        last_ns: dict[str, int] = {}
        self._set_back_s, slices = 0, Slices(self._path)
        for message, table in slices:
            if message.start_ns <= last_ns.get(message.node, -1):
                self._set_back_s += 1
                continue
            last_ns[message.node] = message.start_ns
            values = nodes.setdefault(message.node, MetricValues())
            yield message.node, *_timed(values.second(message, table), message.start_ns)
        self._is_truncated = slices.truncated

    def _selected(self, labels: ValueLabels) -> Iterator[tuple[int, str]]:
        """Yield the index and label of each value that is a column."""
        for index, (label, metric) in enumerate(zip(labels.labels, labels.metrics, strict=True)):
            if labels.is_level[index] and self._matches(metric, label):
                yield index, label

    def _matches(self, metric: str, label: str) -> bool:
        return not self._globs or any(
            fnmatchcase(metric, glob) or fnmatchcase(label, glob) for glob in self._globs
        )


def _timed(second: tuple[ValueLabels, Floats], start_ns: int) -> tuple[ValueLabels, int, Floats]:
    labels, values = second
    return labels, start_ns, values


def csv_lines(rows: RecordingRows) -> Iterator[str]:
    """Yield the lines of a CSV; an empty cell is a value that was not read."""
    line = _line_writer()
    yield line([TIME, *([NODE] if rows.several_nodes else []), *rows.labels])
    for row in rows:
        node = [name_cell(printable(row.node))] if rows.several_nodes else []
        yield line([rfc3339(row.start_ns), *node, *map(_number, row.values.tolist())])


def _line_writer() -> Callable[[Sequence[str]], str]:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")

    def line(cells: Sequence[str]) -> str:
        text.seek(0)
        text.truncate()
        writer.writerow(cells)
        return text.getvalue()

    return line


def _number(value: float) -> str:
    """Return twelve significant digits, or nothing for NaN."""
    return "" if value != value else f"{value:.12g}"  # noqa: PLR0124 - NaN


def parquet_parts(rows: RecordingRows) -> Iterator[bytes]:
    """Yield the parts of a Parquet file; raises ``CliError`` where pyarrow is not installed."""
    try:
        import pyarrow as arrow  # noqa: PLC0415 - an extra, needed for this format only
        from pyarrow.parquet import ParquetWriter  # noqa: PLC0415
    except ModuleNotFoundError:
        raise CliError(
            "writing Parquet needs pyarrow: pip install pyarrow, or write FILE.csv"
        ) from None
    fields = [(TIME, arrow.timestamp("ms", tz="UTC"))]
    fields += [(NODE, arrow.string())] if rows.several_nodes else []
    schema = arrow.schema([*fields, *((label, arrow.float64()) for label in rows.labels)])
    sink = _Sink()
    with ParquetWriter(sink, schema) as writer:
        for group in _groups(rows):
            times = [row.start_ns * 1000 // NS_PER_SECOND for row in group]
            arrays = [arrow.array(times, schema.field(TIME).type)]
            if rows.several_nodes:
                arrays.append(arrow.array([printable(row.node) for row in group]))
            values = np.stack([row.values for row in group])
            arrays += [arrow.array(column, from_pandas=True) for column in values.T]
            writer.write_table(arrow.Table.from_arrays(arrays, schema=schema))
            yield from sink.taken()
    yield from sink.taken()


def _groups(rows: RecordingRows) -> Iterator[list[Row]]:
    group: list[Row] = []
    for row in rows:
        group.append(row)
        if len(group) == _GROUP_ROWS:
            yield group
            group = []
    if group:
        yield group


class _Sink(io.RawIOBase):
    """Passes on what is written to it, so that the file is never in memory as a whole."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._position = 0

    def writable(self) -> bool:
        return True

    def write(self, data: object, /) -> int:
        part = bytes(data)  # type: ignore[call-overload]
        self._parts.append(part)
        self._position += len(part)
        return len(part)

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Return the position, which is always the end: the writer only asks for it."""
        return self._position

    def taken(self) -> list[bytes]:
        """Return what was written since the last call."""
        parts, self._parts = self._parts, []
        return parts
