"""From rows of raw integers to a wire message: counter differences, levels, what is missing.

The tick thread only gathers; everything here runs once a slice, off that thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Kind, Lane
from reveal_contract.wire import Bools, Ints, Message

RARE_SLICES = 10
Cells = Sequence[int | None]
Cell = TypeVar("Cell", np.int64, np.bool_)


@dataclass(frozen=True)
class RawSlice:
    """What one second of ticks gave, as read.

    ``fast`` holds one block a source, in the order of the table: its values of tick 0, then
    of tick 1 and so on; ``slow`` one value a slow channel.  ``lateness`` is in microseconds.
    """

    sequence: int
    start_ns: int
    table: ChannelTable
    fast: Sequence[Cells]
    slow: Cells
    lateness: Sequence[int]


@dataclass(frozen=True)
class Origin:
    """Whose slices these are; the same for all slices of a collector."""

    node: str
    boot: bytes
    tick_us: int


def to_columns(cells: Cells) -> tuple[Ints, Bools | None]:
    """One block as int64 with a mask of what is missing (``None``: nothing is).

    A kernel's u64 above 2^63 keeps its bits, so that differences of it stay right.
    """
    try:
        return np.array(cells, np.int64), None
    except (TypeError, OverflowError):
        missing = np.array([cell is None for cell in cells], np.bool_)
        bits = [0 if cell is None else cell & 0xFFFF_FFFF_FFFF_FFFF for cell in cells]
        return np.array(bits, np.uint64).view(np.int64), missing


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

    def advance(self, rows: Ints, missing: Bools) -> tuple[Ints, Bools]:
        """Values of ``rows`` (ticks, channels): steps of counters, levels of all others."""
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


class SliceMaker:
    """Turns the raw slices of one collector, in order, into messages."""

    def __init__(self, origin: Origin) -> None:
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
        self._sequence = raw.sequence
        fast, fast_missing = self._fast.advance(*self._grid(raw))
        slow, slow_missing = self._slow_values(raw.slow)
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

    def _grid(self, raw: RawSlice) -> tuple[Ints, Bools]:
        ticks, width = len(raw.lateness), len(raw.table.fast)
        rows = np.empty((ticks, width), np.int64)
        missing = np.zeros((ticks, width), np.bool_)
        at = 0
        for cells in raw.fast:
            values, gone = to_columns(cells)
            end = at + len(cells) // ticks
            rows[:, at:end] = values.reshape(ticks, -1)
            if gone is not None:
                missing[:, at:end] = gone.reshape(ticks, -1)
            at = end
        return rows, missing

    def _slow_values(self, cells: Cells) -> tuple[Ints, Bools]:
        values, gone = to_columns(cells)
        missing = np.zeros(values.size, np.bool_) if gone is None else gone
        steps, lost = self._slow.advance(values[None, :], missing[None, :])
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
