"""Values of a recording, second by second: every metric of every instance by its label."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reveal_analyzer.arrays import Floats
from reveal_analyzer.derive.columns import LEVEL, Column, ColumnPlan, in_catalogue
from reveal_analyzer.derive.deriver import Deriver, is_gap
from reveal_contract import catalogue
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.foreign_names import printable
from reveal_contract.metric import Lane
from reveal_contract.wire import Message

_SAMPLES = "subject-fine"  # samples within a tick: their level means nothing


@dataclass(frozen=True)
class ValueLabels:
    """The labels of the values of a plan, in their order.

    A label is ``metric`` or ``metric{instance}``.  That of a feature other than the level has its
    name behind a space; ``is_level`` is false for it.
    """

    labels: tuple[str, ...]
    metrics: tuple[str, ...]
    is_level: tuple[bool, ...]


class MetricValues:
    """The values of one node: rates of counters and levels of gauges, in base units."""

    def __init__(self) -> None:
        self._deriver = Deriver()
        self._labels: dict[int, tuple[ColumnPlan, ValueLabels]] = {}  # a plan in use keeps its id
        self._last_ns: int | None = None

    def second(self, message: Message, table: ChannelTable) -> tuple[ValueLabels, Floats]:
        """Return the labels and the values of a second; NaN where nothing was read."""
        if self._last_ns is not None and is_gap(self._last_ns, message.start_ns):
            self._deriver.reset()
        self._last_ns = message.start_ns
        second = self._deriver.second(message, table)
        if id(second.plan) not in self._labels:
            self._labels[id(second.plan)] = second.plan, _labels(second.plan)
        values: Floats = np.concatenate((second.channels, second.values))
        return self._labels[id(second.plan)][1], values


def _labels(plan: ColumnPlan) -> ValueLabels:
    channels = [printable(channel.label) for channel in plan.channels]
    metrics = [each.metric for each in plan.channels]
    return ValueLabels(
        (*channels, *map(_column_label, plan.columns)),
        (*metrics, *(column.metric.name for column in plan.columns)),
        (*map(_has_level, plan.channels), *map(_is_derived, plan.columns)),
    )


def _column_label(column: Column) -> str:
    label = column.label.removesuffix(f"__{column.feature}")
    return printable(label if column.feature == LEVEL else f"{label} {column.feature}")


def _has_level(channel: Channel) -> bool:
    if channel.is_skipped:
        return False
    return not in_catalogue(channel) or catalogue.find(channel.metric).source != _SAMPLES


def _is_derived(column: Column) -> bool:
    """Return whether a column is a metric that no channel has."""
    return column.feature == LEVEL and column.metric.lane is Lane.DERIVED
