"""Which metrics were odd in a span: every metric, the oddest first.

A metric's score is the geometric mean of its largest distance from the reference's mean and its
largest distance from a one-step forecast, both in its own spreads and smoothed over a few
samples.  On labelled causes the two together name the right metrics more often than either.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reveal_analyzer.arrays import Floats
from reveal_analyzer.tables.scoring.forecast import Forecast
from reveal_analyzer.tables.scoring.offline import FORECAST_MEAN, LAGS, LEAST_ROWS, LEVEL_MEAN
from reveal_analyzer.tables.scoring.rows import Rows
from reveal_analyzer.tables.scoring.scales import mean, median, plain_scale, thinned
from reveal_analyzer.tables.scoring.smooth import centred_mean

Span = tuple[int, int]

_LEAST = 0.1  # spreads: below, neither distance says anything


@dataclass(frozen=True, slots=True)
class Ranked:
    """How odd a metric was in a span.

    ``score`` is in spreads; ``feature`` is ``mean`` where the level was odder than the step to
    it, else ``mean_abs_change``.  ``value`` is the metric's level where it was oddest,
    ``baseline`` its median in the reference, both in its own unit, NaN where never known.
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
class _Found:
    """Of some metrics in one span, (m,) each."""

    level: Floats
    forecast: Floats
    value: Floats
    usual: Floats


def rank_spans(rows: Rows, spans: Sequence[Span]) -> list[list[Ranked]]:
    """The complete ranking of each span (first, end) of the table's samples, end excluded.

    Raises ``ValueError`` for a span that is empty or not within the table.
    """
    for first, end in spans:
        if not 0 <= first < end <= len(rows.table):
            raise ValueError(f"no samples {first} to {end} in a table of {len(rows.table)}")
    found: list[list[_Found]] = [[] for _ in spans]
    for values in rows.blocks():
        level, forecast = _distances(rows, values)
        usual = np.where(np.isnan(values).all(0), np.nan, median(thinned(values)))
        for place, (first, end) in enumerate(spans):
            span = slice(rows.before + first, rows.before + end)
            found[place].append(_in_span(values, level, forecast, usual, span))
    return [_ranking(rows.table.names, each) for each in found]


def _distances(rows: Rows, values: Floats) -> tuple[Floats, Floats]:
    """Distances (n, m) from the mean and from the forecast, smoothed."""
    level = centred_mean(_off_level(values, rows.before), LEVEL_MEAN)
    if len(rows) < LEAST_ROWS:
        return level, level  # too short to forecast anything
    residual = Forecast(LAGS).fit(values, rows.since).residual(values, rows.since)
    return level, centred_mean(residual, FORECAST_MEAN)


def _off_level(values: Floats, before: int) -> Floats:
    """|z| (n, m) against the table, and by a fifth against the baseline if there is one.

    Hosts drift in days: what is odd in a run says more than what is odd beside last month; but
    what was odd all along shows beside the baseline alone.
    """
    own = np.abs(plain_scale(values[before:]).distance(values))
    if not before:
        return own
    healthy = np.abs(plain_scale(values[:before]).distance(values))
    return 0.8 * own + 0.2 * healthy


def _in_span(values: Floats, level: Floats, forecast: Floats, usual: Floats, span: slice) -> _Found:
    peak = span.start + level[span].argmax(0)
    around = peak + np.arange(-(LEVEL_MEAN // 2), LEVEL_MEAN // 2 + 1)[:, None]
    near = np.take_along_axis(values, np.clip(around, span.start, span.stop - 1), axis=0)
    value = np.where(np.isnan(near).all(0), np.nan, mean(near))
    return _Found(level[span].max(0), forecast[span].max(0), value, usual)


def _ranking(names: Sequence[str], found: Sequence[_Found]) -> list[Ranked]:
    if not found:
        return []
    level = np.concatenate([each.level for each in found])
    forecast = np.concatenate([each.forecast for each in found])
    value = np.concatenate([each.value for each in found])
    usual = np.concatenate([each.usual for each in found])
    score = np.sqrt(np.maximum(level, _LEAST) * np.maximum(forecast, _LEAST))
    score[np.maximum(level, forecast) < _LEAST] = 0.0
    order = np.argsort(-score, kind="stable").tolist()
    return [
        Ranked(
            name=names[at],
            feature="mean" if level[at] >= forecast[at] else "mean_abs_change",
            score=float(score[at]),
            value=float(value[at]),
            baseline=float(usual[at]),
        )
        for at in order
    ]
