"""Reads a table of any tool as tables of samples, one per node, with notes on changes.

A file is read once, block by block.  Numbers are kept up to 512 MiB in memory, beyond that in a
mapped temporary file.  A block takes some hundred MB while it is parsed, a row of input 16 bytes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from reveal_analyzer.arrays import Bools, Floats, Indices, Ints
from reveal_analyzer.formatting import list_some
from reveal_analyzer.tables.ingest import counter_columns, host_names
from reveal_analyzer.tables.ingest.column_contents import (
    ColumnContents,
    OmittedColumn,
    label_of,
    unit_in_name,
)
from reveal_analyzer.tables.ingest.column_names import bounded_names, labelled
from reveal_analyzer.tables.ingest.entities import (
    Entities,
    RowLabels,
    differing_column,
    entities_by,
    find_entities,
    is_host,
    repeating_column,
    repeats_times,
)
from reveal_analyzer.tables.ingest.gaps import gap_notes
from reveal_analyzer.tables.ingest.mmap_buffer import MEMORY_BYTES, RowBuffer
from reveal_analyzer.tables.ingest.open import TableFileError
from reveal_analyzer.tables.ingest.row_times import RowTimes, bursts
from reveal_analyzer.tables.ingest.table_file import OpenedTable, open_table
from reveal_analyzer.tables.ingest.time_column import (
    TimeColumn,
    TimeRequest,
    find_time_column,
    index_of,
    numbered_rows,
)
from reveal_analyzer.tables.ingest.time_texts import UNREADABLE, DayOrder, across_midnight
from reveal_analyzer.tables.scoring.table import Table
from reveal_contract.time_units import NS_PER_SECOND

_MOST_COLUMNS = 1_000_000
_FIRST_ROWS = 4096  # of which columns are compared
_ANY = "*"  # in a format: every column of texts distinguishes rows


@dataclass(frozen=True)
class ReadOptions:
    """What the caller knows of a table; what is left out is found.

    ``time`` names the time column; ``period_ns`` is the period of numbered rows; ``order`` is that
    of day and month; ``excel``: days are numbered as spreadsheets do.  ``entities`` name the
    columns that distinguish rows of one time, ``values`` the only metrics.  ``format`` names that
    of a tool.  ``counters`` are the metrics to read as rates; ``None``: those that evidently are.
    """

    time: str = ""
    period_ns: int = 0
    memory_bytes: int = MEMORY_BYTES
    counters: frozenset[str] | None = None
    entities: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    order: DayOrder = DayOrder.NONE
    excel: bool = False
    format: str = ""


@dataclass(frozen=True)
class NodeTable:
    """The table of one node in a file."""

    node: str
    table: Table


@dataclass(frozen=True)
class Understanding:
    """What was understood of a file.

    ``columns`` are the names of all; ``time`` and ``entities`` those of the columns with times and
    with what rows are about, ``metrics`` those with values; ``units`` has the unit of each metric
    for which it is known.
    """

    columns: tuple[str, ...]
    format: str
    time: str
    entities: tuple[str, ...]
    entity_count: int
    metrics: tuple[str, ...]
    omitted: tuple[OmittedColumn, ...]
    units: dict[str, str]


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
    understanding: Understanding

    @property
    def times_ns(self) -> Ints:
        return self.nodes[0].table.times_ns


def read(path: Path, options: ReadOptions | None = None) -> Dataset:
    """Read a table; raises ``TableFileError`` if the file cannot be used as one."""
    options = options or ReadOptions()
    opened = open_table(path, options.format, options.order)
    if len(opened.file.names) > _MOST_COLUMNS:
        raise TableFileError(
            f"{path} has {len(opened.file.names)} columns: at most {_MOST_COLUMNS}"
        )
    builder = _TableBuilder(path, opened, options)
    for block in opened.file.blocks():
        builder.add(block)
    return builder.dataset()


class _TableBuilder:
    """Collects the blocks of a file and builds its dataset."""

    def __init__(self, path: Path, opened: OpenedTable, options: ReadOptions) -> None:
        self._path, self._options = path, options
        self._source, self._format = opened
        self._names = bounded_names(self._source.names)
        self._notes: list[str] = []
        self._buffer = RowBuffer(len(self._names), options.memory_bytes)
        self._clock: TimeColumn | None = None
        self._times: list[Ints] = []
        self._valued: list[Bools] = []
        self._entities = self._requested(options.entities) or self._known("entities")
        self._labels = RowLabels(self._names, self._entities)
        self._contents = ColumnContents(self._names, self._source.marks)

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
        numbers_of_block = self._contents.numbers(block)
        valued = ~np.isnan(numbers_of_block).all(axis=1)
        self._valued.append(np.asarray(valued, np.bool_))
        self._buffer.append(numbers_of_block)

    def dataset(self) -> Dataset:
        clock = self._clock
        if clock is None or not self._buffer.rows:
            raise TableFileError(f"{self._path} holds no rows: nothing to judge")
        read, valued = np.concatenate(self._times), np.concatenate(self._valued)
        read = across_midnight(read) if clock.of_clock else read
        good = read != UNREADABLE
        placed = RowTimes(self._path, are_texts=not clock.unit_ns and clock.column is not None)
        times = placed.without_set_back(placed.filled(read, good, valued))
        entities = self._find_entities(clock, times)
        used = {
            clock.column,
            clock.of_day,
            *(entities.columns if entities else ()),
        }
        columns = self._contents.choose(
            [index for index in used if index is not None],
            self._known("ignored"),
            self._requested(self._options.values) or self._known("values"),
            [index for index in self._entities if index not in used],
        )
        if not len(columns.kept):
            raise self._no_numbers(used)
        self._notes = [*self._source.notes, *self._notes, *columns.notes]
        if entities is None:
            self._check_rows_alike(times)
            valued = placed.without_repeated(times, valued, self._buffer)
            rising, chosen, rows = placed.ordered(times, good, valued)
            nodes = self._by_name(rising, chosen, columns.kept)
        else:
            placed.check_repeated(entities.of_row, entities.sample)
            nodes, rows = self._by_entity(entities, times, columns.kept), entities.sample
        self._notes += placed.notes
        self._notes += gap_notes({part.node: part.table for part in nodes}, clock.show)
        counted = self._rates(nodes)
        understanding = Understanding(
            self._names,
            self._format.name if self._format else "",
            ", ".join(self._label(i) for i in (clock.column, clock.of_day) if i is not None),
            tuple(map(self._label, entities.columns)) if entities else (),
            len(entities.members) if entities else 0,
            tuple(map(self._label, columns.kept.tolist())),
            columns.omitted,
            {self._names[i]: unit for i in columns.kept if (unit := self._unit(i, columns.units))},
        )
        return Dataset(
            self._path, clock, tuple(nodes), rows, tuple(self._notes), counted, understanding
        )

    def _label(self, index: int) -> str:
        return label_of(self._names, index)

    def _unit(self, index: int, units: Sequence[str]) -> str:
        """Return the unit of a column: as its values have it, its name, or its format."""
        name = self._names[index]
        known = self._format.unit_of(name) if self._format else ""
        return units[index] or unit_in_name(name) or known

    def _requested(self, names: Sequence[str]) -> tuple[int, ...]:
        """Return the columns of these names; raises ``TableFileError`` if one is missing."""
        try:
            return tuple(index_of(self._names, name) for name in names)
        except TableFileError as error:
            raise TableFileError(f"{self._path}: {error}") from None

    def _known(self, role: str) -> tuple[int, ...]:
        """Return the columns that have this role in the format, in its order."""
        names: tuple[str, ...] = getattr(self._format, role) if self._format else ()
        ends = tuple(name[1:] for name in names if name.startswith(_ANY) and name != _ANY)
        by_end = (i for i, name in enumerate(self._names) if ends and name.endswith(ends))
        return (*(self._names.index(name) for name in names if name in self._names), *by_end)

    def _find_entities(self, clock: TimeColumn, times: Ints) -> Entities | None:
        labels = self._labels.labels()
        columns = list(self._entities)
        if self._format and _ANY in self._format.entities and not self._options.entities:
            others = {*columns, *self._known("ignored"), *self._known("values")}
            columns += [index for index in labels if index not in others]
        if columns and not self._options.entities:
            hosts = (index for index in labels if is_host(self._names[index]))
            columns = list(dict.fromkeys([*hosts, *columns]))
        numbered = clock.column is None
        if columns:
            found = entities_by(self._names, labels, columns, times, numbered=numbered)
            if found is not None or self._options.entities:
                return found
        rest = {index: each for index, each in labels.items() if index not in columns}
        return find_entities(self._names, rest, times, numbered=numbered)

    def _no_numbers(self, used: Collection[int | None]) -> TableFileError:
        texts = self._contents.first_texts.items()
        others = (f": {self._label(i)} holds {t[:40]!r}" for i, t in texts if i not in used)
        return TableFileError(
            f"{self._path} has no column of numbers except its times{next(others, '')}"
        )

    def _check_rows_alike(self, times: Ints) -> None:
        """Raise ``TableFileError`` if the rows of a time are evidently of several devices."""
        if self._options.values or self._clock is None or self._clock.column is None:
            return
        moments = times if repeats_times(times) else bursts(times)
        if moments is None or (self._options.time and moments is not times):
            return
        text = self._contents.text
        labels = {index: each for index, each in self._labels.labels().items() if text[index]}
        crowded = [index for index in self._labels.crowded if text[index]]
        name = differing_column(self._names, labels, moments, crowded)
        if not name:
            rows = np.arange(min(len(times), _FIRST_ROWS))
            values = self._buffer.select(rows, np.arange(len(self._names)))
            name = repeating_column(self._names, values, moments[rows])
        if name:
            raise TableFileError(
                f"{self._path}: rows of the same moment differ in column {name}: name the columns"
                " that distinguish devices (--entity), or the only metrics (--value)"
            )
        if moments is not times:
            advice = f" ({self._format.advice})" if self._format else ""
            raise TableFileError(
                f"{self._path}: rows come in groups, a moment apart, and no column distinguishes"
                f" them{advice}: add a column of devices or hosts, or name that of times (--time)"
                " if each row is a sample"
            )

    def _by_name(self, times: Ints, chosen: Indices, columns: Indices) -> list[NodeTable]:
        """Return a table for each host in the names of columns, or one for the file."""
        named = host_names.split_hosts([self._names[index] for index in columns])
        groups: dict[str, list[int]] = {}
        for index, name in enumerate(named):
            groups.setdefault(name.host or self._node, []).append(index)
        if named[0].host:
            self._notes.append(f"host names in column names: {list_some(list(groups), 'hosts')}")
        nodes = []
        for node, indices in groups.items():
            names = tuple(named[index].metric for index in indices)
            values = self._buffer.select(chosen, columns[indices])
            nodes.append(NodeTable(node, Table(times, names, values)))
        return nodes

    def _by_entity(self, entities: Entities, times: Ints, columns: Indices) -> list[NodeTable]:
        """Return a table for each host in the rows, with metrics of each of its devices."""
        self._notes.append(self._distinguished(entities))
        count = int(entities.sample.max()) + 1
        sampled = np.full(count, np.iinfo(np.int64).max)
        np.minimum.at(sampled, entities.sample, times)
        if self._clock is not None and self._clock.column is None:
            sampled = np.arange(count) * self._clock.unit_ns
        metrics = [self._names[index] for index in columns]
        names: dict[str, list[str]] = {}
        members: dict[str, list[int]] = {}
        for number, (host, label) in enumerate(entities.members):
            node = host or self._node
            members.setdefault(node, []).append(number)
            names.setdefault(node, []).extend(labelled(metrics, label))
        return [
            NodeTable(
                node, Table(sampled, tuple(names[node]), self._values_of(entities, of, columns))
            )
            for node, of in members.items()
        ]

    def _values_of(self, entities: Entities, members: Sequence[int], columns: Indices) -> Floats:
        """Return the values of some entities beside each other, NaN where one has no row."""
        count, width = int(entities.sample.max()) + 1, len(columns)
        values = self._buffer.allocate((count, len(members) * width))
        for index, number in enumerate(members):
            own = values[:, index * width : (index + 1) * width]
            own[:] = np.nan
            rows = np.flatnonzero(entities.of_row == number)
            for part, block in self._buffer.blocks(rows, columns):
                own[entities.sample[rows[part]]] = block
        return values

    def _distinguished(self, entities: Entities) -> str:
        """Return a note on the columns that distinguish rows."""
        columns = ", ".join(self._names[index] for index in entities.columns)
        are_hosts = not any(member.label for member in entities.members)
        listed = [host if are_hosts else "/".join(filter(None, (host, label)))
                  for host, label in entities.members]  # fmt: skip
        several = len(entities.columns) > 1
        return (
            f"column{'s' if several else ''} {columns} distinguish{'' if several else 'es'}"
            f" {'hosts' if are_hosts else 'rows of the same time'}: {list_some(listed, 'others')}"
        )

    def _rates(self, nodes: Sequence[NodeTable]) -> frozenset[str]:
        """Convert counters to rates; a metric that is a counter on one node is one on all."""
        counted = self._options.counters
        if counted is None:
            counted = frozenset(name for part in nodes for name in counter_columns.find(part.table))
        for part in nodes:
            counter_columns.make_rates(part.table, counted)
        present = sorted({name for part in nodes for name in part.table.names} & counted)
        if present:
            listed = list_some([name or "(no name)" for name in present], "columns")
            self._notes.append(f"counters, taken as rates per second: {listed}")
        return counted

    def _find_clock(self, block: pd.DataFrame) -> TimeColumn:
        options = self._options
        order = options.order
        if order is DayOrder.NONE and self._format is not None:
            order = self._format.order
        known = next((self._names[index] for index in self._known("time")), "")
        request = TimeRequest(
            options.time or known, options.period_ns, order, options.excel, self._source.since
        )
        try:
            clock = find_time_column(self._names, block, request)
        except TableFileError as error:
            raise TableFileError(f"{self._path}: {error}") from None
        if clock is not None:
            if clock.absolute and options.period_ns:
                name = self._names[clock.column or 0]
                self._notes.append(f"--period is not used: column {name} has the times")
            return clock
        if not options.period_ns:
            advice = f"; {self._format.advice}" if self._format else ""
            self._notes.append(
                "no time column found: rows are read as one second apart"
                f" (--time names a column, --period sets the step{advice})"
            )
        return numbered_rows(options.period_ns or NS_PER_SECOND)

    @property
    def _node(self) -> str:
        """The node of a table that names none: ``web-1`` for ``web-1.csv.gz``."""
        return self._source.host or self._path.name.partition(".")[0] or self._path.name
