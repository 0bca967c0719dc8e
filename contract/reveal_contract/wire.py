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

import struct
import zlib
from dataclasses import dataclass, field

import numpy as np
import zstandard
from numpy.typing import NDArray

from reveal_contract.channels import MAX_CHANNELS, ChannelTable
from reveal_contract.metric import Kind

VERSION = 1
MAX_TICKS = 100
MAX_NODE_BYTES = 253  # a Kubernetes node name (RFC 1123 subdomain)
MAX_VALUES = 1 << 20  # ticks x fast channels: zeros cost nothing to send, but 8 bytes to hold
_MAGIC = b"RVL"
_HEAD = struct.Struct("<3sBI")
_FIELDS = struct.Struct("<BBH16sQqI8sIIBB")
_NAME_AT = _HEAD.size + _FIELDS.size
_FAST_MISSING, _SLOW_MISSING = 1, 2
_LEVEL = 1

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class WireError(ValueError):
    """These bytes are not a message of this version; the text says what is wrong."""


@dataclass(frozen=True)
class Message:
    """One slice of one node, raw integers as counted by the kernel.

    ``fast`` is (ticks, fast channels), ``slow`` (slow channels,): for a counter the
    difference from the tick before, for a gauge the level.  Where ``fast_missing`` or
    ``slow_missing`` is true nothing was read and the value is meaningless.  ``lateness`` is
    each tick's delay behind its place on the grid, in microseconds.
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


def gauges(table: ChannelTable) -> Bools:
    """Which fast channels of a table are levels (gauges and states), as ``encode`` needs it."""
    return np.array([channel.kind is not Kind.COUNTER for channel in table.fast], np.bool_)


def encode(message: Message, gauges: Bools) -> bytes:
    """The bytes of a message; ``gauges`` tells which fast channels are levels, not counters."""
    ticks, width = message.fast.shape
    node = message.node.encode()
    _refuse_unencodable(message, ticks, node)
    steps = _as_steps(message.fast, message.fast_missing, gauges)
    firsts = np.concatenate([steps[:1].ravel(), np.where(message.slow_missing, 0, message.slow)])
    first_planes, first_bytes = _planes(firsts)
    step_planes, step_bytes = _planes(np.ascontiguousarray(steps[1:].T).ravel())
    flags, masks = _masks(message)
    lateness = _lateness(message, ticks)
    body = zstandard.ZstdCompressor(level=_LEVEL).compress(
        b"".join([lateness, first_bytes, step_bytes, masks])
    )
    try:
        head = _FIELDS.pack(
            flags, ticks, len(node), message.boot, message.sequence, message.start_ns,
            message.tick_us, message.table, width, message.slow.size, first_planes, step_planes,
        )  # fmt: skip
    except struct.error as error:
        raise WireError(f"sequence, start or tick is out of range: {error}") from None
    tail = head + node + body
    return _HEAD.pack(_MAGIC, VERSION, zlib.crc32(tail)) + tail


def decode(data: bytes, gauges: Bools | None = None) -> Message:
    """The message in these bytes.

    ``gauges`` (fast channels) turns the steps of gauges back into levels; without it the steps
    stay as they were sent.  Raises ``WireError`` for anything that ``encode`` did not write,
    before allocating more than the message claims.
    """
    _check(data)
    return _decode_checked(data, gauges)


def peek(data: bytes) -> tuple[str, bytes]:
    """Node and table key of a message, its body left alone; ``WireError`` as from ``decode``."""
    _check(data)
    length = int.from_bytes(data[10:12], "little")
    return _node(data[_NAME_AT : _NAME_AT + length]), data[48:56]


def _check(data: bytes) -> None:
    if len(data) < _NAME_AT:
        raise WireError(f"message of {len(data)} bytes is shorter than its header")
    magic, version, crc = _HEAD.unpack_from(data)
    if magic != _MAGIC:
        raise WireError("message does not begin with the magic of a Reveal slice")
    if version != VERSION:
        raise WireError(f"message is of wire version {version}, this reader knows {VERSION}")
    if zlib.crc32(memoryview(data)[_HEAD.size :]) != crc:
        raise WireError("message is damaged: its checksum does not match")


def _decode_checked(data: bytes, gauges: Bools | None) -> Message:
    (
        flags, ticks, name_length, boot, sequence, start_ns,
        tick_us, table, width, slow_width, first_planes, step_planes,
    ) = _FIELDS.unpack_from(data, _HEAD.size)  # fmt: skip
    if not _fits(ticks, width, slow_width) or not 1 <= name_length <= MAX_NODE_BYTES:
        raise WireError(f"message claims {ticks} ticks of {width} + {slow_width} channels")
    if first_planes > 8 or step_planes > 8 or flags > 3:
        raise WireError("message has impossible plane counts or flags")
    firsts, steps = width + slow_width, width * (ticks - 1)
    sizes = [
        4 * ticks,
        firsts * first_planes,
        steps * step_planes,
        (width * ticks + 7) // 8 if flags & _FAST_MISSING else 0,
        (slow_width + 7) // 8 if flags & _SLOW_MISSING else 0,
    ]
    lateness, first_bytes, step_bytes, fast_bits, slow_bits = _cut(
        _decompress(data[_NAME_AT + name_length :], sum(sizes)), sizes
    )
    first = _unplane(first_bytes, firsts, first_planes)
    fast = np.empty((ticks, width), np.int64)
    fast[0] = first[:width]
    fast[1:] = _unplane(step_bytes, steps, step_planes).reshape(width, ticks - 1).T
    if gauges is not None:
        _levels(fast, gauges)
    return Message(
        node=_node(data[_NAME_AT : _NAME_AT + name_length]),
        boot=boot, sequence=sequence, start_ns=start_ns, tick_us=tick_us, table=table,
        fast=fast, slow=first[width:],
        fast_missing=_bits(fast_bits, width * ticks).reshape(ticks, width),
        slow_missing=_bits(slow_bits, slow_width),
        lateness=np.frombuffer(lateness, "<i4"),
    )  # fmt: skip


def _refuse_unencodable(message: Message, ticks: int, node: bytes) -> None:
    width, slow_width = message.fast.shape[1], message.slow.size
    if not _fits(ticks, width, slow_width):
        raise WireError(f"a slice cannot hold {ticks} ticks of {width} + {slow_width} channels")
    if message.fast_missing.shape != message.fast.shape or (
        message.slow_missing.shape != message.slow.shape
    ):
        raise WireError("masks of missing values are not of the shape of the values")
    if not 1 <= len(node) <= MAX_NODE_BYTES:
        raise WireError(f"node name {message.node!r} is not of 1 to {MAX_NODE_BYTES} bytes")
    if len(message.boot) != 16 or len(message.table) != 8:
        raise WireError("boot id takes 16 bytes and table key 8")


def _fits(ticks: int, width: int, slow_width: int) -> bool:
    return (
        1 <= ticks <= MAX_TICKS
        and width + slow_width <= MAX_CHANNELS
        and ticks * width <= MAX_VALUES
    )


def _as_steps(fast: Ints, missing: Bools, gauges: Bools) -> Ints:
    """Counter differences as they are, gauges as first level and differences; gaps held."""
    steps = np.where(missing, 0, fast) if missing.any() else fast.copy()
    if missing[:, gauges].any():
        steps[:, gauges] = _held(fast[:, gauges], missing[:, gauges])
    steps[1:, gauges] -= steps[:-1, gauges].copy()
    return steps


def _held(levels: Ints, missing: Bools) -> Ints:
    """Each gap filled with the last level before it (0 before the first), to cost no bytes."""
    ticks = np.arange(len(levels))[:, None]
    last = np.maximum.accumulate(np.where(missing, -1, ticks), axis=0)
    filled = np.take_along_axis(levels, np.maximum(last, 0), axis=0)
    return np.where(last < 0, 0, filled)


def _levels(fast: Ints, gauges: Bools) -> None:
    if gauges.shape != fast.shape[1:]:
        raise WireError(f"table has {gauges.size} fast channels, message {fast.shape[1]}")
    fast[:, gauges] = np.cumsum(fast[:, gauges], axis=0)


def _planes(values: Ints) -> tuple[int, bytes]:
    """Zigzag, then as many byte planes as the largest value needs."""
    zigzag = ((values << 1) ^ (values >> 63)).view(np.uint64)
    largest = int(zigzag.max(initial=0))
    planes = (largest.bit_length() + 7) // 8
    split = zigzag.view(np.uint8).reshape(-1, 8)
    return planes, np.ascontiguousarray(split[:, :planes].T).tobytes()


def _unplane(data: bytes, count: int, planes: int) -> Ints:
    split = np.zeros((count, 8), np.uint8)
    split[:, :planes] = np.frombuffer(data, np.uint8).reshape(planes, count).T
    zigzag = split.view(np.uint64).ravel()
    return (zigzag >> np.uint64(1)).view(np.int64) ^ -(zigzag & np.uint64(1)).view(np.int64)


def _masks(message: Message) -> tuple[int, bytes]:
    flags, parts = 0, []
    if message.fast_missing.any():
        flags |= _FAST_MISSING
        parts.append(np.packbits(message.fast_missing.ravel()).tobytes())
    if message.slow_missing.any():
        flags |= _SLOW_MISSING
        parts.append(np.packbits(message.slow_missing).tobytes())
    return flags, b"".join(parts)


def _bits(data: bytes, count: int) -> Bools:
    if not data:
        return np.zeros(count, np.bool_)
    return np.unpackbits(np.frombuffer(data, np.uint8), count=count).astype(np.bool_)


def _lateness(message: Message, ticks: int) -> bytes:
    lateness = message.lateness if message.lateness.size else np.zeros(ticks, np.int32)
    if lateness.shape != (ticks,):
        raise WireError(f"lateness of {lateness.shape[0]} ticks in a slice of {ticks}")
    return lateness.astype("<i4").tobytes()


def _decompress(frame: bytes, size: int) -> bytes:
    try:
        if zstandard.frame_content_size(frame) != size:
            raise WireError("message body is not of the length its header claims")
        body = zstandard.ZstdDecompressor().decompress(
            frame, max_output_size=size, allow_extra_data=False
        )
    except zstandard.ZstdError as error:
        raise WireError(f"message body cannot be decompressed: {error}") from None
    return body


def _cut(body: bytes, sizes: list[int]) -> list[bytes]:
    ends = np.cumsum(sizes)
    return [body[end - size : end] for end, size in zip(ends, sizes, strict=True)]


def _node(name: bytes) -> str:
    try:
        return name.decode()
    except UnicodeDecodeError:
        raise WireError("node name is not UTF-8") from None
