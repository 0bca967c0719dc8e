"""Columns of an episode, and how far they meet what hypotheses expect."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property

import numpy as np

from reveal_analyzer.arrays import Floats, Indices
from reveal_analyzer.derive.columns import CHANGE, Column, PlanColumns, indices_by_metric
from reveal_analyzer.hypotheses.model import Expectation, HypothesisRule

FULL_EXCESS = 6.0  # spreads outside the baseline at which an expectation is fully met


def columns_of(of: PlanColumns, metric: str, feature: str = "", instance: str = "") -> Indices:
    """Return the indices of a metric's columns; without a feature all but its rate of change."""
    columns, indices = of.columns, of.by_metric.get(metric, ())
    return np.array(
        [index for index in indices if _fits(columns[index], feature, instance)], np.intp
    )


def _fits(column: Column, feature: str, instance: str) -> bool:
    if instance and not fnmatchcase(column.instance, instance):
        return False
    return column.feature == feature if feature else column.feature != CHANGE


@dataclass(frozen=True)
class ColumnStats:
    """Columns of an episode, each with its mean value and its peak excess up and down."""

    columns: tuple[Column, ...]
    values: Floats
    excess: Floats

    @cached_property
    def _by_metric(self) -> dict[str, list[int]]:
        return indices_by_metric(self.columns)

    def indices(self, expectation: Expectation) -> Indices:
        """Return the columns that an expectation is about."""
        feature, instance = expectation.feature, expectation.instance
        of_metric = self._by_metric.get(expectation.metric, ())
        fitting = [i for i in of_metric if _fits(self.columns[i], feature, instance)]
        return np.array(fitting, np.intp)

    def index_of(self, column: Column) -> int | None:
        """Return the index of a column of an earlier plan, if it is still there."""
        of_metric = self._by_metric.get(column.metric.name, ())
        return next((i for i in of_metric if self.columns[i].label == column.label), None)


def confidence(rule: HypothesisRule, stats: ColumnStats) -> float:
    """Return from 0 to 1 how much of what the rule expects is there, less contradictions.

    Optional evidence counts only if the node has the metric and it had a value; otherwise the
    weight is shared by the rest.
    """
    counted = [item for item in rule.expects if not item.optional or _has_value(item, stats)]
    weight = sum(item.weight for item in counted)
    if not weight:
        return 0.0
    met = sum(item.weight * degree(item, stats) for item in counted) / weight
    return float(met * (1.0 - contradiction(rule, stats)))


def contradiction(rule: HypothesisRule, stats: ColumnStats) -> float:
    """Return from 0 to 1 how much of what contradicts the rule is there."""
    return max((degree(item, stats) for item in rule.contradicts), default=0.0)


def _has_value(expectation: Expectation, stats: ColumnStats) -> bool:
    """Return whether any column had a value; a ratio of too few events has none."""
    return bool((~np.isnan(stats.values[stats.indices(expectation)])).any())


def degree(expectation: Expectation, stats: ColumnStats) -> float:
    """Return from 0 to 1 how far an expectation is met by the instance that meets it best."""
    indices = stats.indices(expectation)
    if not indices.size:
        return 0.0
    if expectation.above is not None or expectation.below is not None:
        values = _divided(expectation, stats, indices)
        high = values >= (-np.inf if expectation.above is None else expectation.above)
        low = values <= (np.inf if expectation.below is None else expectation.below)
        return float((high & low).any())
    row = int(expectation.direction == "down")
    # without a known baseline nothing has left it
    moved = np.nan_to_num(np.minimum(1.0, stats.excess[row, indices] / FULL_EXCESS))
    if expectation.minimum is not None:
        moved = np.where(stats.values[indices] >= expectation.minimum, moved, 0.0)
    return float(moved.max())


def _divided(expectation: Expectation, stats: ColumnStats, indices: Indices) -> Floats:
    """Return the values of these columns, divided by ``ratio_to``; NaN where that is not > 0."""
    values = stats.values[indices]
    if not expectation.ratio_to:
        return values
    divisors = stats.indices(Expectation(expectation.ratio_to))
    by_instance = {stats.columns[i].instance: stats.values[i] for i in divisors}
    whole = np.array([by_instance.get(stats.columns[i].instance, np.nan) for i in indices])
    ratio: Floats = np.divide(values, whole, out=np.full(values.shape, np.nan), where=whole > 0)
    return ratio
