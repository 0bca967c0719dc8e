"""One slice of ticks becomes one vector: what every column was in this second."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from reveal_analyzer.arrays import Floats
from reveal_analyzer.derive.columns import Plan, plan, shared_plan
from reveal_analyzer.derive.stalls import StallWatch
from reveal_analyzer.derive.tcp_losses import LossWatch
from reveal_analyzer.kernels import backend
from reveal_analyzer.kernels.derive import Ticks
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.wire import Message

_NONE: Floats = np.zeros(0)


class Second(NamedTuple):
    """A second of one node.

    ``values`` has one number a column of ``plan`` (counters per second, gauges as levels, NaN
    where nothing was read); ``channels`` one number a channel of the table, in base units.
    """

    plan: Plan
    start_ns: int
    values: Floats
    channels: Floats


class Deriver:
    """Turns the slices of one node into seconds; remembers what the change of a gauge needs."""

    def __init__(self, leave_out: Callable[[Channel], bool] | None = None) -> None:
        self._leave_out = leave_out
        self._stalls = StallWatch()
        self._losses = LossWatch()
        self._plans: dict[bytes, Plan] = {}
        self._last: tuple[bytes, Floats] | None = None
        self._lasts: tuple[object, Floats] | None = None

    def second(self, message: Message, table: ChannelTable) -> Second:
        """The second this message covers."""
        made = self._plan_of(table)
        ticks = Ticks(message.fast, message.fast_missing, message.slow, message.slow_missing)
        before = _NONE if self._last is None or self._last[0] != table.key else self._last[1]
        lasts = self._divisors(message, made)
        seconds, values = backend.current().derive_second(ticks, lasts, before, made.recipe)
        rest: list[float] = [self._stalls.push(made.channels, seconds)]
        if made.loss_places is not None:
            rest += self._losses.push(message, made.loss_places)
        values[-len(rest) :] = rest
        self._last = (table.key, seconds)
        return Second(made, message.start_ns, values, seconds)

    def _plan_of(self, table: ChannelTable) -> Plan:
        if table.key not in self._plans:
            if len(self._plans) > 1:  # of the past; a table may come back soon
                self._plans.clear()
            made = plan(table, self._leave_out) if self._leave_out else shared_plan(table)
            self._plans[table.key] = made
        return self._plans[table.key]

    def forget(self) -> None:
        """After a gap the change of a gauge means nothing, and no burst may span it."""
        self._last = None
        self._losses.forget()

    def _divisors(self, message: Message, made: Plan) -> Floats:
        """Seconds that the value of a counter stands for, a tick or a slice; 1 for a gauge."""
        ticks, width = message.fast.shape
        asked = made, ticks, width, message.tick_us
        if self._lasts is None or self._lasts[0] != asked:
            period = message.tick_us / 1e6
            lasts = np.full(len(made.channels), period * ticks)
            lasts[:width] = period
            self._lasts = asked, np.where(made.gauge, 1.0, lasts)
        return self._lasts[1]
