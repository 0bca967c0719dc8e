"""One second of raw rows, as the sampler delivers it: plain integers in plain buffers.

This module does not need numpy: a collector with the native library never loads it.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

from reveal_contract.channels import ChannelTable

# the value of a reading that is missing; a counter that is exactly 2^63 loses this sample
MISSING = -(2**63)
# slices over which the increment of a rare counter is distributed: its lane's period in seconds
RARE_SLICES = 10

Cells = Sequence[int | None]


@dataclass(frozen=True)
class RawSlice:
    """The readings of one second of ticks.

    ``fast`` has int64 readings in row-major order: all fast channels of the table at tick 0, then
    at tick 1 and so on, one row for each element of ``lateness`` (microseconds).  ``slow`` has one
    reading for each slow channel.  ``MISSING`` marks values that were not read.  A kernel's u64
    above 2^63 keeps its bits, so that its differences stay correct.

    A sampler may reuse the buffers for the next slices: use ``copy`` to keep one.
    """

    sequence: int
    start_ns: int
    table: ChannelTable
    fast: array[int] | memoryview
    slow: array[int] | memoryview
    lateness: Sequence[int]

    def copy(self) -> RawSlice:
        """Return a copy with buffers of its own."""
        return replace(self, fast=_copied(self.fast), slow=_copied(self.slow))

    def last_tick(self) -> RawSlice:
        """Return a copy of the last tick alone."""
        start = max(0, len(self.lateness) - 1) * len(self.table.fast)
        return replace(
            self,
            fast=_copied(memoryview(self.fast)[start:]),
            slow=_copied(self.slow),
            lateness=self.lateness[-1:],
        )


@dataclass(frozen=True)
class SliceOrigin:
    """Fields that are the same for all slices of a collector."""

    node: str
    boot: bytes
    tick_us: int


def _copied(cells: array[int] | memoryview) -> array[int]:
    return array("q", memoryview(cells).tobytes())


def gather(row: array[int], cells: Cells) -> None:
    """Append the values of a source to a row of int64 (``array('q')``)."""
    try:
        row.fromlist(cast("list[int]", list(cells)))  # all of it or nothing
    except (TypeError, OverflowError):
        row.extend(MISSING if cell is None else signed(cell) for cell in cells)


def signed(value: int) -> int:
    """Return the int64 with the same lowest 64 bits."""
    bits = value & 0xFFFF_FFFF_FFFF_FFFF
    return bits - (1 << 64) if bits >> 63 else bits
