"""Parts of slices: some of the channels, and one sample instead of all: pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np

from reveal_analyzer.arrays import Indices
from reveal_contract import wire
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Kind
from reveal_contract.wire import Message

ChannelName = tuple[str, str]  # metric and instance


@dataclass(frozen=True, eq=False)
class Excerpt:
    """Some channels of a table as a table of their own, with their indices in the first."""

    table: ChannelTable
    fast: Indices
    slow: Indices

    @classmethod
    def of(cls, table: ChannelTable, names: Collection[ChannelName]) -> Excerpt:
        """Return the named channels of a table; those that it does not have are left out."""
        fast, slow = (_indices(part, names) for part in (table.fast, table.slow))
        own = ChannelTable(
            tuple(table.fast[index] for index in fast), tuple(table.slow[index] for index in slow)
        )
        return cls(own, fast, slow)

    def apply(self, message: Message) -> Message:
        """Return a slice of the table with these channels only."""
        return replace(
            message,
            table=self.table.key,
            fast=message.fast[:, self.fast],
            slow=message.slow[self.slow],
            fast_missing=message.fast_missing[:, self.fast],
            slow_missing=message.slow_missing[self.slow],
        )


def single_sample(message: Message, table: ChannelTable) -> Message:
    """Return a slice with one tick as long as all its ticks.

    A counter has the sum of its ticks, a gauge their mean, a state its last one.  What is missing
    of a counter counts as the mean of the others.
    """
    ticks = len(message.fast)
    read = ~message.fast_missing
    count = read.sum(axis=0)
    total = np.where(read, message.fast, 0).sum(axis=0, dtype=np.float64)
    mean = total / np.maximum(count, 1)
    kinds = np.array([channel.kind for channel in table.fast], object)
    fast = np.rint(np.where(kinds == Kind.COUNTER, mean * ticks, mean)).astype(np.int64)
    whole = (kinds == Kind.COUNTER) & (count == ticks)
    fast[whole] = message.fast[:, whole].sum(axis=0)  # exact beyond 2**53
    states = np.flatnonzero(kinds == Kind.STATE)
    last = ticks - 1 - np.argmax(read[::-1], axis=0)
    fast[states] = message.fast[last[states], states]
    return replace(
        message,
        tick_us=message.tick_us * ticks,
        fast=fast[None, :],
        fast_missing=(count == 0)[None, :],
        lateness=message.lateness[:1],
    )


def encode(message: Message, table: ChannelTable) -> bytes:
    """Return the bytes of a slice."""
    return wire.encode(message, wire.gauges(table))


def _indices(channels: tuple[Channel, ...], names: Collection[ChannelName]) -> Indices:
    found = [
        index
        for index, channel in enumerate(channels)
        if (channel.metric, channel.instance) in names
    ]
    return np.array(found, np.intp)
