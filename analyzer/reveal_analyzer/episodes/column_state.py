"""Columns as texts of a state tree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reveal_analyzer.derive.columns import Column
from reveal_analyzer.state.tree import StateError
from reveal_contract import catalogue


def save_columns(columns: Iterable[Column]) -> list[str]:
    """Return columns as texts: metric, instance and feature of one after the other."""
    return [part for column in columns
            for part in (column.metric.name, column.instance, column.feature)]  # fmt: skip


def restore_columns(parts: Sequence[str]) -> list[Column]:
    """Return the columns of these texts; raises ``StateError`` for a metric that is not known."""
    if len(parts) % 3:
        raise StateError("a column has three parts")
    columns = []
    for metric, instance, feature in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        try:
            columns.append(Column(catalogue.find(metric), instance, feature))
        except catalogue.UnknownMetricError as error:
            raise StateError(f"there is no metric {metric!r} any more") from error
    return columns
