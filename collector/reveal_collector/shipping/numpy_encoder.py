"""From rows of raw integers to a wire message: counter differences, levels, what is missing.

The tick thread only gathers; everything here runs once a slice, off that thread.  This is the
reference in numpy; ``encoder`` does the same in C where the native library is there.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from reveal_collector.readers.raw_slice import MISSING, RARE_SLICES, RawSlice, SliceOrigin
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Kind, Lane
from reveal_contract.wire import Bools, Ints, Message, encode

Cell = TypeVar("Cell", np.int64, np.bool_)


def differences(rows: Ints, missing: Bools) -> tuple[Ints, Bools]:
    """Counter steps: ``rows`` (n + 1, channels) -> steps and mask, (n, channels) each.

    A step is missing where one of its ends is, or where it is negative: the counter was
    reset or wrapped at 32 bits, which costs this one sample and never makes a spike.  A wrap
    at 64 bits is an ordinary step.
    """
    steps = rows[1:] - rows[:-1]
    return steps, missing[1:] | missing[:-1] | (steps < 0)


class _Readings:
    """The last row of one part of the table, to take the next differences from."""

    def __init__(self) -> None:
        self.gauges: Bools = np.zeros(0, np.bool_)
        self.rare: Bools = np.zeros(0, np.bool_)
        self._channels: tuple[Channel, ...] = ()
        self._last: Ints = np.zeros(0, np.int64)
        self._unknown: Bools = np.zeros(0, np.bool_)

    def switch(self, channels: tuple[Channel, ...]) -> NDArray[np.intp]:
        """Go over to other columns, keeping what is the same; gives each one's old place or -1."""
        places = {(old.metric, old.instance): at for at, old in enumerate(self._channels)}
        old = [places.get((channel.metric, channel.instance), -1) for channel in channels]
        moved = np.array(old, np.intp)
        self._last = carried(self._last, moved)
        self._unknown = (moved < 0) | carried(self._unknown, moved)
        self._channels = channels
        self.gauges = np.array([c.kind is not Kind.COUNTER for c in channels], np.bool_)
        self.rare = np.array([c.lane is Lane.RARE for c in channels], np.bool_) & ~self.gauges
        return moved

    def forget(self) -> None:
        self._unknown[:] = True

    def advance(self, rows: Ints) -> tuple[Ints, Bools]:
        """Values of ``rows`` (ticks, channels): steps of counters, levels of all others."""
        missing = rows == MISSING
        steps, gone = differences(
            np.vstack([self._last, rows]), np.vstack([self._unknown, missing])
        )
        steps[:, self.gauges] = rows[:, self.gauges]
        gone[:, self.gauges] = missing[:, self.gauges]
        self._last, self._unknown = rows[-1], missing[-1].copy()
        return steps, gone


def carried(values: NDArray[Cell], places: NDArray[np.intp]) -> NDArray[Cell]:
    """``values`` at their new places, zero where a place is -1."""
    moved = np.zeros(places.size, values.dtype)
    kept = places >= 0
    moved[kept] = values[places[kept]]
    return moved


class MessageBuilder:
    """Turns the raw slices of one collector, in order, into messages."""

    def __init__(self, origin: SliceOrigin) -> None:
        self._origin = origin
        self._table: ChannelTable | None = None
        self._sequence = -2
        self._fast, self._slow = _Readings(), _Readings()
        self._owed: Ints = np.zeros(0, np.int64)
        self._left: Ints = np.zeros(0, np.int64)

    @property
    def gauges(self) -> Bools:
        """Which fast channels are levels, as ``wire.encode`` wants it."""
        return self._fast.gauges

    def make(self, raw: RawSlice) -> Message:
        """The message of the next slice; after a gap in the sequence no difference spans it."""
        if raw.table is not self._table:
            self._switch(raw.table)
        if raw.sequence != self._sequence + 1:
            self._fast.forget()
            self._slow.forget()
        rows = np.array(raw.fast, np.int64).reshape(len(raw.lateness), len(raw.table.fast))
        fast, fast_missing = self._fast.advance(rows)
        slow, slow_missing = self._slow_values(np.array(raw.slow, np.int64))
        self._sequence = raw.sequence
        return Message(
            node=self._origin.node, boot=self._origin.boot, sequence=raw.sequence,
            start_ns=raw.start_ns, tick_us=self._origin.tick_us, table=raw.table.key,
            fast=fast, slow=slow, fast_missing=fast_missing, slow_missing=slow_missing,
            lateness=np.array(raw.lateness, np.int32),
        )  # fmt: skip

    def _switch(self, table: ChannelTable) -> None:
        self._table = table
        self._fast.switch(table.fast)
        moved = self._slow.switch(table.slow)
        self._owed = carried(self._owed, moved)
        self._left = carried(self._left, moved)

    def _slow_values(self, readings: Ints) -> tuple[Ints, Bools]:
        steps, lost = self._slow.advance(readings[None, :])
        if self._slow.rare.any():
            self._spread(steps[0], lost[0])
        return steps[0], lost[0]

    def _spread(self, steps: Ints, lost: Bools) -> None:
        """Pay a rare counter's step out over the slices until it is read again.

        Ten seconds' worth in one slice would look like a burst.  The sum is kept, and the
        first event of a small step is paid at once.
        """
        rare = self._slow.rare
        fresh = rare & ~lost & (steps > 0)
        self._owed[fresh] += steps[fresh]
        self._left[fresh] = RARE_SLICES
        paid = -(-self._owed // np.maximum(self._left, 1))
        self._owed -= np.where(rare, paid, 0)
        self._left = np.maximum(self._left - 1, 0)
        steps[rare] = paid[rare]


class NumpyEncoder:
    """The encoder of a process without the native library."""

    def __init__(self, origin: SliceOrigin) -> None:
        self._maker = MessageBuilder(origin)

    def encode(self, raw: RawSlice) -> bytes:
        return encode(self._maker.make(raw), self._maker.gauges)
