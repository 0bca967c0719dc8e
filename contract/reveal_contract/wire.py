"""Wire v1: one slice of one node as one stateless message.

Layout, little endian::

    0   3  magic "RVL"           3   1  version (1)
    4   4  crc32 of all that follows
    8   1  flags: 1 = fast values missing, 2 = slow values missing
    9   1  ticks in the slice    10  2  length of the node's name
    12 16  boot id              28   8  sequence: the slice's number since boot
    36  8  start, ns since the epoch (first tick)
    44  4  tick period, us      48   8  key of the channel table
    56  4  fast channels        60   4  slow channels
    64  1  byte planes of the firsts   65  1  byte planes of the steps
    66  .. node's name (UTF-8), then one zstd frame

The frame holds, in this order: the lateness of every tick (int32, us), the *firsts* (one
value of every fast channel, then every slow channel), the *steps* (the other values of the
fast channels, channel-major), and, where flagged, one bit per value that is missing.
Firsts and steps are zigzag integers cut into byte planes: all lowest bytes, then the next.

A counter's values are its differences from the tick before, a gauge's first value is the
level and the others are differences, so a message needs none before it.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reveal_contract.byte_planes import filled, from_planes, to_planes
from reveal_contract.channels import ChannelTable
from reveal_contract.envelope import (
    FAST_MISSING,
    MAX_NODE_BYTES,
    SLOW_MISSING,
    Body,
    Head,
    WireError,
    peek,
    refuse_unencodable,
    seal,
    sizes,
    unseal,
)
from reveal_contract.metric import Kind

__all__ = [
    "MAX_NODE_BYTES", "Bools", "Ints", "Message", "Unpack", "Values", "WireError",
    "bits", "decode", "encode", "gauges", "peek", "unpack",
]  # fmt: skip

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
_STEPS: Bools = np.zeros(0, np.bool_)


@dataclass(frozen=True, slots=True)
class Message:
    """One slice of one node, raw integers as counted by the kernel.

    ``fast`` is (ticks, fast channels), ``slow`` (slow channels,): for a counter the
    difference from the tick before, for a gauge the level.  Where ``fast_missing`` or
    ``slow_missing`` is true nothing was read and the value is meaningless.  ``lateness`` is
    each tick's delay behind its planned time, in microseconds.
    """

    node: str
    boot: bytes
    sequence: int
    start_ns: int
    tick_us: int
    table: bytes
    fast: Ints
    slow: Ints
    fast_missing: Bools
    slow_missing: Bools
    lateness: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))


Values = tuple[Ints, Ints, Bools, Bools]  # fast and slow ones, and which of them are missing
Unpack = Callable[[Head, Body, Bools], Values]


def gauges(table: ChannelTable) -> Bools:
    """Return which fast channels of a table are levels (gauges and states)."""
    return np.array([channel.kind is not Kind.COUNTER for channel in table.fast], np.bool_)


def encode(message: Message, gauges: Bools) -> bytes:
    """Return the bytes of a message; ``gauges`` says which fast channels are levels."""
    head = _head(message)
    refuse_unencodable(head)
    _refuse_mismatched(message)
    steps = _as_steps(message.fast, message.fast_missing, gauges)
    firsts = np.concatenate([steps[:1].ravel(), np.where(message.slow_missing, 0, message.slow)])
    first_planes, first_bytes = to_planes(firsts)
    step_planes, step_bytes = to_planes(np.ascontiguousarray(steps[1:].T).ravel())
    flags, masks = _masks(message)
    data = b"".join([_lateness(message, head.ticks), first_bytes, step_bytes, masks])
    return seal(head, Body(flags, first_planes, step_planes, data))


def unpack(head: Head, body: Body, levels: Bools) -> Values:
    """Return the values in a body; this is the reference, in numpy.

    ``levels`` says which fast channels to turn back into levels; none if it is empty.
    """
    ticks, width = head.ticks, head.width
    firsts, steps = width + head.slow_width, width * (ticks - 1)
    parts = sizes(head, body.flags, body.first_planes, body.step_planes)
    _, first_bytes, step_bytes, fast_bits, slow_bits = _split(bytes(body.data), parts)
    first = from_planes(first_bytes, firsts, body.first_planes)
    fast = np.empty((ticks, width), np.int64)
    fast[0] = first[:width]
    fast[1:] = from_planes(step_bytes, steps, body.step_planes).reshape(width, ticks - 1).T
    if levels.size:
        _levels(fast, levels)
    slow = first[width:].astype(np.int64)
    return fast, slow, bits(fast_bits, fast.shape), bits(slow_bits, slow.shape)


def decode(data: bytes, gauges: Bools | None = None, unpack: Unpack = unpack) -> Message:
    """Return the message in these bytes.

    ``gauges`` (fast channels) turns the steps of gauges back into levels; without it the steps
    stay as they were sent.  ``unpack`` does the arithmetic.  Raises ``WireError`` for anything
    that ``encode`` did not write, before allocating more than the message claims.
    """
    head, body = unseal(data)
    if gauges is not None and gauges.size != head.width:
        raise WireError(f"table has {gauges.size} fast channels, message {head.width}")
    levels = _STEPS if gauges is None else gauges
    fast, slow, fast_missing, slow_missing = unpack(head, body, levels)
    return Message(
        node=head.node, boot=head.boot, sequence=head.sequence, start_ns=head.start_ns,
        tick_us=head.tick_us, table=head.table,
        fast=fast, slow=slow, fast_missing=fast_missing, slow_missing=slow_missing,
        lateness=np.frombuffer(body.data[: 4 * head.ticks], "<i4"),
    )  # fmt: skip


def _head(message: Message) -> Head:
    ticks, width = message.fast.shape
    return Head(
        message.node, message.boot, message.sequence, message.start_ns, message.tick_us,
        message.table, ticks, width, message.slow.size,
    )  # fmt: skip


def _refuse_mismatched(message: Message) -> None:
    if message.fast_missing.shape != message.fast.shape or (
        message.slow_missing.shape != message.slow.shape
    ):
        raise WireError("masks of missing values are not of the shape of the values")


def _as_steps(fast: Ints, missing: Bools, gauges: Bools) -> Ints:
    """Return counters as they are, gauges as first level and differences, with gaps filled."""
    steps = np.where(missing, 0, fast) if missing.any() else fast.copy()
    if missing[:, gauges].any():
        steps[:, gauges] = filled(fast[:, gauges], missing[:, gauges])
    steps[1:, gauges] -= steps[:-1, gauges].copy()
    return steps


def _levels(fast: Ints, gauges: Bools) -> None:
    levels = np.flatnonzero(gauges)
    fast[:, levels] = np.add.accumulate(fast.take(levels, axis=1), axis=0)


def _masks(message: Message) -> tuple[int, bytes]:
    flags, parts = 0, []
    if message.fast_missing.any():
        flags |= FAST_MISSING
        parts.append(np.packbits(message.fast_missing.ravel()).tobytes())
    if message.slow_missing.any():
        flags |= SLOW_MISSING
        parts.append(np.packbits(message.slow_missing).tobytes())
    return flags, b"".join(parts)


def bits(data: bytes, shape: tuple[int, ...]) -> Bools:
    """Return the mask in these bytes, one bit for each value; no bytes mean no missing value."""
    if not data:
        return np.zeros(shape, np.bool_)
    count = math.prod(shape)
    bits = np.unpackbits(np.frombuffer(data, np.uint8), count=count)
    return bits.astype(np.bool_).reshape(shape)


def _lateness(message: Message, ticks: int) -> bytes:
    lateness = message.lateness if message.lateness.size else np.zeros(ticks, np.int32)
    if lateness.shape != (ticks,):
        raise WireError(f"lateness of {lateness.shape[0]} ticks in a slice of {ticks}")
    return lateness.astype("<i4").tobytes()


def _split(body: bytes, sizes: list[int]) -> list[bytes]:
    ends = itertools.accumulate(sizes)
    return [body[end - size : end] for end, size in zip(ends, sizes, strict=True)]
