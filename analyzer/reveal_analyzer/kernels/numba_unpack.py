"""Values of a message in compiled loops: same result as ``wire.unpack``."""

from __future__ import annotations

from typing import Any

import numpy as np

from reveal_analyzer.arrays import Bytes, Unsigned
from reveal_analyzer.numba_jit import inlined, kernel
from reveal_contract.envelope import Body, Head, sizes
from reveal_contract.wire import Bools, Ints, Values, bits


def unpack(head: Head, body: Body, levels: Bools) -> Values:
    """Return the values of a message; see ``wire.unpack``."""
    parts = sizes(head, body.flags, body.first_planes, body.step_planes)
    fast = np.empty((head.ticks, head.width), np.int64)
    slow = np.empty(head.slow_width, np.int64)
    # most steps take one or two bytes, and 32-bit lanes are joined four times as fast
    data = np.frombuffer(body.data, np.uint8)
    steps: Unsigned = np.empty(fast[1:].size, np.uint32 if body.step_planes <= 4 else np.uint64)
    _unpack(data[parts[0] :], body.first_planes, body.step_planes, levels, steps, fast, slow)
    slow_start = len(body.data) - parts[4]
    fast_bits = bytes(body.data[slow_start - parts[3] : slow_start])
    slow_bits = bytes(body.data[slow_start:])
    return fast, slow, bits(fast_bits, fast.shape), bits(slow_bits, slow.shape)


@kernel
def _unpack(
    data: Bytes,
    first_planes: int,
    step_planes: int,
    levels: Bools,
    steps: Unsigned,
    fast: Ints,
    slow: Ints,
) -> None:
    """Decode first values, then steps; ``steps`` is scratch space for their zigzag codes."""
    width, firsts = fast.shape[1], np.empty(fast.shape[1] + slow.size, np.uint64)
    _gather(data, first_planes, firsts)
    for channel in range(width):
        fast[0, channel] = _signed(firsts[channel])
    for channel in range(slow.size):
        slow[channel] = _signed(firsts[width + channel])
    _gather(data[first_planes * firsts.size :], step_planes, steps)
    following = len(fast) - 1
    for tick in range(following):
        row = fast[tick + 1]
        for channel in range(width):
            row[channel] = _signed(steps[channel * following + tick])
    for channel in range(levels.size):
        if levels[channel]:
            for tick in range(following):
                fast[tick + 1, channel] += fast[tick, channel]


@inlined
def _gather(data: Bytes, planes: int, zigzag: Unsigned) -> None:
    """Join the byte planes of integers: all lowest bytes come first, then the next."""
    count = zigzag.size
    zigzag[:] = 0
    for plane in range(planes):
        bytes_of = data[plane * count : (plane + 1) * count]
        shift = zigzag.dtype.type(8 * plane)
        for index in range(count):
            zigzag[index] |= zigzag.dtype.type(bytes_of[index]) << shift


@inlined
def _signed(zigzag: np.unsignedinteger[Any]) -> np.int64:
    unit = type(zigzag)(1)
    return np.int64(zigzag >> unit) ^ -np.int64(zigzag & unit)
