"""Comparator network that finds the middle two of a given number of values."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from reveal_analyzer.arrays import Ints


@lru_cache(maxsize=16)
def middle_network(count: int) -> Ints:
    """Return comparisons (n, 2), each of an index with a later one that holds the larger value.

    Batcher's odd-even merge sort ("Sorting networks and their applications", 1968) without
    comparisons that do not affect the middle.  It sorts a power of two; indices beyond ``count``
    would hold values larger than all others, which never move.
    """
    size = 1 << max(count - 1, 0).bit_length()
    needed = {(count - 1) // 2, count // 2}
    kept = []
    for low, high in reversed(list(_sorting(0, size))):
        if high < count and (low in needed or high in needed):
            needed |= {low, high}
            kept.append((low, high))
    return np.array(kept[::-1], np.int64).reshape(-1, 2)


def _sorting(first: int, count: int) -> Iterator[tuple[int, int]]:
    if count > 1:
        half = count // 2
        yield from _sorting(first, half)
        yield from _sorting(first + half, half)
        yield from _merging(first, count, 1)


def _merging(first: int, count: int, step: int) -> Iterator[tuple[int, int]]:
    """Merge the sorted halves of every ``step``-th of ``count`` values."""
    if 2 * step >= count:
        yield first, first + step
        return
    yield from _merging(first, count, 2 * step)
    yield from _merging(first + step, count, 2 * step)
    for low in range(first + step, first + count - step, 2 * step):
        yield low, low + step
