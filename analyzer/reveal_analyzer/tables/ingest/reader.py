"""Reads a wide table of any tool as tables of samples, one per node, with notes on changes.

A file is read once, block by block.  Numbers are kept up to 512 MiB in memory, beyond that in a
mapped temporary file.  A block takes some hundred MB while it is parsed, a row of input 16 bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import pandas as pd

from reveal_analyzer.arrays import Bools, Floats, Indices, Ints
from reveal_analyzer.tables.ingest import counter_columns, host_names
from reveal_analyzer.tables.ingest.csv import TextTable
from reveal_analyzer.tables.ingest.entities import (
    Entities,
    RowLabels,
    find_entities,
    repeats_times,
)
from reveal_analyzer.tables.ingest.mmap_buffer import MEMORY_BYTES, RowBuffer
from reveal_analyzer.tables.ingest.number_texts import NumberMarks, numbers_of
from reveal_analyzer.tables.ingest.open import FileKind, TableFileError, kind_of
from reveal_analyzer.tables.ingest.parquet import ParquetTable
from reveal_analyzer.tables.ingest.time_column import (
    TimeColumn,
    find_time_column,
    numbered_rows,
)
from reveal_analyzer.tables.ingest.time_texts import UNREADABLE
from reveal_analyzer.tables.scoring.table import Table
from reveal_contract.time_units import NS_PER_SECOND

_NAMED = 5  # columns that a note names
_HOUR_NS = 3600 * NS_PER_SECOND
_MOST_WORDS = 0.2  # of the values of a column that is read as numbers
_MOST_COLUMNS = 1_000_000


class TableFile(Protocol):
    """A table file: the names of its columns and their values, block by block."""

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def notes(self) -> list[str]: ...

    @property
    def marks(self) -> NumberMarks: ...

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
        self._source = source
        self._notes: list[str] = []
        self._buffer = RowBuffer(len(self._names), options.memory_bytes)
        self._clock: TimeColumn | None = None
        self._times: list[Ints] = []
        self._labels = RowLabels(self._names)
        self._contents = _ColumnContents(len(self._names), source.marks)

    def add(self, block: pd.DataFrame) -> None:
        if self._clock is None:
            self._clock = self._find_clock(block)
        if self._clock.column is None:
            first = self._buffer.rows
            numbers = np.arange(first, first + len(block), dtype=np.int64)
            self._times.append(numbers * self._clock.unit_ns)
        else:
            self._times.append(self._clock.read(block))
        self._labels.add(block, {self._clock.column, self._clock.of_day})
        self._buffer.append(self._contents.numbers(block))

    def dataset(self) -> Dataset:
        if self._clock is None or not self._buffer.rows:
            raise TableFileError(f"{self._path} holds no rows: nothing to judge")
        self._notes = [*self._source.notes, *self._notes]
        read = np.concatenate(self._times)
        good = read != UNREADABLE
        filled = self._without_set_back(self._filled(read, good))
        entities = find_entities(
            self._names, self._labels.labels(), filled, numbered=self._clock.column is None
        )
        columns = self._kept(self._clock, entities.column if entities else None)
        if entities is None:
            times, chosen, rows = self._ordered(filled, good)
            nodes = self._by_name(times, chosen, columns)
        else:
            nodes, rows = self._by_entity(entities, filled, columns), entities.sample
        counted = self._rates(nodes)
        return Dataset(self._path, self._clock, tuple(nodes), rows, tuple(self._notes), counted)

    def _by_name(self, times: Ints, chosen: Indices, columns: Indices) -> list[NodeTable]:
        """Return a table for each host in the names of columns, or one for the file."""
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
        return nodes

    def _by_entity(self, entities: Entities, times: Ints, columns: Indices) -> list[NodeTable]:
        """Return a table for each host in the rows, or one with the metrics of each device."""
        listed = _list_some(entities.names, "others")
        self._notes.append(
            f"column {self._names[entities.column]} distinguishes"
            f" {'hosts' if entities.are_hosts else 'rows of the same time'}: {listed}"
        )
        count = int(entities.sample.max()) + 1
        sampled = np.full(count, np.iinfo(np.int64).max)
        np.minimum.at(sampled, entities.sample, times)
        if self._clock is not None and self._clock.column is None:
            sampled = np.arange(count) * self._clock.unit_ns
        metrics = [self._names[index] for index in columns]
        names: list[str] = []
        parts: list[Floats] = []
        for number, entity in enumerate(entities.names):
            rows = np.flatnonzero(entities.of_row == number)
            values = np.full((count, len(columns)), np.nan)
            values[entities.sample[rows]] = self._buffer.select(rows, columns)
            parts.append(values)
            # a single column of values is named after what its rows are about
            names += [entity] if len(metrics) == 1 else [f"{name}{{{entity}}}" for name in metrics]
        if entities.are_hosts:
            return [
                NodeTable(entity, Table(sampled, tuple(metrics), values))
                for entity, values in zip(entities.names, parts, strict=True)
            ]
        return [NodeTable(_stem(self._path), Table(sampled, tuple(names), np.hstack(parts)))]

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

    def _kept(self, clock: TimeColumn, entity: int | None) -> Indices:
        """Return the metrics: all columns but times, texts and columns without any value."""
        contents, everything = self._contents, np.arange(len(self._names))
        metric = ~np.isin(
            everything,
            [index for index in (clock.column, clock.of_day, entity) if index is not None],
        )
        text = contents.text
        kept: Indices = np.flatnonzero(metric & ~text & (contents.known > 0))
        words = metric & ~text & (contents.words > 0)
        for marked, what in (
            (metric & text, "left out, as they hold text"),
            (metric & ~text & (contents.known == 0), "left out, as they are always missing"),
            (words, f"{_values(int(contents.words[words].sum()))} as missing, as they are words"),
            (metric & contents.infinite, "infinite values count as missing"),
        ):
            if marked.any():
                names = [self._names[index] or f"#{index + 1}" for index in everything[marked]]
                self._notes.append(f"{what}: {_list_some(names, 'columns')}")
        if units := [f"{self._names[i]} in {contents.units[i]}" for i in kept if contents.units[i]]:
            self._notes.append(f"units: {_list_some(units, 'columns')}")
        if not len(kept):
            raise TableFileError(f"{self._path} has no column of numbers except its times")
        return kept

    def _ordered(self, times: Ints, good: Bools) -> tuple[Ints, Indices, Indices]:
        """Return rising times, the input row of each, and the position of each input row.

        Of several rows with one time the last counts, but none whose own time is not ``good``.
        """
        if repeats_times(times):
            times = self._spread(times)
        order = np.lexsort((good, times))
        if (np.diff(times) < 0).any():
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

    def _without_set_back(self, times: Ints) -> Ints:
        """Return times that rise through the end of daylight saving time, if it is among them."""
        steps = np.diff(times)
        falls = np.flatnonzero(steps < 0)
        median = int(np.median(steps)) if len(steps) else 0
        if len(falls) != 1 or not self._clock_is_text or median <= 0:
            return times
        row = int(falls[0]) + 1
        if abs(int(steps[row - 1]) + _HOUR_NS - median) > median:
            return times
        self._notes.append(f"the clock was set back by an hour in row {row + 1}: both hours count")
        return np.concatenate([times[:row] - _HOUR_NS, times[row:]])

    def _spread(self, times: Ints) -> Ints:
        """Return times in which the rows of a whole second are spread over it.

        Raises ``TableFileError`` where rows share their time for another reason.
        """
        distinct, index, counts = np.unique(times, return_inverse=True, return_counts=True)
        if (distinct % NS_PER_SECOND).any() or np.median(counts) < 2 or not self._clock_is_text:
            raise TableFileError(
                f"{self._path}: {len(times) - len(distinct)} of {len(times)} rows have the time of"
                " another, and no column distinguishes them: name the column of exact times"
                " (--time), or write each series to a file of its own"
            )
        order = np.argsort(index, kind="stable")
        first = np.cumsum(counts) - counts
        position = np.empty(len(times), np.int64)
        position[order] = np.arange(len(times)) - first[index[order]]
        self._notes.append("rows of the same second are spread over it")
        return times + position * NS_PER_SECOND // counts[index]

    @property
    def _clock_is_text(self) -> bool:
        return self._clock is not None and not self._clock.unit_ns

    def _filled(self, times: Ints, good: Bools) -> Ints:
        """Return times in which a row without a readable time is placed between its neighbors."""
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


class _ColumnContents:
    """How many numbers and words each column has, where infinity is, and what units are written."""

    def __init__(self, width: int, marks: NumberMarks) -> None:
        self.known = np.zeros(width, np.int64)
        self.words = np.zeros(width, np.int64)
        self.infinite = np.zeros(width, np.bool_)
        self.units = [""] * width
        self._marks = marks

    @property
    def text(self) -> Bools:
        """The columns that hold more than some words."""
        result: Bools = self.words > _MOST_WORDS * (self.words + self.known)
        return result

    def numbers(self, block: pd.DataFrame) -> Floats:
        """Return a block as numbers, NaN where there is none."""
        values = np.full(block.shape, np.nan)
        plain = np.array([_plain(kind) for kind in block.dtypes], bool)
        indices = np.flatnonzero(plain)
        if len(indices):
            some = block if plain.all() else block.iloc[:, indices]
            values[:, indices] = some.to_numpy(np.float64, na_value=np.nan)
        for index in np.flatnonzero(~plain).tolist():
            values[:, index], words, unit = numbers_of(block[index], self._marks)
            self.words[index] += words
            self.units[index] = self.units[index] or unit
        endless = np.isinf(values)
        if endless.any():
            self.infinite |= endless.any(axis=0)
            values[endless] = np.nan
        self.known += (~np.isnan(values)).sum(axis=0)
        return values


def _plain(kind: object) -> bool:
    return pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_complex_dtype(kind)  # type: ignore[arg-type]


def _values(count: int) -> str:
    return "1 value counts" if count == 1 else f"{count} values count"


def _list_some(names: Sequence[str], what: str) -> str:
    listed = ", ".join(names[:_NAMED])
    return listed if len(names) <= _NAMED else f"{listed} and {len(names) - _NAMED} more {what}"


def _rows(count: int) -> str:
    return "1 row has" if count == 1 else f"{count} rows have"


def _stem(path: Path) -> str:
    """Return ``web-1`` for ``web-1.csv.gz``."""
    return path.name.partition(".")[0] or path.name
