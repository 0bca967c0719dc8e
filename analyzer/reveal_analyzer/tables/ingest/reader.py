"""A wide table of anyone's as tables of samples, one a node, with what was made of it said.

Read once, block by block: the numbers are held up to 512 MiB and in a mapped temporary file
beyond that, a block takes some hundred MB while it is parsed, a row of input 16 bytes.
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
from reveal_analyzer.tables.ingest import counters, host_names, timestamps
from reveal_analyzer.tables.ingest.csv import TextTable
from reveal_analyzer.tables.ingest.mmap_buffer import MEMORY_BYTES, Spool
from reveal_analyzer.tables.ingest.open import FileKind, TableFileError, kind_of
from reveal_analyzer.tables.ingest.parquet import ParquetTable
from reveal_analyzer.tables.ingest.timestamps import UNREADABLE, Clock
from reveal_analyzer.tables.scoring.table import Table
from reveal_contract.time_units import NS_PER_SECOND

_NAMED = 5  # columns that a note names
_MOST_COLUMNS = 1_000_000


class Source(Protocol):
    """A table file: the names of its columns and their values, block by block."""

    @property
    def names(self) -> tuple[str, ...]: ...

    @property
    def notes(self) -> list[str]: ...

    def blocks(self) -> Iterator[pd.DataFrame]: ...


@dataclass(frozen=True)
class Options:
    """``time`` names the column of times ("": found); ``period_ns`` is that of numbered rows.

    ``counters`` are the metrics to be taken as rates; ``None``: those that are evidently counters.
    """

    time: str = ""
    period_ns: int = 0
    memory_bytes: int = MEMORY_BYTES
    counters: frozenset[str] | None = None


@dataclass(frozen=True)
class NodeTable:
    """What a file holds of one node."""

    node: str
    table: Table


@dataclass(frozen=True)
class Dataset:
    """A file's tables, all over the same times.

    ``rows`` (input rows,) says where each row of the file stands in them; ``notes`` are
    sentences on what was left out, and why.
    """

    path: Path
    clock: Clock
    nodes: tuple[NodeTable, ...]
    rows: Indices
    notes: tuple[str, ...]
    counters: frozenset[str]

    @property
    def times_ns(self) -> Ints:
        return self.nodes[0].table.times_ns


def read(path: Path, options: Options | None = None) -> Dataset:
    """Read a table; raises ``TableFileError`` where the file cannot be used as one."""
    options = options or Options()
    source: Source = ParquetTable(path) if kind_of(path) is FileKind.PARQUET else TextTable(path)
    if len(source.names) > _MOST_COLUMNS:
        raise TableFileError(f"{path} has {len(source.names)} columns: at most {_MOST_COLUMNS}")
    taken = _Taken(path, source, options)
    for block in source.blocks():
        taken.add(block)
    return taken.dataset()


class _Taken:
    """What has been read so far."""

    def __init__(self, path: Path, source: Source, options: Options) -> None:
        self._path, self._options = path, options
        self._names = source.names
        self._notes = list(source.notes)
        self._spool = Spool(len(self._names), options.memory_bytes)
        self._clock: Clock | None = None
        self._times: list[Ints] = []
        self._seen = _Seen(len(self._names))

    def add(self, block: pd.DataFrame) -> None:
        if self._clock is None:
            self._clock = self._found_clock(block)
        if self._clock.column is None:
            first = self._spool.rows
            numbers = np.arange(first, first + len(block), dtype=np.int64)
            self._times.append(numbers * self._clock.unit_ns)
        else:
            self._times.append(self._clock.read(block))
        self._spool.append(self._seen.numbers(block))

    def dataset(self) -> Dataset:
        if self._clock is None or not self._spool.rows:
            raise TableFileError(f"{self._path} holds no rows: nothing to judge")
        columns = self._kept(self._clock)
        times, chosen, rows = self._ordered(np.concatenate(self._times))
        named = host_names.split([self._names[at] for at in columns])
        groups: dict[str, list[int]] = {}
        for place, name in enumerate(named):
            groups.setdefault(name.host or _stem(self._path), []).append(place)
        if named[0].host:
            self._notes.append(f"host names in column names: {_few(list(groups), 'hosts')}")
        nodes = []
        for node, places in groups.items():
            names = tuple(named[place].metric for place in places)
            values = self._spool.take(chosen, columns[places])
            nodes.append(NodeTable(node, Table(times, names, values)))
        counted = self._rates(nodes)
        return Dataset(self._path, self._clock, tuple(nodes), rows, tuple(self._notes), counted)

    def _rates(self, nodes: Sequence[NodeTable]) -> frozenset[str]:
        """Make counters rates; a metric that is one on one node is one on all."""
        counted = self._options.counters
        if counted is None:
            counted = frozenset(name for part in nodes for name in counters.find(part.table))
        for part in nodes:
            counters.make_rates(part.table, counted)
        present = sorted({name for part in nodes for name in part.table.names} & counted)
        if present:
            self._notes.append(f"counters, taken as rates per second: {_few(present, 'columns')}")
        return counted

    def _found_clock(self, block: pd.DataFrame) -> Clock:
        options = self._options
        try:
            found = timestamps.choose(self._names, block, options.time, options.period_ns)
        except TableFileError as error:
            raise TableFileError(f"{self._path}: {error}") from None
        if found is not None:
            if found.absolute and options.period_ns:
                name = self._names[found.column or 0]
                self._notes.append(f"--period is not used: column {name} tells the time")
            return found
        if not options.period_ns:
            self._notes.append(
                "no column tells the time: rows are taken as one second apart"
                " (--time names a column, --period the step)"
            )
        return timestamps.by_rows(options.period_ns or NS_PER_SECOND)

    def _kept(self, found: Clock) -> Indices:
        """The metrics: all columns but the time, texts and those without any value."""
        seen, everything = self._seen, np.arange(len(self._names))
        metric = ~np.isin(everything, [at for at in (found.column, found.of_day) if at is not None])
        texts, empty = metric & seen.text, metric & ~seen.text & ~seen.known
        kept: Indices = np.flatnonzero(metric & ~seen.text & seen.known)
        for places, why in ((texts, "hold text"), (empty, "are always missing")):
            if places.any():
                names = [self._names[at] or f"#{at + 1}" for at in everything[places]]
                self._notes.append(f"left out, as they {why}: {_few(names, 'columns')}")
        if seen.infinite.any():
            names = [self._names[at] for at in everything[seen.infinite]]
            self._notes.append(f"infinite values count as missing: {_few(names, 'columns')}")
        if not len(kept):
            raise TableFileError(f"{self._path} holds no column of numbers beside its times")
        return kept

    def _ordered(self, times: Ints) -> tuple[Ints, Indices, Indices]:
        """Rising times, the input row each is of, and where each input row went."""
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
        places = np.empty(len(times), np.intp)
        places[order] = np.cumsum(new) - 1
        last = np.concatenate([new[1:], [True]])
        return rising[last], order[last], places

    def _filled(self, times: Ints) -> Ints:
        """A row whose time cannot be read stands between its neighbours."""
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
            f"{_rows(len(lost))} no readable time: it is taken from their neighbours'"
        )
        filled = times.copy()
        filled[lost] = base + between.astype(np.int64)
        return filled


@dataclass
class _Seen:
    """What the columns held: any text, any number, any infinity."""

    width: int
    text: NDArray[np.bool_] = field(init=False)
    known: NDArray[np.bool_] = field(init=False)
    infinite: NDArray[np.bool_] = field(init=False)

    def __post_init__(self) -> None:
        self.text = np.zeros(self.width, bool)
        self.known = np.zeros(self.width, bool)
        self.infinite = np.zeros(self.width, bool)

    def numbers(self, block: pd.DataFrame) -> Floats:
        """A block as numbers, NaN where there is none."""
        values = np.full(block.shape, np.nan)
        plain = np.array([_plain(kind) for kind in block.dtypes], bool)
        places = np.flatnonzero(plain)
        if len(places):
            some = block if plain.all() else block.iloc[:, places]
            values[:, places] = some.to_numpy(np.float64, na_value=np.nan)
        for at in np.flatnonzero(~plain & ~self.text).tolist():
            values[:, at], self.text[at] = _coerced(block[at])
        endless = np.isinf(values)
        if endless.any():
            self.infinite |= endless.any(axis=0)
            values[endless] = np.nan
        self.known |= ~np.isnan(values).all(axis=0)
        return values


def _plain(kind: object) -> bool:
    return pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_complex_dtype(kind)  # type: ignore[arg-type]


def _coerced(values: pd.Series) -> tuple[Floats, bool]:
    """Numbers of a column of objects, and whether anything else is in it."""
    try:
        numbers = pd.to_numeric(values, errors="coerce").to_numpy(np.float64, na_value=np.nan)
    except (TypeError, ValueError):
        return np.full(len(values), np.nan), True
    return numbers, bool((np.isnan(numbers) & values.notna().to_numpy()).any())


def _few(names: Sequence[str], what: str) -> str:
    shown = ", ".join(names[:_NAMED])
    return shown if len(names) <= _NAMED else f"{shown} and {len(names) - _NAMED} more {what}"


def _rows(count: int) -> str:
    return "1 row has" if count == 1 else f"{count} rows have"


def _stem(path: Path) -> str:
    """``web-1`` of ``web-1.csv.gz``."""
    return path.name.partition(".")[0] or path.name
