"""Ranking of metrics in a span: every metric, the most abnormal first.

A metric's score is the geometric mean of its largest distance from the reference's mean and its
largest distance from a one-step forecast, both in its own spreads and smoothed over a few samples.
On labeled causes, both together rank the right metrics first more often than either alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reveal_analyzer.arrays import Floats, Indices
from reveal_analyzer.tables.scoring.forecast import Forecast
from reveal_analyzer.tables.scoring.metric_rank import MetricRank
from reveal_analyzer.tables.scoring.offline import FORECAST_MEAN, LAGS, LEAST_ROWS, LEVEL_MEAN
from reveal_analyzer.tables.scoring.preparation import Preparation, Prepared
from reveal_analyzer.tables.scoring.rows import TableRows
from reveal_analyzer.tables.scoring.scales import mean, median, plain_scale, thinned
from reveal_analyzer.tables.scoring.smooth import centered_mean

Span = tuple[int, int]

_LEAST = 0.1  # spreads: below, neither distance says anything


@dataclass(frozen=True)
class _SpanScores:
    """Scores of some metrics in one span, (m,) each."""

    level: Floats
    forecast: Floats
    value: Floats
    baseline: Floats
    first: Indices


def rank_spans(rows: TableRows, spans: Sequence[Span]) -> list[list[MetricRank]]:
    """Return the complete ranking of each span (first, end) of the table's samples, end excluded.

    Raises ``ValueError`` for a span that is empty or not within the table.
    """
    for first, end in spans:
        if not 0 <= first < end <= len(rows.table):
            raise ValueError(f"no samples {first} to {end} in a table of {len(rows.table)}")
    found: list[list[_SpanScores]] = [[] for _ in spans]
    preparation = Preparation(rows)
    for values in rows.blocks():
        prepared = preparation.prepared(values)
        distances = _Distances.of(rows, prepared)
        normal = _normal(values, prepared.values)
        for index, (first, end) in enumerate(spans):
            span = slice(rows.baseline_rows + first, rows.baseline_rows + end)
            found[index].append(_in_span(values, distances, normal, span))
    return [_ranking(rows, each) for each in found]


@dataclass(frozen=True)
class _Distances:
    """Distances (n, m) from the mean, and those from mean and forecast smoothed."""

    off: Floats
    level: Floats
    forecast: Floats

    @classmethod
    def of(cls, rows: TableRows, prepared: Prepared) -> _Distances:
        values, scale = prepared.values, prepared.spreads.scale()
        off = _off_level(values, rows.baseline_rows)
        level = centered_mean(off, LEVEL_MEAN)
        if len(rows) < LEAST_ROWS:
            return cls(off, level, level)  # too short to forecast anything
        residual = Forecast(LAGS).fit(values, rows.since, scale).residual(values, rows.since)
        return cls(off, level, centered_mean(residual, FORECAST_MEAN))


def _off_level(values: Floats, before: int) -> Floats:
    """Return |z| (n, m) against the table, and by a fifth against the baseline if any.

    Hosts drift within days, so a deviation within a run means more than one from last month.  But a
    level that was abnormal all along shows only against the baseline.
    """
    own = np.abs(plain_scale(values[before:]).distance(values))
    if not before:
        return own
    healthy = np.abs(plain_scale(values[:before]).distance(values))
    return 0.8 * own + 0.2 * healthy


def _normal(values: Floats, prepared: Floats) -> Floats:
    """Return the normal value of each sample, (n, m) or (1, m); NaN for metrics never known.

    Where the values were prepared, it is what they would be if nothing was abnormal.
    """
    unknown = np.isnan(values).all(0)
    if prepared is values:
        return np.where(unknown, np.nan, median(thinned(values)))[None]
    same = values == prepared
    own = values - (prepared - median(thinned(prepared)))
    return np.where(unknown, np.nan, np.where(same, median(thinned(values)), own))


def _in_span(values: Floats, distances: _Distances, normal: Floats, span: slice) -> _SpanScores:
    level, forecast = distances.level, distances.forecast
    peak = span.start + level[span].argmax(0)
    around = peak + np.arange(-(LEVEL_MEAN // 2), LEVEL_MEAN // 2 + 1)[:, None]
    rows = np.clip(around, span.start, span.stop - 1)
    near, off = (np.take_along_axis(each, rows, axis=0) for each in (values, distances.off))
    # samples beside a short excursion would hide its value
    abnormal = off >= 0.5 * off.max(0)
    value = np.where(np.isnan(near).all(0), np.nan, mean(np.where(abnormal, near, np.nan)))
    first = np.take_along_axis(rows, abnormal.argmax(0)[None], axis=0)[0]
    expected = np.take_along_axis(np.broadcast_to(normal, values.shape), first[None], axis=0)[0]
    return _SpanScores(level[span].max(0), forecast[span].max(0), value, expected, first)


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
