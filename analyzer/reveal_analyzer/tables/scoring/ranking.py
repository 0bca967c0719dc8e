"""Ranking of metrics in a span: every metric, the most abnormal first.

A metric's score is the geometric mean of its largest distance from the reference's mean and its
largest distance from a one-step forecast, both in its own spreads and smoothed over a few samples.
On labeled causes, both together rank the right metrics first more often than either alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from reveal_analyzer.arrays import Floats, Indices
from reveal_analyzer.tables.scoring.forecast import Forecast
from reveal_analyzer.tables.scoring.learned import LearnedBlocks
from reveal_analyzer.tables.scoring.metric_rank import MetricRank
from reveal_analyzer.tables.scoring.offline import FORECAST_MEAN, LAGS, LEAST_ROWS, LEVEL_MEAN
from reveal_analyzer.tables.scoring.preparation import Preparation, Prepared
from reveal_analyzer.tables.scoring.rows import TableRows
from reveal_analyzer.tables.scoring.scales import Scale, mean, median, plain_scale, thinned
from reveal_analyzer.tables.scoring.smooth import centered_mean

Span = tuple[int, int]

_HALO = LEVEL_MEAN // 2  # samples on either side of a span that means need
_LEAST = 0.1  # spreads: below, neither distance says anything


@dataclass(frozen=True)
class _SpanScores:
    """Scores of some metrics in one span, (m,) each."""

    level: Floats
    forecast: Floats
    value: Floats
    baseline: Floats
    first: Indices


def rank_spans(
    rows: TableRows, spans: Sequence[Span], learned: LearnedBlocks | None = None
) -> list[list[MetricRank]]:
    """Return the complete ranking of each span (first, end) of the table's samples, end excluded.

    ``learned`` is what was learned when the same rows were scored.
    Raises ``ValueError`` for a span that is empty or not within the table.
    """
    for first, end in spans:
        if not 0 <= first < end <= len(rows.table):
            raise ValueError(f"no samples {first} to {end} in a table of {len(rows.table)}")
    found: list[list[_SpanScores]] = [[] for _ in spans]
    preparation = Preparation(rows)
    for number, values in enumerate(rows.blocks()):
        known = learned.of(number, values) if learned else None
        block = _Block.of(rows, values, known or _learn(rows, preparation.prepared(values)))
        for index, (first, end) in enumerate(spans):
            found[index].append(block.scores(rows.baseline_rows + first, rows.baseline_rows + end))
    return [_ranking(rows, each) for each in found]


def sample_distances(rows: TableRows) -> Iterator[tuple[Floats, Floats]]:
    """Yield the smoothed distances from mean and forecast (n, m), by blocks of columns in order.

    The score of a metric in a span is the geometric mean of the largest of each in it.
    """
    preparation, before = Preparation(rows), rows.baseline_rows
    for values in rows.blocks():
        block = _Block.of(rows, values, _learn(rows, preparation.prepared(values)))
        _, level, forecast = block.distances(before, before + len(rows.table))
        yield level, forecast


def _learn(rows: TableRows, prepared: Prepared) -> tuple[Prepared, Forecast | None]:
    if len(rows) < LEAST_ROWS:
        return prepared, None  # too short to forecast anything
    scale = prepared.spreads.scale()
    return prepared, Forecast(LAGS).fit(prepared.values, rows.since, scale)


@dataclass(frozen=True)
class _Block:
    """Metrics of a table, and what their distances are measured by.

    Distances are calculated of the rows of a span only.
    """

    values: Floats
    prepared: Floats
    since: Indices
    own: Scale
    healthy: Scale | None
    forecast: Forecast | None
    normal: _NormalValues

    @classmethod
    def of(cls, rows: TableRows, values: Floats, learned: tuple[Prepared, Forecast | None]) -> Self:
        prepared, forecast = learned
        before = rows.baseline_rows
        least = None if before else prepared.spreads.least
        own = plain_scale(prepared.values[before:], least)
        healthy = plain_scale(prepared.values[:before]) if before else None
        normal = _NormalValues.of(values, prepared)
        return cls(values, prepared.values, rows.since, own, healthy, forecast, normal)

    def scores(self, first: int, end: int) -> _SpanScores:
        """Return the scores of the rows from ``first`` to ``end``."""
        return self._most_abnormal(*self.distances(first, end), first)

    def distances(self, first: int, end: int) -> tuple[Floats, Floats, Floats]:
        """Return the distances (n, m) of rows from the mean, and both distances smoothed."""
        around = slice(max(0, first - _HALO), min(len(self.values), end + _HALO))
        inner = slice(first - around.start, end - around.start)
        off = self._off_level(around)
        level = centered_mean(off, LEVEL_MEAN)[inner]
        forecast = level
        if self.forecast is not None:
            forecast = centered_mean(self._residual(self.forecast, around), FORECAST_MEAN)[inner]
        return off[inner], level, forecast

    def _off_level(self, rows: slice) -> Floats:
        """Return |z| against the table, and by a fifth against the baseline if any.

        Hosts drift within days, so a deviation within a run means more than one from last month.
        But a level that was abnormal all along shows only against the baseline.
        """
        own = np.abs(self.own.distance(self.prepared[rows]))
        if self.healthy is None:
            return own
        return 0.8 * own + 0.2 * np.abs(self.healthy.distance(self.prepared[rows]))

    def _residual(self, forecast: Forecast, rows: slice) -> Floats:
        begin = max(0, rows.start - forecast.lags)
        ages = np.minimum(self.since[begin : rows.stop], np.arange(rows.stop - begin))
        return forecast.residual(self.prepared[begin : rows.stop], ages)[rows.start - begin :]

    def _most_abnormal(
        self, off: Floats, level: Floats, forecast: Floats, start: int
    ) -> _SpanScores:
        """Return the scores of a span that begins with row ``start``."""
        around = level.argmax(0) + np.arange(-(LEVEL_MEAN // 2), LEVEL_MEAN // 2 + 1)[:, None]
        rows = np.clip(around, 0, len(off) - 1)
        values = self.values[start : start + len(off)]
        near, off = (np.take_along_axis(each, rows, axis=0) for each in (values, off))
        # samples beside a short excursion would hide its value
        abnormal = off >= 0.5 * off.max(0)
        value = np.where(np.isnan(near).all(0), np.nan, mean(np.where(abnormal, near, np.nan)))
        first = start + np.take_along_axis(rows, abnormal.argmax(0)[None], axis=0)[0]
        expected = self.normal.in_rows(first)
        return _SpanScores(level.max(0), forecast.max(0), value, expected, first)


@dataclass(frozen=True)
class _NormalValues:
    """The normal value of each sample of some metrics (m,); NaN for metrics never known.

    Where the values were prepared, it is what they would be if nothing was abnormal.
    """

    values: Floats
    prepared: Floats
    middle: Floats
    prepared_middle: Floats

    @classmethod
    def of(cls, values: Floats, prepared: Prepared) -> Self:
        center = prepared.spreads.center
        middle = center if prepared.values is values else median(thinned(values))
        middle = np.where(np.isnan(values).all(0), np.nan, middle)
        return cls(values, prepared.values, middle, center)

    def in_rows(self, rows: Indices) -> Floats:
        """Return the normal value of each metric in its row of ``rows`` (m,)."""
        if self.prepared is self.values:
            return self.middle
        metrics = np.arange(len(rows))
        value, prepared = self.values[rows, metrics], self.prepared[rows, metrics]
        changed = (value != prepared) & ~np.isnan(self.middle)
        return np.where(changed, value - (prepared - self.prepared_middle), self.middle)


def _ranking(rows: TableRows, found: Sequence[_SpanScores]) -> list[MetricRank]:
    if not found:
        return []
    level = np.concatenate([each.level for each in found])
    forecast = np.concatenate([each.forecast for each in found])
    value = np.concatenate([each.value for each in found])
    baseline = np.concatenate([each.baseline for each in found])
    first = np.concatenate([each.first for each in found]) - rows.baseline_rows
    score = np.sqrt(np.maximum(level, _LEAST) * np.maximum(forecast, _LEAST))
    score[np.maximum(level, forecast) < _LEAST] = 0.0
    order = np.argsort(-score, kind="stable").tolist()
    return [
        MetricRank(
            name=rows.table.names[metric],
            feature="mean" if level[metric] >= forecast[metric] else "mean_abs_change",
            score=float(score[metric]),
            value=float(value[metric]),
            baseline=float(baseline[metric]),
            first=int(first[metric]),
        )
        for metric in order
    ]
