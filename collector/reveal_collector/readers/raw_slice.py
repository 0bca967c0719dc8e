"""One second of raw rows, as the sampler hands it over: plain integers in plain buffers.

Nothing here needs numpy: a collector with the native library never loads it.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

from reveal_contract.channels import ChannelTable

# what stands where nothing was read; a counter that truly reads 2^63 loses this one sample
MISSING = -(2**63)
# over how many slices the step of a rare counter is paid out: its lane's period in seconds
RARE_SLICES = 10

Cells = Sequence[int | None]


@dataclass(frozen=True)
class RawSlice:
    """What one second of ticks gave, as read.

    ``fast`` are int64 readings, row-major: all fast channels of the table at tick 0, then at
    tick 1 and so on, one row for each of ``lateness`` (microseconds); ``slow`` one reading a
    slow channel.  ``MISSING`` stands for what was not read; a kernel's u64 above 2^63 keeps
    its bits, so that differences of it stay right.

    A sampler may write the next seconds into the same buffers: who keeps one takes ``copy``.
    """

    sequence: int
    start_ns: int
    table: ChannelTable
    fast: array[int] | memoryview
    slow: array[int] | memoryview
    lateness: Sequence[int]

    def copy(self) -> RawSlice:
        """The same in buffers of its own."""
        return replace(self, fast=_copied(self.fast), slow=_copied(self.slow))

    def last_tick(self) -> RawSlice:
        """Its last tick alone, in buffers of its own."""
        start = max(0, len(self.lateness) - 1) * len(self.table.fast)
        return replace(
            self,
            fast=_copied(memoryview(self.fast)[start:]),
            slow=_copied(self.slow),
            lateness=self.lateness[-1:],
        )


@dataclass(frozen=True)
class SliceOrigin:
    """Whose slices these are; the same for all slices of a collector."""

    node: str
    boot: bytes
    tick_us: int


def _copied(cells: array[int] | memoryview) -> array[int]:
    return array("q", memoryview(cells).tobytes())


def gather(row: array[int], cells: Cells) -> None:
    """Append what a source read to a row of int64 (``array('q')``)."""
    try:
        row.fromlist(cast("list[int]", list(cells)))  # all of it or nothing
    except (TypeError, OverflowError):
        row.extend(MISSING if cell is None else signed(cell) for cell in cells)


def signed(value: int) -> int:
    """The int64 with the same lowest 64 bits."""
    bits = value & 0xFFFF_FFFF_FFFF_FFFF
    return bits - (1 << 64) if bits >> 63 else bits
