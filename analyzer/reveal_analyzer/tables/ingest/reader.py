"""Reads a wide table of any tool as tables of samples, one per node, with notes on changes.

A file is read once, block by block.  Numbers are kept up to 512 MiB in memory, beyond that in a
mapped temporary file.  A block takes some hundred MB while it is parsed, a row of input 16 bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from reveal_analyzer.arrays import Floats, Indices, Ints
from reveal_analyzer.tables.ingest import counter_columns, host_names
from reveal_analyzer.tables.ingest.csv import TextTable
from reveal_analyzer.tables.ingest.mmap_buffer import MEMORY_BYTES, RowBuffer
from reveal_analyzer.tables.ingest.open import FileKind, TableFileError, kind_of
from reveal_analyzer.tables.ingest.parquet import ParquetTable
from reveal_analyzer.tables.ingest.time_column import (
    UNREADABLE,
    TimeColumn,
    find_time_column,
    numbered_rows,
)
from reveal_analyzer.tables.scoring.table import Table
from reveal_contract.time_units import NS_PER_SECOND

_NAMED = 5  # columns that a note names
_MOST_COLUMNS = 1_000_000


class TableFile(Protocol):
    """A table file: the names of its columns and their values, block by block."""

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def notes(self) -> list[str]: ...

    def blocks(self) -> Iterator[pd.DataFrame]: ...


@dataclass(frozen=True)
class ReadOptions:
    """``time`` names the time column ("": find it); ``period_ns`` is the period of numbered rows.

    ``counters`` are the metrics to read as rates; ``None``: those that are evidently counters.
    """

    time: str = ""
    period_ns: int = 0
    memory_bytes: int = MEMORY_BYTES
    counters: frozenset[str] | None = None


@dataclass(frozen=True)
class NodeTable:
    """The table of one node in a file."""

    node: str
    table: Table


@dataclass(frozen=True)
class Dataset:
    """A file's tables, all over the same times.

    ``rows`` (input rows,) is the row of the tables for each row of the file; ``notes`` are
    sentences on what was left out, and why.
    """

    path: Path
    clock: TimeColumn
    nodes: tuple[NodeTable, ...]
    rows: Indices
    notes: tuple[str, ...]
    counters: frozenset[str]

    @property
    def times_ns(self) -> Ints:
        return self.nodes[0].table.times_ns


def read(path: Path, options: ReadOptions | None = None) -> Dataset:
    """Read a table; raises ``TableFileError`` if the file cannot be used as one."""
    options = options or ReadOptions()
    source: TableFile = ParquetTable(path) if kind_of(path) is FileKind.PARQUET else TextTable(path)
    if len(source.names) > _MOST_COLUMNS:
        raise TableFileError(f"{path} has {len(source.names)} columns: at most {_MOST_COLUMNS}")
    builder = _TableBuilder(path, source, options)
    for block in source.blocks():
        builder.add(block)
    return builder.dataset()


class _TableBuilder:
    """Collects the blocks of a file and builds its dataset."""

    def __init__(self, path: Path, source: TableFile, options: ReadOptions) -> None:
        self._path, self._options = path, options
        self._names = source.names
        self._notes = list(source.notes)
        self._buffer = RowBuffer(len(self._names), options.memory_bytes)
        self._clock: TimeColumn | None = None
        self._times: list[Ints] = []
        self._contents = _ColumnContents(len(self._names))

    def add(self, block: pd.DataFrame) -> None:
        if self._clock is None:
            self._clock = self._find_clock(block)
        if self._clock.column is None:
            first = self._buffer.rows
            numbers = np.arange(first, first + len(block), dtype=np.int64)
            self._times.append(numbers * self._clock.unit_ns)
        else:
            self._times.append(self._clock.read(block))
        self._buffer.append(self._contents.numbers(block))

    def dataset(self) -> Dataset:
        if self._clock is None or not self._buffer.rows:
            raise TableFileError(f"{self._path} holds no rows: nothing to judge")
        columns = self._kept(self._clock)
        times, chosen, rows = self._ordered(np.concatenate(self._times))
        named = host_names.split_hosts([self._names[index] for index in columns])
        groups: dict[str, list[int]] = {}
        for index, name in enumerate(named):
            groups.setdefault(name.host or _stem(self._path), []).append(index)
        if named[0].host:
            self._notes.append(f"host names in column names: {_list_some(list(groups), 'hosts')}")
        nodes = []
        for node, indices in groups.items():
            names = tuple(named[index].metric for index in indices)
            values = self._buffer.select(chosen, columns[indices])
            nodes.append(NodeTable(node, Table(times, names, values)))
        counted = self._rates(nodes)
        return Dataset(self._path, self._clock, tuple(nodes), rows, tuple(self._notes), counted)

    def _rates(self, nodes: Sequence[NodeTable]) -> frozenset[str]:
        """Convert counters to rates; a metric that is a counter on one node is one on all."""
        counted = self._options.counters
        if counted is None:
            counted = frozenset(name for part in nodes for name in counter_columns.find(part.table))
        for part in nodes:
            counter_columns.make_rates(part.table, counted)
        present = sorted({name for part in nodes for name in part.table.names} & counted)
        if present:
            self._notes.append(
                f"counters, taken as rates per second: {_list_some(present, 'columns')}"
            )
        return counted

    def _find_clock(self, block: pd.DataFrame) -> TimeColumn:
        options = self._options
        try:
            clock = find_time_column(self._names, block, options.time, options.period_ns)
        except TableFileError as error:
            raise TableFileError(f"{self._path}: {error}") from None
        if clock is not None:
            if clock.absolute and options.period_ns:
                name = self._names[clock.column or 0]
                self._notes.append(f"--period is not used: column {name} has the times")
            return clock
        if not options.period_ns:
            self._notes.append(
                "no time column found: rows are read as one second apart"
                " (--time names a column, --period sets the step)"
            )
        return numbered_rows(options.period_ns or NS_PER_SECOND)

    def _kept(self, clock: TimeColumn) -> Indices:
        """Return the metrics: all columns but times, texts and columns without any value."""
        contents, everything = self._contents, np.arange(len(self._names))
        metric = ~np.isin(
            everything, [index for index in (clock.column, clock.of_day) if index is not None]
        )
        texts, empty = metric & contents.text, metric & ~contents.text & ~contents.known
        kept: Indices = np.flatnonzero(metric & ~contents.text & contents.known)
        for marked, why in ((texts, "hold text"), (empty, "are always missing")):
            if marked.any():
                names = [self._names[index] or f"#{index + 1}" for index in everything[marked]]
                self._notes.append(f"left out, as they {why}: {_list_some(names, 'columns')}")
        if contents.infinite.any():
            names = [self._names[index] for index in everything[contents.infinite]]
            self._notes.append(f"infinite values count as missing: {_list_some(names, 'columns')}")
        if not len(kept):
            raise TableFileError(f"{self._path} has no column of numbers except its times")
        return kept

    def _ordered(self, times: Ints) -> tuple[Ints, Indices, Indices]:
        """Return rising times, the input row of each, and the position of each input row."""
        times = self._filled(times)
        order = np.argsort(times, kind="stable")
        if (order[1:] < order[:-1]).any():
            self._notes.append("rows are not in the order of time: they are put into it")
        rising = times[order]
        new = np.concatenate([[True], rising[1:] > rising[:-1]])
        if not new.all():
            self._notes.append(
                f"{_rows(int((~new).sum()))} the time of another: the last of each time counts"
            )
        positions = np.empty(len(times), np.intp)
        positions[order] = np.cumsum(new) - 1
        last = np.concatenate([new[1:], [True]])
        return rising[last], order[last], positions

    def _filled(self, times: Ints) -> Ints:
        """Return times in which a row without a readable time is placed between its neighbors."""
        good = times != UNREADABLE
        if good.all():
            return times
        if not good.any():
            raise TableFileError(f"{self._path}: no row has a time that can be read")
        known = np.flatnonzero(good)
        lost = np.flatnonzero(~good)
        base = times[known[0]]
        between = np.interp(lost, known, (times[known] - base).astype(np.float64))
        self._notes.append(
            f"{_rows(len(lost))} no readable time: it is taken from their neighbors'"
        )
        filled = times.copy()
        filled[lost] = base + between.astype(np.int64)
        return filled


@dataclass
class _ColumnContents:
    """Which columns contain text, numbers, or infinity."""

    width: int
    text: NDArray[np.bool_] = field(init=False)
    known: NDArray[np.bool_] = field(init=False)
    infinite: NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        self.text = np.zeros(self.width, bool)
        self.known = np.zeros(self.width, bool)
        self.infinite = np.zeros(self.width, bool)

    def numbers(self, block: pd.DataFrame) -> Floats:
        """Return a block as numbers, NaN where there is none."""
        values = np.full(block.shape, np.nan)
        plain = np.array([_plain(kind) for kind in block.dtypes], bool)
        indices = np.flatnonzero(plain)
        if len(indices):
            some = block if plain.all() else block.iloc[:, indices]
            values[:, indices] = some.to_numpy(np.float64, na_value=np.nan)
        for index in np.flatnonzero(~plain & ~self.text).tolist():
            values[:, index], self.text[index] = _coerced(block[index])
        endless = np.isinf(values)
        if endless.any():
            self.infinite |= endless.any(axis=0)
            values[endless] = np.nan
        self.known |= ~np.isnan(values).all(axis=0)
        return values


def _plain(kind: object) -> bool:
    return pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_complex_dtype(kind)  # type: ignore[arg-type]


def _coerced(values: pd.Series) -> tuple[Floats, bool]:
    """Return the numbers of a column of objects, and whether it contains anything else."""
    try:
        numbers = pd.to_numeric(values, errors="coerce").to_numpy(np.float64, na_value=np.nan)
    except (TypeError, ValueError):
        return np.full(len(values), np.nan), True
    return numbers, bool((np.isnan(numbers) & values.notna().to_numpy()).any())


def _list_some(names: Sequence[str], what: str) -> str:
    listed = ", ".join(names[:_NAMED])
    return listed if len(names) <= _NAMED else f"{listed} and {len(names) - _NAMED} more {what}"


def _rows(count: int) -> str:
    return "1 row has" if count == 1 else f"{count} rows have"


def _stem(path: Path) -> str:
    """Return ``web-1`` for ``web-1.csv.gz``."""
    return path.name.partition(".")[0] or path.name
