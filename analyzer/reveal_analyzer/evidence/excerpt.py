"""Parts of slices: some of the channels, and one sample instead of all: pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np

from reveal_analyzer.arrays import Indices
from reveal_analyzer.derive.single_sample import ChannelKinds
from reveal_analyzer.derive.single_sample import single_sample as sample_of
from reveal_contract import wire
from reveal_contract.channels import Channel, ChannelTable
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
    """Return a slice with one tick as long as all its ticks."""
    kinds = ChannelKinds.of(table.fast)
    fast, missing = sample_of(message.fast, message.fast_missing, kinds)
    return replace(
        message,
        tick_us=message.tick_us * len(message.fast),
        fast=fast[None, :],
        fast_missing=missing[None, :],
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
