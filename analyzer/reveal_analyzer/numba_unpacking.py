"""The values of a message by compiled loops: those that ``wire.unpack`` finds."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.compiling import kernel
from reveal_contract.envelope import Body, Head, sizes
from reveal_contract.wire import Bools, Ints, Values, bits

Bytes = NDArray[np.uint8]
Unsigned = NDArray[np.unsignedinteger[Any]]


def unpack(head: Head, body: Body, levels: Bools) -> Values:
    """As ``wire.unpack``."""
    parts = sizes(head, body.flags, body.first_planes, body.step_planes)
    held = np.frombuffer(body.data, np.uint8)
    fast = np.empty((head.ticks, head.width), np.int64)
    slow = np.empty(head.slow_width, np.int64)
    _firsts(held[parts[0] :], body.first_planes, fast, slow)
    steps = held[parts[0] + parts[1] :]
    # most steps take a byte or two: what is narrow is put together four times as fast
    if body.step_planes <= 4:
        _steps(steps, body.step_planes, np.zeros(fast[1:].size, np.uint32), levels, fast)
    else:
        _steps(steps, body.step_planes, np.zeros(fast[1:].size, np.uint64), levels, fast)
    slow_at = len(body.data) - parts[4]
    fast_bits = bytes(body.data[slow_at - parts[3] : slow_at])
    slow_bits = bytes(body.data[slow_at:])
    return fast, slow, bits(fast_bits, fast.shape), bits(slow_bits, slow.shape)


@kernel
def _firsts(held: Bytes, planes: int, fast: Ints, slow: Ints) -> None:
    width, count = fast.shape[1], fast.shape[1] + slow.size
    for at in range(count):
        zigzag = np.uint64(0)
        for plane in range(planes):
            zigzag |= np.uint64(held[plane * count + at]) << np.uint64(8 * plane)
        value = np.int64(zigzag >> np.uint64(1)) ^ -np.int64(zigzag & np.uint64(1))
        if at < width:
            fast[0, at] = value
        else:
            slow[at - width] = value


@kernel
def _steps(held: Bytes, planes: int, zigzag: Unsigned, levels: Bools, fast: Ints) -> None:
    """Tick after tick of all but the first; ``zigzag`` is zero, and as wide as they need."""
    count, steps = zigzag.size, len(fast) - 1
    for plane in range(planes):
        part = held[plane * count : (plane + 1) * count]
        shift = zigzag.dtype.type(8 * plane)
        for at in range(count):
            zigzag[at] |= zigzag.dtype.type(part[at]) << shift
    one = zigzag.dtype.type(1)
    for tick in range(steps):
        before, row = fast[tick], fast[tick + 1]
        for channel in range(row.size):
            coded = zigzag[channel * steps + tick]
            value = np.int64(coded >> one) ^ -np.int64(coded & one)
            row[channel] = value + before[channel] if levels.size and levels[channel] else value
