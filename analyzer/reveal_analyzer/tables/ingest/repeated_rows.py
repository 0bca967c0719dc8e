"""Rows that a file has more than once, as where logs that overlap were joined."""

from __future__ import annotations

import numpy as np

from reveal_analyzer.arrays import Bools, Ints
from reveal_analyzer.tables.ingest.mmap_buffer import RowBuffer

_SEED = 1  # any: the same input gives the same output


def repeated_rows(times: Ints, buffer: RowBuffer) -> Bools:
    """Return which rows have the time and all numbers of a row before the clock fell.

    Rows of the same time that follow each other are samples of their own, however alike.
    """
    sums = _sums(buffer)
    runs = np.cumsum(np.diff(times, prepend=times[:1]) < 0)
    order = np.lexsort((runs, sums, times))
    same = (np.diff(times[order]) == 0) & (sums[order][1:] == sums[order][:-1])
    repeated = np.zeros(len(times), np.bool_)
    repeated[order[1:]] = same & (np.diff(runs[order]) > 0)
    return repeated


def _sums(buffer: RowBuffer) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """Return a number for each row that other numbers in it change."""
    weights = np.random.default_rng(_SEED).integers(1, 2**63, buffer.width, np.uint64) | np.uint64(
        1
    )
    sums = np.zeros(buffer.rows, np.uint64)
    for part, block in buffer.blocks(np.arange(buffer.rows), np.arange(buffer.width)):
        sums[part] = np.ascontiguousarray(block).view(np.uint64) @ weights
    return sums
