"""Ranking of metrics in a span: every metric, the most abnormal first.

A metric's score is the geometric mean of its largest distance from the reference's mean and its
largest distance from a one-step forecast, both in its own spreads and smoothed over a few samples.
On labeled causes, both together rank the right metrics first more often than either alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reveal_analyzer.arrays import Floats
from reveal_analyzer.tables.scoring.forecast import Forecast
from reveal_analyzer.tables.scoring.offline import FORECAST_MEAN, LAGS, LEAST_ROWS, LEVEL_MEAN
from reveal_analyzer.tables.scoring.rows import TableRows
from reveal_analyzer.tables.scoring.scales import mean, median, plain_scale, thinned
from reveal_analyzer.tables.scoring.smooth import centered_mean

Span = tuple[int, int]

_LEAST = 0.1  # spreads: below, neither distance says anything


@dataclass(frozen=True, slots=True)
class MetricRank:
    """How abnormal a metric was in a span.

    ``score`` is in spreads; ``feature`` is ``mean`` if the level was more abnormal than the step to
    it, else ``mean_abs_change``.  ``value`` is the metric's level where it was most abnormal,
    ``baseline`` its median in the reference, both in its own unit, NaN if never known.
    """

    name: str
    feature: str
    score: float
    value: float
    baseline: float

    @property
    def direction(self) -> str:
        return "up" if self.value > self.baseline else "down"


@dataclass(frozen=True)
class _SpanScores:
    """Scores of some metrics in one span, (m,) each."""

    level: Floats
    forecast: Floats
    value: Floats
    baseline: Floats


def rank_spans(rows: TableRows, spans: Sequence[Span]) -> list[list[MetricRank]]:
    """Return the complete ranking of each span (first, end) of the table's samples, end excluded.

    Raises ``ValueError`` for a span that is empty or not within the table.
    """
    for first, end in spans:
        if not 0 <= first < end <= len(rows.table):
            raise ValueError(f"no samples {first} to {end} in a table of {len(rows.table)}")
    found: list[list[_SpanScores]] = [[] for _ in spans]
    for values in rows.blocks():
        level, forecast = _distances(rows, values)
        baseline = np.where(np.isnan(values).all(0), np.nan, median(thinned(values)))
        for index, (first, end) in enumerate(spans):
            span = slice(rows.baseline_rows + first, rows.baseline_rows + end)
            found[index].append(_in_span(values, level, forecast, baseline, span))
    return [_ranking(rows.table.names, each) for each in found]


def _distances(rows: TableRows, values: Floats) -> tuple[Floats, Floats]:
    """Return distances (n, m) from the mean and from the forecast, smoothed."""
    level = centered_mean(_off_level(values, rows.baseline_rows), LEVEL_MEAN)
    if len(rows) < LEAST_ROWS:
        return level, level  # too short to forecast anything
    residual = Forecast(LAGS).fit(values, rows.since).residual(values, rows.since)
    return level, centered_mean(residual, FORECAST_MEAN)


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


def _in_span(
    values: Floats, level: Floats, forecast: Floats, baseline: Floats, span: slice
) -> _SpanScores:
    peak = span.start + level[span].argmax(0)
    around = peak + np.arange(-(LEVEL_MEAN // 2), LEVEL_MEAN // 2 + 1)[:, None]
    near = np.take_along_axis(values, np.clip(around, span.start, span.stop - 1), axis=0)
    value = np.where(np.isnan(near).all(0), np.nan, mean(near))
    return _SpanScores(level[span].max(0), forecast[span].max(0), value, baseline)


def _ranking(names: Sequence[str], found: Sequence[_SpanScores]) -> list[MetricRank]:
    if not found:
        return []
    level = np.concatenate([each.level for each in found])
    forecast = np.concatenate([each.forecast for each in found])
    value = np.concatenate([each.value for each in found])
    baseline = np.concatenate([each.baseline for each in found])
    score = np.sqrt(np.maximum(level, _LEAST) * np.maximum(forecast, _LEAST))
    score[np.maximum(level, forecast) < _LEAST] = 0.0
    order = np.argsort(-score, kind="stable").tolist()
    return [
        MetricRank(
            name=names[metric],
            feature="mean" if level[metric] >= forecast[metric] else "mean_abs_change",
            score=float(score[metric]),
            value=float(value[metric]),
            baseline=float(baseline[metric]),
        )
        for metric in order
    ]
