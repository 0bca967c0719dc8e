"""Integers as zigzag numbers cut into byte planes, which compress well: pure.

The first plane holds the lowest byte of all values, the next one the byte above it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def filled(levels: NDArray[np.int64], missing: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return levels, one row for each time, with gaps filled by the last one: they take no bytes.

    Before the first value they are 0.
    """
    ticks = np.arange(len(levels))[:, None]
    last = np.maximum.accumulate(np.where(missing, -1, ticks), axis=0)
    latest = np.take_along_axis(levels, np.maximum(last, 0), axis=0)
    return np.where(last < 0, 0, latest)


def to_planes(values: NDArray[np.int64]) -> tuple[int, bytes]:
    """Return how many byte planes the largest value needs, and all of them as zigzag integers."""
    zigzag = ((values << 1) ^ (values >> 63)).view(np.uint64)
    largest = int(zigzag.max(initial=0))
    planes = (largest.bit_length() + 7) // 8
    split = zigzag.view(np.uint8).reshape(-1, 8)
    return planes, np.ascontiguousarray(split[:, :planes].T).tobytes()


def from_planes(data: bytes, count: int, planes: int) -> NDArray[np.signedinteger]:
    """Return the values in the narrowest integers for so many planes: most steps take one."""
    width = next(size for size in (1, 2, 4, 8) if planes <= size)
    split = np.zeros((count, width), np.uint8)
    for plane, values_of in enumerate(np.frombuffer(data, np.uint8).reshape(planes, count)):
        split[:, plane] = values_of  # twice as fast as all planes transposed
    zigzag = split.view(f"<u{width}").ravel()
    unit = zigzag.dtype.type(1)
    values: NDArray[np.signedinteger] = ((zigzag >> unit) ^ -(zigzag & unit)).view(f"<i{width}")
    return values
