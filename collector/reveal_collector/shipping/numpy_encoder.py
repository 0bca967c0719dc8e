"""Rows of raw integers to wire messages: counter differences, levels, missing values.

The tick thread only gathers values; this runs once a slice, outside of that thread.  It is the
reference in numpy; ``native_encoder`` does the same in C where the native library is available.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from reveal_collector.readers.raw_bounds import raw_bounds
from reveal_collector.readers.raw_slice import RARE_SLICES, RawSlice, SliceOrigin
from reveal_collector.shipping.counter_increments import counter_increments
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Kind, Lane
from reveal_contract.wire import Bools, Ints, Message, encode

Cell = TypeVar("Cell", np.int64, np.bool_)


class _Readings:
    """The last row of one part of the table, the start of the next differences."""

    def __init__(self) -> None:
        self.gauges: Bools = np.zeros(0, np.bool_)
        self.rare: Bools = np.zeros(0, np.bool_)
        self._channels: tuple[Channel, ...] = ()
        self._last: Ints = np.zeros(0, np.int64)
        self._unknown: Bools = np.zeros(0, np.bool_)
        self._bounds: Ints = np.zeros((3, 0), np.int64)

    def switch(self, channels: tuple[Channel, ...]) -> NDArray[np.intp]:
        """Change to other columns; keep the state of those that remain.

        Returns the earlier index of each column, or -1.  A sum of other members is another column.
        """
        indices = {old.identity: index for index, old in enumerate(self._channels)}
        moved = np.array([indices.get(channel.identity, -1) for channel in channels], np.intp)
        self._last = carried(self._last, moved)
        self._unknown = (moved < 0) | carried(self._unknown, moved)
        self._channels = channels
        self.gauges = np.array([c.kind is not Kind.COUNTER for c in channels], np.bool_)
        self._bounds = np.array(list(map(raw_bounds, channels)), np.int64).reshape(-1, 3).T
        self.rare = np.array([c.lane is Lane.RARE for c in channels], np.bool_) & ~self.gauges
        return moved

    def reset(self) -> None:
        """Forget the last row: the next differences are missing."""
        self._unknown[:] = True

    def advance(self, rows: Ints) -> tuple[Ints, Bools]:
        """Return the values of ``rows`` (ticks, channels) and the mask of the missing ones.

        The values of counters are increments, those of other channels are levels.
        """
        lowest, highest, unknown = self._bounds
        missing = (rows < lowest) | (rows > highest) | (rows == unknown)
        steps, step_missing = counter_increments(
            np.vstack([self._last, rows]), np.vstack([self._unknown, missing])
        )
        steps[:, self.gauges] = rows[:, self.gauges]
        step_missing[:, self.gauges] = missing[:, self.gauges]
        self._last, self._unknown = rows[-1], missing[-1].copy()
        return steps, step_missing


def carried(values: NDArray[Cell], indices: NDArray[np.intp]) -> NDArray[Cell]:
    """Return ``values`` at these earlier indices; zero where the index is -1."""
    moved = np.zeros(indices.size, values.dtype)
    remaining = indices >= 0
    moved[remaining] = values[indices[remaining]]
    return moved


class MessageBuilder:
    """Converts the raw slices of one collector, in order, to messages."""

    def __init__(self, origin: SliceOrigin) -> None:
        self._origin = origin
        self._table: ChannelTable | None = None
        self._sequence = -2
        self._fast, self._slow = _Readings(), _Readings()
        self._owed: Ints = np.zeros(0, np.int64)
        self._left: Ints = np.zeros(0, np.int64)
        self._waited: Ints = np.zeros(0, np.int64)

    @property
    def gauges(self) -> Bools:
        """Which fast channels are levels, as ``wire.encode`` needs it."""
        return self._fast.gauges

    def build(self, raw: RawSlice) -> Message:
        """Return the message of the next slice; no difference spans a gap in the sequence."""
        if raw.table is not self._table:
            self._switch(raw.table)
        if raw.sequence != self._sequence + 1:
            self._fast.reset()
            self._slow.reset()
        if raw.sequence - self._sequence > RARE_SLICES:  # what is left of then is outdated
            self._owed[:] = 0
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
        self._waited = carried(self._waited, moved)

    def _slow_values(self, readings: Ints) -> tuple[Ints, Bools]:
        steps, slow_missing = self._slow.advance(readings[None, :])
        if self._slow.rare.any():
            self._spread(steps[0], slow_missing[0])
        return steps[0], slow_missing[0]

    def _spread(self, steps: Ints, slow_missing: Bools) -> None:
        """Distribute the increment of a rare counter over the slices until its next read.

        The increment of ten seconds in one slice would look like a burst.  The sum is kept, and the
        first event of a small increment is in the first slice.  While the counter is missing
        nothing is sent, so nothing is deducted.  The rest waits for as many slices as it is
        distributed over, then it is outdated.
        """
        rare, known = self._slow.rare, self._slow.rare & ~slow_missing
        self._waited = np.where(rare & slow_missing & (self._owed != 0), self._waited + 1, 0)
        outdated = self._waited > RARE_SLICES
        self._owed[outdated] = self._left[outdated] = 0
        fresh = known & (steps > 0)
        self._owed[fresh] += steps[fresh]
        self._left[fresh] = RARE_SLICES
        paid = np.where(known, -(-self._owed // np.maximum(self._left, 1)), 0)
        self._owed -= paid
        self._left = np.where(known, np.maximum(self._left - 1, 0), self._left)
        steps[rare] = paid[rare]


class NumpyEncoder:
    """The encoder of a process without the native library."""

    def __init__(self, origin: SliceOrigin) -> None:
        self._builder = MessageBuilder(origin)

    def encode(self, raw: RawSlice) -> bytes:
        """Return the message of the next slice."""
        return encode(self._builder.build(raw), self._builder.gauges)
