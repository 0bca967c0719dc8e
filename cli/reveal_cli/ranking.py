"""Every metric of an input, ranked for spans of time by how far it left its baseline.

In a recording, a change that is less than the amount of its metric that matters counts less: a
counter that nearly always is 0 leaves its baseline by many spreads when a pod starts.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from reveal_analyzer.derive.columns import Column
from reveal_analyzer.formatting import amount, decimal
from reveal_analyzer.offline.recording_table import RecordingTable
from reveal_analyzer.tables.findings import percent
from reveal_analyzer.tables.ingest.subsystems import subsystem_of
from reveal_analyzer.tables.scoring.api import MetricRank, Table, rank_spans
from reveal_cli import recording_analysis, table_analysis
from reveal_cli.analysis import FileKind, baseline_recording, file_kind
from reveal_cli.errors import CliError
from reveal_cli.table_analysis import NodeInput
from reveal_cli.time_spans import Span, TimeRange, resolve
from reveal_contract.finding import rfc3339
from reveal_contract.metric import Subsystem


@dataclass(frozen=True)
class RankedMetric:
    """One metric of a ranking; ``node`` is "" where the input has one node only.

    ``value`` and ``baseline`` are decimal strings, ``value_text`` and ``baseline_text`` have units.
    """

    node: str
    metric: str
    feature: str
    subsystem: Subsystem | None
    percent: int
    value: str
    baseline: str
    value_text: str
    baseline_text: str

    def to_dict(self) -> dict[str, Any]:
        """Return the metric as JSON has it."""
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
class SpanRanking:
    """A span from its first to its last sample, and all metrics, the most abnormal first."""

    begin: str
    end: str
    ranking: tuple[RankedMetric, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the span as JSON has it."""
        return {
            "from": self.begin,
            "to": self.end,
            "ranking": [metric.to_dict() for metric in self.ranking],
        }


@dataclass(frozen=True)
class _Input:
    """The nodes' tables, their times, and how to display both."""

    nodes: Sequence[NodeInput]
    metric: Callable[[str, MetricRank], RankedMetric]
    times: TimeRange
    format_time: Callable[[int], str]
    warnings: Sequence[str]
    # by node and metric, the amount that matters, where it is known
    quanta: Mapping[str, Mapping[str, float]] = field(default_factory=dict)


def explain(arguments: argparse.Namespace) -> tuple[list[SpanRanking], Sequence[str]]:
    """Return the ranking of each span, in the order of the flags, and warnings about the input."""
    if file_kind(arguments.input) is not FileKind.RECORDING:
        return _explained(_table(arguments), arguments.span)
    recording_analysis.refuse_table_flags(arguments)
    return explain_recording(arguments.input, arguments.span, arguments.baseline)


def explain_recording(
    path: Path, spans: Sequence[Span], baseline: Path | None = None
) -> tuple[list[SpanRanking], Sequence[str]]:
    """Return the same for a recording; ``baseline`` is one of a healthy time."""
    return _explained(_recording(path, baseline), spans)


def _explained(data: _Input, asked: Sequence[Span]) -> tuple[list[SpanRanking], Sequence[str]]:
    spans = [resolve(span, data.times) for span in asked]
    ranked = [_ranked_spans(node, spans, data.quanta.get(node.node, {})) for node in data.nodes]
    several = len(data.nodes) > 1
    result = []
    for index, span in enumerate(asked):
        parts = [of_node[index] for of_node in ranked if of_node[index].rows]
        if not parts:
            raise CliError(f"--span {span} has no sample")
        rows = [(part.node, row) for part in parts for row in part.rows]
        if several:
            rows.sort(key=lambda pair: -pair[1].score)  # stable: equals keep the nodes' order
        metrics = tuple(data.metric(node if several else "", row) for node, row in rows)
        first, last = min(part.first_ns for part in parts), max(part.last_ns for part in parts)
        result.append(SpanRanking(data.format_time(first), data.format_time(last), metrics))
    return result, data.warnings


@dataclass(frozen=True)
class _NodeSpan:
    """The ranking of one node in one span; without ``rows`` where the node has no sample."""

    node: str
    rows: Sequence[MetricRank] = ()
    first_ns: int = 0
    last_ns: int = 0


