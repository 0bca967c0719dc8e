"""The metrics that stand out in a recording: over all of it, and in some spans."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from reveal_analyzer.arrays import Floats, Indices, Ints
from reveal_analyzer.derive.columns import CHANGE, Column
from reveal_analyzer.tables.scoring.api import MetricRank, Table, distances_by_sample, rank_spans
from reveal_cli.page_data.model import BrushData, MetricSeries, RankedRow
from reveal_cli.page_data.units import column_unit, label_of

MOST_SERIES = 120
MOST_BINS = 1200
RANKED_ROWS = 12
_PER_SPREAD = 8  # steps of a score
_LEAST = 1.0  # spreads: a metric that never left its mean by more is not ranked


@dataclass(frozen=True)
class NodeTable:
    """The seconds of a node with the columns behind their names; ``node`` is "" if it is alone."""

    node: str
    table: Table
    columns: Sequence[Column]


@dataclass(frozen=True)
class _Scored:
    score: float
    source: NodeTable
    index: int
    level: Floats
    forecast: Floats


def brush_data(tables: Sequence[NodeTable], start_ns: int, end_ns: int) -> BrushData:
    """Return the metrics that left their mean most, in at most ``MOST_BINS`` bins."""
    seconds = max(1, -(-(end_ns - start_ns) // 10**9))
    bin_s = -(-seconds // MOST_BINS)
    bins = -(-seconds // bin_s)
    best: list[_Scored] = []
    for source in tables:
        best = _highest([*best, *_scored(source)])
    series = [_series(each, start_ns, bin_s, bins) for each in best]
    return BrushData(float(bin_s), bins, series)


def ranked_rows(
    source: NodeTable, spans_ns: Sequence[tuple[int, int]]
) -> list[Sequence[RankedRow]]:
    """Return the metrics that stand out most in each span, as ``reveal explain`` ranks them."""
    spans = [np.searchsorted(source.table.times_ns, [a, b + 1]).tolist() for a, b in spans_ns]
    rankings = iter(rank_spans(source.table, [(a, b) for a, b in spans if a < b]))
    columns = {column.label: column for column in source.columns}
    result: list[Sequence[RankedRow]] = []
    for first, end in spans:
        ranking = next(rankings) if first < end else []
        rows = [row for row in ranking if columns[row.name].feature != CHANGE]
        result.append([_row(row, columns[row.name], source.node) for row in rows[:RANKED_ROWS]])
    return result


def _row(rank: MetricRank, column: Column, node: str) -> RankedRow:
    metric, instance, unit = column.metric, column.instance, column_unit(column)
    return RankedRow(
        metric.name, instance, column.feature, label_of(metric.name, instance, node),
        metric.subsystem.value, rank.score, unit.text(rank.value), unit.text(rank.baseline),
    )  # fmt: skip


def _scored(source: NodeTable) -> Iterator[_Scored]:
    """Yield the columns with their distances, as `reveal explain` compares them."""
    levels, forecasts = distances_by_sample(source.table)
    scores = np.sqrt(levels.max(axis=0) * forecasts.max(axis=0))
    for index, column in enumerate(source.columns):
        if column.feature != CHANGE and scores[index] >= _LEAST:
            score = float(scores[index])
            yield _Scored(score, source, index, levels[:, index], forecasts[:, index])


def _highest(found: Sequence[_Scored]) -> list[_Scored]:
    return sorted(found, key=lambda each: -each.score)[:MOST_SERIES]


def _series(each: _Scored, start_ns: int, bin_s: int, bins: int) -> MetricSeries:
    column, table = each.source.columns[each.index], each.source.table
    values = table.values[:, each.index]
    where = _bin_of(table.times_ns, start_ns, bin_s, bins)
    known = ~np.isnan(values)
    counts = np.bincount(where[known], minlength=bins)
    sums = np.bincount(where[known], values[known], minlength=bins)
    means = np.divide(sums, counts, out=np.full(bins, np.nan), where=counts > 0)
    low, high = float(np.nanmin(means)), float(np.nanmax(means))
    scaled = np.nan_to_num((means - low) / max(high - low, 1e-300) * 255)
    return MetricSeries(
        label_of(column.metric.name, column.instance, each.source.node),
        column.metric.subsystem.value,
        column_unit(column),
        float(np.nanmedian(values)),
        low,
        high,
        _largest(each.level, where, bins),
        _largest(each.forecast, where, bins),
        np.rint(scaled).astype(np.uint8).tobytes(),
    )


def _largest(distances: Floats, where: Indices, bins: int) -> bytes:
    """Return the largest distance of each bin as a byte."""
    largest = np.zeros(bins)
    np.maximum.at(largest, where, distances)
    return np.clip(np.rint(largest * _PER_SPREAD), 0, 255).astype(np.uint8).tobytes()


def _bin_of(times_ns: Ints, start_ns: int, bin_s: int, bins: int) -> Indices:
    return np.clip((times_ns - start_ns) // (bin_s * 10**9), 0, bins - 1).astype(np.intp)
