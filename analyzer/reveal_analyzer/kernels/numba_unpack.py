"""The values of a message by compiled loops: those that ``wire.unpack`` finds."""

from __future__ import annotations

from typing import Any

import numpy as np

from reveal_analyzer.arrays import Bytes, Unsigned
from reveal_analyzer.numba_jit import kernel, part
from reveal_contract.envelope import Body, Head, sizes
from reveal_contract.wire import Bools, Ints, Values, bits


def unpack(head: Head, body: Body, levels: Bools) -> Values:
    """As ``wire.unpack``."""
    parts = sizes(head, body.flags, body.first_planes, body.step_planes)
    fast = np.empty((head.ticks, head.width), np.int64)
    slow = np.empty(head.slow_width, np.int64)
    # most steps take a byte or two: what is narrow is put together four times as fast
    held = np.frombuffer(body.data, np.uint8)
    steps: Unsigned = np.empty(fast[1:].size, np.uint32 if body.step_planes <= 4 else np.uint64)
    _unpack(held[parts[0] :], body.first_planes, body.step_planes, levels, steps, fast, slow)
    slow_at = len(body.data) - parts[4]
    fast_bits = bytes(body.data[slow_at - parts[3] : slow_at])
    slow_bits = bytes(body.data[slow_at:])
    return fast, slow, bits(fast_bits, fast.shape), bits(slow_bits, slow.shape)


@kernel
def _unpack(
    held: Bytes,
    first_planes: int,
    step_planes: int,
    levels: Bools,
    steps: Unsigned,
    fast: Ints,
    slow: Ints,
) -> None:
    """Firsts, then steps; ``steps`` is room for their zigzags."""
    width, firsts = fast.shape[1], np.empty(fast.shape[1] + slow.size, np.uint64)
    _gather(held, first_planes, firsts)
    for channel in range(width):
        fast[0, channel] = _signed(firsts[channel])
    for channel in range(slow.size):
        slow[channel] = _signed(firsts[width + channel])
    _gather(held[first_planes * firsts.size :], step_planes, steps)
    following = len(fast) - 1
    for tick in range(following):
        row = fast[tick + 1]
        for channel in range(width):
            row[channel] = _signed(steps[channel * following + tick])
    for channel in range(levels.size):
        if levels[channel]:
            for tick in range(following):
                fast[tick + 1, channel] += fast[tick, channel]


@part
def _gather(held: Bytes, planes: int, zigzag: Unsigned) -> None:
    """The integers whose byte planes begin here: all lowest bytes, then the next."""
    count = zigzag.size
    zigzag[:] = 0
    for plane in range(planes):
        bytes_of = held[plane * count : (plane + 1) * count]
        shift = zigzag.dtype.type(8 * plane)
        for at in range(count):
            zigzag[at] |= zigzag.dtype.type(bytes_of[at]) << shift


@part
def _signed(zigzag: np.unsignedinteger[Any]) -> np.int64:
    one = type(zigzag)(1)
    return np.int64(zigzag >> one) ^ -np.int64(zigzag & one)
