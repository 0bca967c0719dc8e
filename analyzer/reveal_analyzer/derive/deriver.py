"""Derivation of one vector per slice: the value of every column in this second."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from reveal_analyzer.arrays import Floats
from reveal_analyzer.derive.columns import (
    ColumnPlan,
    column_plan,
    previous_indices,
    shared_column_plan,
)
from reveal_analyzer.derive.stalls import StallCounter
from reveal_analyzer.derive.tcp_losses import LossWatch
from reveal_analyzer.derive.throttled_time import add_lost_time
from reveal_analyzer.kernels import backend
from reveal_analyzer.kernels.derive import Ticks
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.time_units import NS_PER_SECOND
from reveal_contract.wire import Message

_NONE: Floats = np.zeros(0)


def is_gap(before_ns: int, start_ns: int) -> bool:
    """Return whether two seconds do not follow each other: nothing may span them."""
    return not 0 < start_ns - before_ns < 2 * NS_PER_SECOND


class Second(NamedTuple):
    """A second of one node.

    ``values`` has one number per column of ``plan`` (counters per second, gauges as levels, NaN
    where nothing was read); ``channels`` one number per channel of the table, in base units.
    """

    plan: ColumnPlan
    start_ns: int
    values: Floats
    channels: Floats


class Deriver:
    """Turns the slices of one node into seconds; keeps the previous one for changes of gauges."""

    def __init__(self, leave_out: Callable[[Channel], bool] | None = None) -> None:
        self._leave_out = leave_out
        self._stalls = StallCounter()
        self._losses = LossWatch()
        self._plans: dict[bytes, ColumnPlan] = {}
        self._last: tuple[ColumnPlan, Floats] | None = None
        self._durations: tuple[object, Floats] | None = None

    def second(self, message: Message, table: ChannelTable) -> Second:
        """Return the second that this message covers."""
        plan = self._plan_of(table)
        ticks = Ticks(message.fast, message.fast_missing, message.slow, message.slow_missing)
        durations, previous = self._divisors(message, plan), self._previous(plan)
        seconds, values = backend.current().derive_second(ticks, durations, previous, plan.recipe)
        if plan.throttled is not None:
            values[plan.throttled_column] += add_lost_time(seconds, plan.throttled)
        rest: list[float] = [self._stalls.push(plan.channels, seconds)]
        if plan.loss_counters is not None:
            rest += self._losses.push(message, plan.loss_counters)
        values[-len(rest) :] = rest
        self._last = (plan, seconds)
        return Second(plan, message.start_ns, values, seconds)

    def _previous(self, plan: ColumnPlan) -> Floats:
        """Return the channels of the second before, NaN for new ones; empty where there is none."""
        if self._last is None:
            return _NONE
        before, seconds = self._last
        if before is plan:
            return seconds
        source = previous_indices(*([c.label for c in each.channels] for each in (plan, before)))
        return np.where(source < 0, np.nan, seconds[source])

    def _plan_of(self, table: ChannelTable) -> ColumnPlan:
        if table.key not in self._plans:
            if len(self._plans) > 1:  # keep the last two, as a table may come back soon
                self._plans.clear()
            plan = (
                column_plan(table, self._leave_out)
                if self._leave_out
                else shared_column_plan(table)
            )
            self._plans[table.key] = plan
        return self._plans[table.key]

    def reset(self) -> None:
        """Drop the previous second after a gap: no change and no burst may span it."""
        self._last = None
        self._losses.reset()

    def _divisors(self, message: Message, plan: ColumnPlan) -> Floats:
        """Return the seconds that a counter's value covers: a tick or, of a slow one, a second.

        A slice is shorter than a second where its collector ends, but what it has of slow counters
        was read a second after the reading before.  The divisor of a gauge is 1.
        """
        width = message.fast.shape[1]
        key = plan, width, message.tick_us
        if self._durations is None or self._durations[0] != key:
            durations = np.ones(len(plan.channels))
            durations[:width] = message.tick_us / 1e6
            self._durations = key, np.where(plan.gauge, 1.0, durations)
        return self._durations[1]