def _ranked_spans(
    node: NodeInput, spans_ns: Sequence[tuple[int, int]], quanta: Mapping[str, float]
) -> list[_NodeSpan]:
    times = node.table.times_ns
    spans = []
    for begin, end in spans_ns:
        first, last = np.searchsorted(times, [begin, end + 1]).tolist()
        spans.append((first, last))
    rankings = iter(rank_spans(node.table, [s for s in spans if s[0] < s[1]], node.baseline))
    return [
        _NodeSpan(
            node.node,
            by_what_matters(next(rankings), quanta),
            int(times[first]),
            int(times[last - 1]),
        )
        if first < last
        else _NodeSpan(node.node)
        for first, last in spans
    ]


def by_what_matters(
    rows: Sequence[MetricRank], quanta: Mapping[str, float]
) -> Sequence[MetricRank]:
    """Return the metrics in order again; those that changed by less than matters score less."""
    if not quanta:
        return rows
    weighed = [replace(row, score=row.score * _importance(row, quanta[row.name])) for row in rows]
    return sorted(weighed, key=lambda row: -row.score)  # stable


def _importance(row: MetricRank, quantum: float) -> float:
    """Return the change in amounts that matter, 1 at most: a larger one matters no more.

    As in the live score it is linear below that amount and logarithmic above.
    """
    if math.isnan(row.value):
        return 1.0
    baseline = 0.0 if math.isnan(row.baseline) else row.baseline
    change = abs(math.asinh(row.value / quantum) - math.asinh(baseline / quantum))
    return min(1.0, change / math.asinh(1.0))


def _table(arguments: argparse.Namespace) -> _Input:
    data = table_analysis.load(arguments.input, arguments)
    clock, times = data.clock, data.times_ns
    return _Input(
        nodes=table_analysis.with_baselines(data, arguments.baseline, arguments),
        metric=lambda node, row: _metric(node, row, row.name, row.feature, subsystem_of(row.name)),
        times=TimeRange(int(times[0]), int(times[-1]), clock.zone, clock.has_time_of_day),
        format_time=rfc3339 if clock.absolute else clock.show,
        warnings=[f"{arguments.input}: {note}" for note in data.notes],
    )


def _recording(recording: Path, path: Path | None) -> _Input:
    tables = recording_analysis.node_tables(recording)
    healthy = recording_analysis.node_tables(baseline_recording(path)) if path else {}
    columns = {
        label: column for table in tables.values() for label, column in table.columns.items()
    }
    nodes = [
        NodeInput(node, table.table(), _baseline(path, healthy, node))
        for node, table in tables.items()
    ]
    times = [int(time_ns) for node in nodes for time_ns in node.table.times_ns[[0, -1]]]
    return _Input(
        nodes=nodes,
        metric=lambda node, row: _metric_of_column(node, row, columns[row.name]),
        times=TimeRange(min(times), max(times)),
        format_time=rfc3339,
        warnings=(),
        quanta={node: table.quanta() for node, table in tables.items()},
    )


def _baseline(path: Path | None, healthy: Mapping[str, RecordingTable], node: str) -> Table | None:
    """Return the baseline of a node, or the only table where it is of a node of another name."""
    if path is None:
        return None
    if node not in healthy and len(healthy) > 1:
        raise CliError(f"--baseline {path} has no data of {node}")
    return healthy.get(node, next(iter(healthy.values()))).table()


def _metric_of_column(node: str, row: MetricRank, column: Column) -> RankedMetric:
    metric = column.metric
    instance = f"{{{column.instance}}}" if column.instance else ""
    value, baseline = (
        amount(metric, column.feature, column.instance, each) for each in (row.value, row.baseline)
    )
    name = f"{metric.name}{instance}"
    return _metric(node, row, name, column.feature, metric.subsystem, (value, baseline))


def _metric(
    node: str,
    row: MetricRank,
    name: str,
    feature: str,
    subsystem: Subsystem | None,
    texts: tuple[str, str] | None = None,
) -> RankedMetric:
    numbers = decimal(row.value), decimal(row.baseline)
    return RankedMetric(
        node, name, feature, subsystem, percent(row.score), *numbers, *(texts or numbers)
    )
