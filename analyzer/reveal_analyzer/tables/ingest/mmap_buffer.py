"""Buffer for any number of rows in bounded memory: beyond a limit rows go to a mapped file.

The files have no name and end with the process; the kernel keeps as much of them in memory as there
is room for.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from typing import BinaryIO, Literal

import numpy as np

from reveal_analyzer.arrays import Floats, Indices
from reveal_analyzer.tables.ingest.open import TableFileError

MEMORY_BYTES = 1 << 29
_BLOCK_BYTES = 64 << 20


class RowBuffer:
    """Takes blocks of rows (any number, ``width``) and returns selected rows and columns of all."""

    def __init__(self, width: int, memory_bytes: int = MEMORY_BYTES) -> None:
        self.width = width
        self.rows = 0
        self._memory_bytes = memory_bytes
        self._allocated = 0  # of what was selected
        self._blocks: list[Floats] = []
        self._file: BinaryIO | None = None

    def append(self, block: Floats) -> None:
        """Add rows; raises ``TableFileError`` if the disk is full."""
        self.rows += len(block)
        if self._file is None and 8 * self.rows * self.width > self._memory_bytes:
            self._file = _unnamed()
            for kept in self._blocks:
                _write(self._file, kept)
            self._blocks.clear()
        if self._file is None:
            self._blocks.append(block)
        else:
            _write(self._file, block)

    def select(self, rows: Indices, columns: Indices) -> Floats:
        """Return rows and columns by number, in this order; a mapped file if there are too many.

        The caller owns the array, which may be a part of the buffer: select no value twice.  In a
        mapped file each column is contiguous: it is read by columns, and a pass over the whole file
        for a few of them would take minutes.
        """
        in_order = compact(columns)
        if self._file is None and _all(rows, self.rows) and isinstance(in_order, slice):
            return self._whole()[:, in_order]
        out = self.allocate((len(rows), len(columns)))
        for part, block in self.blocks(rows, columns):
            out[part] = block
        return out

    def blocks(self, rows: Indices, columns: Indices) -> Iterator[tuple[slice, Floats]]:
        """Yield the same in blocks, each with the part of ``rows`` that it has."""
        start = 0
        for block in _selected(self._whole(), rows, columns):
            yield slice(start, start + len(block)), block
            start += len(block)

    def allocate(self, shape: tuple[int, int]) -> Floats:
        """Return an array of any content; a mapped file if all arrays together are too large."""
        size = 8 * shape[0] * shape[1]
        self._allocated += size
        if self._allocated <= self._memory_bytes:
            return np.empty(shape)
        return _mapped(_unnamed(size), shape, "F")

    def _whole(self) -> Floats:
        if self._file is not None:
            return _mapped(self._file, (self.rows, self.width), "C")
        if len(self._blocks) != 1:
            joined, first = np.empty((self.rows, self.width)), 0
            self._blocks.reverse()
            while self._blocks:  # each is freed once it is copied: all of them fit in memory once
                block = self._blocks.pop()
                joined[first : first + len(block)] = block
                first += len(block)
            self._blocks = [joined]
        return self._blocks[0]


def _all(chosen: Indices, count: int) -> bool:
    return len(chosen) == count and bool((chosen == np.arange(count)).all())


def compact(numbers: Indices) -> slice | Indices:
    """Return numbers in order as a slice, which copies nothing, and others as they are."""
    if not len(numbers):
        return numbers
    first, end = int(numbers[0]), int(numbers[-1]) + 1
    rising = end - first == len(numbers) and bool((np.diff(numbers) == 1).all())
    return slice(first, end) if rising else numbers


def _selected(whole: Floats, rows: Indices, columns: Indices) -> Iterator[Floats]:
    """Yield the selection in blocks, as a fancy index of everything would need twice the memory."""
    step = max(1, _BLOCK_BYTES // max(1, 8 * whole.shape[1]))
    chosen = compact(columns)
    for first in range(0, len(rows), step):
        yield whole[compact(rows[first : first + step])][:, chosen]


def _unnamed(size: int = 0) -> BinaryIO:
    """Return a new file with ``size`` allocated bytes.

    They are allocated now, as writing to a map on a full disk would end the process.
    """
    try:
        file = tempfile.TemporaryFile(prefix="reveal-")  # noqa: SIM115 - lives on in a map
        if size:
            os.posix_fallocate(file.fileno(), 0, size)
    except OSError as error:
        raise _full(error) from None
    return file


def _write(file: BinaryIO, block: Floats) -> None:
    try:
        file.write(np.ascontiguousarray(block).data)
        file.flush()
    except OSError as error:
        raise _full(error) from None


def _full(error: OSError) -> TableFileError:
    return TableFileError(
        "a table of this size needs a temporary file, and none can be written to"
        f" {tempfile.tempdir or 'any folder'}"
        f" ({error.strerror}): set TMPDIR to a folder with more room"
    )


def _mapped(file: BinaryIO, shape: tuple[int, int], order: Literal["C", "F"]) -> Floats:
    return np.memmap(file, np.float64, "r+", shape=shape, order=order)
