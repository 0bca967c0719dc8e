"""Every metric of an input, ranked for spans of time by how far it left its usual range."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from reveal_analyzer.derive.columns import Column
from reveal_analyzer.formatting import decimal, human
from reveal_analyzer.offline.recording_table import RecordingTable
from reveal_analyzer.tables.findings import percent
from reveal_analyzer.tables.ingest.subsystems import subsystem_of
from reveal_analyzer.tables.scoring.api import Ranked, Table, rank_spans
from reveal_cli import recording_input, table_input
from reveal_cli.analysis import FileKind, healthy_recording, kind
from reveal_cli.errors import CliError
from reveal_cli.table_input import Against
from reveal_cli.time_spans import Covered, resolve
from reveal_contract.finding import rfc3339
from reveal_contract.metric import Kind, Subsystem


@dataclass(frozen=True)
class Entry:
    """A metric's place; ``node`` is "" where there is only one.

    ``told`` are value and baseline as people read them.
    """

    node: str
    metric: str
    feature: str
    subsystem: Subsystem | None
    percent: int
    value: str
    baseline: str
    told: tuple[str, str]

    def to_dict(self) -> dict[str, Any]:
        row: dict[str, Any] = {"node": self.node} if self.node else {}
        return row | {
            "metric": self.metric,
            "feature": self.feature,
            "subsystem": self.subsystem.value if self.subsystem else None,
            "scorePercent": self.percent,
            "value": self.value,
            "baseline": self.baseline,
        }


@dataclass(frozen=True)
class Explained:
    """A span, its first and last sample, with all metrics, the oddest first."""

    begin: str
    end: str
    ranking: tuple[Entry, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "from": self.begin,
            "to": self.end,
            "ranking": [entry.to_dict() for entry in self.ranking],
        }


@dataclass(frozen=True)
class _Input:
    """What is explained: the nodes' tables, how their metrics are told, and when they were seen."""

    nodes: Sequence[Against]
    entry: Callable[[str, Ranked], Entry]
    covered: Covered
    show: Callable[[int], str]
    warnings: Sequence[str]


def explain(arguments: argparse.Namespace) -> tuple[list[Explained], Sequence[str]]:
    """Each span's ranking, in the order asked for, and what of the input was not used."""
    recording = kind(arguments.input) is FileKind.RECORDING
    given = _recording(arguments) if recording else _table(arguments)
    wanted = [resolve(one, given.covered) for one in arguments.span]
    ranked = [_of_node(one, wanted) for one in given.nodes]
    lone = len(given.nodes) == 1
    explained = []
    for place, span in enumerate(arguments.span):
        parts = [each[place] for each in ranked if each[place].rows]
        if not parts:
            raise CliError(f"--span {span} holds no sample")
        rows = [(part.node, row) for part in parts for row in part.rows]
        if not lone:
            rows.sort(key=lambda pair: -pair[1].score)  # stable: equals stay in the nodes' order
        entries = tuple(given.entry("" if lone else node, row) for node, row in rows)
        first, last = min(part.first_ns for part in parts), max(part.last_ns for part in parts)
        explained.append(Explained(given.show(first), given.show(last), entries))
    return explained, given.warnings


@dataclass(frozen=True)
class _Part:
    """What a node shows of a span; no ``rows`` where it holds no sample of it."""

    node: str
    rows: Sequence[Ranked] = ()
    first_ns: int = 0
    last_ns: int = 0


def _of_node(one: Against, wanted: Sequence[tuple[int, int]]) -> list[_Part]:
    seen = one.table.times_ns
    spans = []
    for begin, end in wanted:
        first, last = np.searchsorted(seen, [begin, end + 1]).tolist()
        spans.append((first, last))
    rankings = iter(rank_spans(one.table, [s for s in spans if s[0] < s[1]], one.baseline))
    return [
        _Part(one.node, next(rankings), int(seen[first]), int(seen[last - 1]))
        if first < last
        else _Part(one.node)
        for first, last in spans
    ]


def _table(arguments: argparse.Namespace) -> _Input:
    data = table_input.load(arguments.input, arguments)
    clock, times = data.clock, data.times_ns
    return _Input(
        nodes=table_input.against(data, arguments.baseline, arguments),
        entry=lambda node, row: _entry(node, row, row.name, row.feature, subsystem_of(row.name)),
        covered=Covered(int(times[0]), int(times[-1]), clock.zone, clock.absolute),
        show=rfc3339 if clock.absolute else clock.show,
        warnings=[f"{arguments.input}: {note}" for note in data.notes],
    )


def _recording(arguments: argparse.Namespace) -> _Input:
    recording_input.refuse_table_flags(arguments)
    seen = recording_input.tables(arguments.input)
    path: Path | None = arguments.baseline
    healthy = recording_input.tables(healthy_recording(path)) if path else {}
    columns = {label: column for one in seen.values() for label, column in one.columns.items()}
    nodes = [
        Against(node, one.table(), _healthy(path, healthy, node)) for node, one in seen.items()
    ]
    times = [int(at) for one in nodes for at in one.table.times_ns[[0, -1]]]
    return _Input(
        nodes=nodes,
        entry=lambda node, row: _of_column(node, row, columns[row.name]),
        covered=Covered(min(times), max(times)),
        show=rfc3339,
        warnings=(),
    )


def _healthy(path: Path | None, healthy: Mapping[str, RecordingTable], node: str) -> Table | None:
    """The baseline's table of a node; of another one where that is all it holds."""
    if path is None:
        return None
    if node not in healthy and len(healthy) > 1:
        raise CliError(f"--baseline {path} holds nothing of {node}")
    return healthy.get(node, next(iter(healthy.values()))).table()


def _of_column(node: str, row: Ranked, column: Column) -> Entry:
    metric = column.metric
    where = f"{{{column.instance}}}" if column.instance else ""
    # a ratio of times is shown as the share it is, like the counters it is made of
    kind = metric.kind if metric.kind is Kind.GAUGE else Kind.COUNTER
    told = human(row.value, metric.unit, kind), human(row.baseline, metric.unit, kind)
    return _entry(node, row, f"{metric.name}{where}", column.feature, metric.subsystem, told)


def _entry(
    node: str,
    row: Ranked,
    metric: str,
    feature: str,
    subsystem: Subsystem | None,
    told: tuple[str, str] | None = None,
) -> Entry:
    value, baseline = decimal(row.value), decimal(row.baseline)
    return Entry(
        node, metric, feature, subsystem, percent(row.score), value, baseline,
        told or (value, baseline),
    )  # fmt: skip
