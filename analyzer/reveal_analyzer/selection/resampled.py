"""A node's metrics as rows of an even period: what correlations are taken over.

Counters are rates, gauges levels.  What is read once a slice or more rarely is held until it is
read again.  A row never spans a gap, a restart or a change of the channel table.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reveal_analyzer.arrays import Floats, Indices
from reveal_analyzer.derive.columns import ColumnPlan, column_plan, in_catalogue
from reveal_contract import catalogue
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Metric, Scope
from reveal_contract.time_units import NS_PER_SECOND
from reveal_contract.wire import Message


@dataclass(frozen=True)
class Item:
    """One metric of one instance, read (a channel) or derived from channels."""

    metric: Metric
    instance: str

    @property
    def label(self) -> str:
        """As channels are shown: ``metric`` or ``metric{instance}``."""
        return f"{self.metric.name}{{{self.instance}}}" if self.instance else self.metric.name


@dataclass(frozen=True, eq=False)
class Rows:
    """``values`` (rows, items) in base units, counters per second, NaN where nothing was read."""

    items: tuple[Item, ...]
    values: Floats


@dataclass(frozen=True, eq=False)
class _Layout:
    """Which channels of a table are items; the derived ones follow them."""

    plan: ColumnPlan
    items: tuple[Item, ...]
    places: Indices

    @classmethod
    def of(cls, table: ChannelTable) -> _Layout:
        made = column_plan(table)
        places = [at for at, channel in enumerate(made.channels) if of_the_node(channel)]
        chosen = [made.channels[at] for at in places]
        items = [Item(catalogue.find(each.metric), each.instance) for each in chosen]
        items += [Item(ratio.metric, ratio.instance) for ratio in made.ratios]
        return cls(made, tuple(items), np.array(places, np.intp))


def of_the_node(channel: Channel) -> bool:
    """Whether a channel tells of the node: not of a subject, nor of the collector itself.

    Subjects come and go, and a finding's subject is found in them: they are never left out.
    """
    if not in_catalogue(channel):
        return False
    metric = catalogue.find(channel.metric)
    return metric.source != "own" and metric.scope is not Scope.SUBJECT


class Resampler:
    """Makes rows of one node's slices, each the mean of ``every_ns`` (at least a tick)."""

    def __init__(self, every_ns: int) -> None:
        self._every_ns = every_ns
        self._layout: tuple[ChannelTable, _Layout] | None = None
        self._waiting: list[Floats] = []
        self._last: tuple[bytes, int] | None = None

    def push(self, message: Message, table: ChannelTable) -> Rows | None:
        """The rows that are complete with this slice; None where there are none."""
        layout = self._follow(message, table)
        ticks = _ticks(message, layout.plan)
        together = max(1, round(self._every_ns / (message.tick_us * 1000)))
        waiting = np.concatenate([*self._waiting, ticks])
        whole = len(waiting) // together
        self._waiting = [waiting[whole * together :]]
        if not whole:
            return None
        means = _means(waiting[: whole * together].reshape(whole, together, -1))
        return Rows(layout.items, _with_ratios(means, layout))

    def _follow(self, message: Message, table: ChannelTable) -> _Layout:
        """Drop what waits where it does not join this slice; the layout of the table."""
        last, self._last = self._last, (message.boot, message.start_ns)
        joins = (
            last is not None
            and last[0] == message.boot
            and 0 < message.start_ns - last[1] < 2 * NS_PER_SECOND
        )
        if self._layout is None or self._layout[0] != table:
            self._layout, joins = (table, _Layout.of(table)), False
        if not joins:
            self._waiting = []
        return self._layout[1]


def _ticks(message: Message, made: ColumnPlan) -> Floats:
    """(ticks, all channels of the table) in base units, per second where they count."""
    fast = message.fast.astype(np.float64)
    fast[message.fast_missing] = np.nan
    slow = message.slow.astype(np.float64)
    slow[message.slow_missing] = np.nan
    period, count = message.tick_us / 1e6, len(fast)
    lasts = np.concatenate([np.full(fast.shape[1], period), np.full(len(slow), period * count)])
    held = np.hstack([fast, np.broadcast_to(slow, (count, len(slow)))])
    rates: Floats = held * (made.scale / np.where(made.gauge, 1.0, lasts))
    return rates


def _means(groups: Floats) -> Floats:
    """(rows, together, channels) to (rows, channels); missing only where nothing was read."""
    if groups.shape[1] == 1:
        return groups[:, 0]
    seen = ~np.isnan(groups)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.where(seen, groups, 0.0).sum(axis=1) / seen.sum(axis=1))


def _with_ratios(means: Floats, layout: _Layout) -> Floats:
    formulas = layout.plan.recipe.formulas
    derived = np.array([formulas.run(row) for row in means])
    made = np.hstack([means[:, layout.places], derived.reshape(len(means), formulas.ends.size)])
    made[~np.isfinite(made)] = np.nan
    return made
