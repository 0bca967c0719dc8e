"""Units of columns, for people and for the script of a page."""

from __future__ import annotations

from functools import partial

from reveal_analyzer.derive.columns import CHANGE, LEVEL, Column
from reveal_analyzer.formatting import amount, steps_of
from reveal_cli.page_data.model import Unit
from reveal_contract import catalogue
from reveal_contract.metric import Metric


def unit_of(metric: Metric, feature: str, instance: str) -> Unit:
    """Return how values of a metric, seen through a feature, are written."""
    return Unit(partial(amount, metric, feature, instance), steps_of(metric, feature, instance))


def column_unit(column: Column) -> Unit:
    """Return how values of a column are written."""
    return unit_of(column.metric, column.feature, column.instance)


def label_of(name: str, instance: str, node: str = "") -> str:
    """Return ``node: metric{instance}``, the parts that are not empty."""
    where = f"{{{instance}}}" if instance else ""
    return f"{node}: {name}{where}" if node else f"{name}{where}"


def level_feature(feature: str) -> str:
    """Return the feature whose samples a chart has: of a change it is the level."""
    return LEVEL if feature == CHANGE else feature


def known_metric(name: str) -> Metric | None:
    """Return a metric of the catalogue; None for a fact, or one of a newer version."""
    try:
        return catalogue.find(name)
    except catalogue.UnknownMetricError:
        return None
