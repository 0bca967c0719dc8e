"""A node's metrics resampled to rows of equal period, the input of correlations.

Counters become rates, gauges levels.  A value that is read once a slice or less often is repeated
until it is read again.  A row never spans a gap, a restart or a change of the channel table.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reveal_analyzer.arrays import Floats, Indices
from reveal_analyzer.derive.columns import ColumnPlan, column_plan, in_catalogue
from reveal_analyzer.derive.deriver import is_gap
from reveal_contract import catalogue, ledger
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Metric, Scope
from reveal_contract.wire import Message

_NOT_OF_NODES = ("own", ledger.SOURCE)  # of the collector, and of subjects


@dataclass(frozen=True)
class MetricInstance:
    """One metric of one instance, read (a channel) or derived from channels."""

    metric: Metric
    instance: str

    @property
    def label(self) -> str:
        """Return the label as channels have it: ``metric`` or ``metric{instance}``."""
        return f"{self.metric.name}{{{self.instance}}}" if self.instance else self.metric.name


@dataclass(frozen=True, eq=False)
class ResampledRows:
    """``values`` (rows, items) in base units, counters per second, NaN where nothing was read."""

    items: tuple[MetricInstance, ...]
    values: Floats


@dataclass(frozen=True, eq=False)
class _TableItems:
    """Which channels of a table are items; derived metrics follow them."""

    plan: ColumnPlan
    items: tuple[MetricInstance, ...]
    indices: Indices

    @classmethod
    def of(cls, table: ChannelTable) -> _TableItems:
        plan = column_plan(table)
        indices = [index for index, channel in enumerate(plan.channels) if is_node_metric(channel)]
        chosen = [plan.channels[index] for index in indices]
        items = [MetricInstance(catalogue.find(each.metric), each.instance) for each in chosen]
        items += [MetricInstance(ratio.metric, ratio.instance) for ratio in plan.ratios]
        return cls(plan, tuple(items), np.array(indices, np.intp))


def is_node_metric(channel: Channel) -> bool:
    """Return whether a channel describes the node, and not a subject or the collector itself.

    Subjects come and go, and the subject of a finding is found through them: they are never
    dropped.
    """
    if not in_catalogue(channel):
        return False
    metric = catalogue.find(channel.metric)
    return metric.source not in _NOT_OF_NODES and metric.scope is not Scope.SUBJECT


class Resampler:
    """Resamples one node's slices; each row is the mean of ``every_ns`` (at least a tick)."""

    def __init__(self, every_ns: int) -> None:
        self._every_ns = every_ns
        self._layout: tuple[ChannelTable, _TableItems] | None = None
        self._buffer: list[Floats] = []
        self._last: tuple[bytes, int] | None = None

    def push(self, message: Message, table: ChannelTable) -> ResampledRows | None:
        """Return the rows that are complete with this slice; None if there are none."""
        layout = self._adopt(message, table)
        ticks = _ticks(message, layout.plan)
        together = max(1, round(self._every_ns / (message.tick_us * 1000)))
        buffer = np.concatenate([*self._buffer, ticks])
        whole = len(buffer) // together
        self._buffer = [buffer[whole * together :]]
        if not whole:
            return None
        means = _means(buffer[: whole * together].reshape(whole, together, -1))
        return ResampledRows(layout.items, _with_ratios(means, layout))

    def _adopt(self, message: Message, table: ChannelTable) -> _TableItems:
        """Return the layout of the table; drop buffered ticks that do not join this slice."""
        last, self._last = self._last, (message.boot, message.start_ns)
        joins = (
            last is not None and last[0] == message.boot and not is_gap(last[1], message.start_ns)
        )
        if self._layout is None or self._layout[0] != table:
            self._layout, joins = (table, _TableItems.of(table)), False
        if not joins:
            self._buffer = []
        return self._layout[1]


def _ticks(message: Message, plan: ColumnPlan) -> Floats:
    """Return (ticks, all channels of the table) in base units, counters per second."""
    fast = message.fast.astype(np.float64)
    fast[message.fast_missing] = np.nan
    slow = message.slow.astype(np.float64)
    slow[message.slow_missing] = np.nan
    period, count = message.tick_us / 1e6, len(fast)
    lasts = np.concatenate([np.full(fast.shape[1], period), np.full(len(slow), period * count)])
    values = np.hstack([fast, np.broadcast_to(slow, (count, len(slow)))])
    rates: Floats = values * (plan.scale / np.where(plan.gauge, 1.0, lasts))
    return rates


def _means(groups: Floats) -> Floats:
    """Return (rows, ticks, channels) as means (rows, channels) of what was read."""
    if groups.shape[1] == 1:
        return groups[:, 0]
    known = ~np.isnan(groups)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(known, groups, 0.0).sum(axis=1) / known.sum(axis=1))


def _with_ratios(means: Floats, layout: _TableItems) -> Floats:
    formulas = layout.plan.recipe.formulas
    derived = np.array([formulas.run(row) for row in means])
    plan = np.hstack([means[:, layout.indices], derived.reshape(len(means), formulas.ends.size)])
    plan[~np.isfinite(plan)] = np.nan
    return plan
