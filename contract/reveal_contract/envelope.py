"""The envelope of a wire message: header, checksum and compressed frame, without numpy.

``wire`` describes the layout and decodes the numbers into arrays.  The collector's native encoder
produces the bytes of the body, so it needs only this module.
"""

from __future__ import annotations

import struct
import threading
import zlib
from typing import NamedTuple

import zstandard

from reveal_contract.channels import MAX_CHANNELS

VERSION = 1
MAX_TICKS = 100
MAX_NODE_BYTES = 253  # a Kubernetes node name (RFC 1123 subdomain)
MAX_VALUES = (
    1 << 20
)  # ticks x fast channels: zeros take no bytes on the wire, but 8 bytes in memory
FAST_MISSING, SLOW_MISSING = 1, 2
_MAGIC = b"RVL"
_HEAD = struct.Struct("<3sBI")
_FIELDS = struct.Struct("<BBH16sQqI8sIIBB")
_NAME_OFFSET = _HEAD.size + _FIELDS.size
_THREAD = threading.local()


class WireError(ValueError):
    """These bytes are not a message of this version; the text says what is wrong."""


class Head(NamedTuple):
    """The header of a slice; ``width`` and ``slow_width`` count channels."""

    node: str
    boot: bytes
    sequence: int
    start_ns: int
    tick_us: int
    table: bytes
    ticks: int
    width: int
    slow_width: int


class Body(NamedTuple):
    """The content of the frame, with the three header fields that describe its layout."""

    flags: int
    first_planes: int
    step_planes: int
    data: bytes | memoryview


def refuse_unencodable(head: Head) -> None:
    """Raise ``WireError`` for a slice that no reader accepts."""
    if not _fits(head.ticks, head.width, head.slow_width):
        raise WireError(
            f"a slice cannot hold {head.ticks} ticks of {head.width} + {head.slow_width} channels"
        )
    if not 1 <= len(head.node.encode()) <= MAX_NODE_BYTES:
        raise WireError(f"node name {head.node!r} is not of 1 to {MAX_NODE_BYTES} bytes")
    if not head.node.isprintable():
        raise WireError(f"node name {head.node!a} is not printable")
    if len(head.boot) != 16 or len(head.table) != 8:
        raise WireError("boot id takes 16 bytes and table key 8")


def seal(head: Head, body: Body) -> bytes:
    """Return the bytes of a message that passed ``refuse_unencodable``."""
    node = head.node.encode()
    frame = _own_compressor().compress(body.data)
    try:
        fields = _FIELDS.pack(
            body.flags, head.ticks, len(node), head.boot, head.sequence, head.start_ns,
            head.tick_us, head.table, head.width, head.slow_width,
            body.first_planes, body.step_planes,
        )  # fmt: skip
    except struct.error as error:
        raise WireError(f"sequence, start or tick is out of range: {error}") from None
    tail = fields + node + frame
    return _HEAD.pack(_MAGIC, VERSION, zlib.crc32(tail)) + tail


def unseal(data: bytes) -> tuple[Head, Body]:
    """Return header and body of a message; the body has the length that the header claims.

    Raises ``WireError`` for anything that ``seal`` did not write, before allocating more than
    the message claims.
    """
    check(data)
    (
        flags, ticks, name_length, boot, sequence, start_ns,
        tick_us, table, width, slow_width, first_planes, step_planes,
    ) = _FIELDS.unpack_from(data, _HEAD.size)  # fmt: skip
    if not _fits(ticks, width, slow_width) or not 1 <= name_length <= MAX_NODE_BYTES:
        raise WireError(f"message claims {ticks} ticks of {width} + {slow_width} channels")
    if first_planes > 8 or step_planes > 8 or flags > 3:
        raise WireError("message has impossible plane counts or flags")
    body_offset = _NAME_OFFSET + name_length
    node = _node(data[_NAME_OFFSET:body_offset])
    head = Head(node, boot, sequence, start_ns, tick_us, table, ticks, width, slow_width)
    size = sum(sizes(head, flags, first_planes, step_planes))
    return head, Body(flags, first_planes, step_planes, _decompress(data[body_offset:], size))


def sizes(head: Head, flags: int, first_planes: int, step_planes: int) -> list[int]:
    """Bytes of the parts of the body: lateness, firsts, steps, fast mask, slow mask."""
    return [
        4 * head.ticks,
        (head.width + head.slow_width) * first_planes,
        head.width * (head.ticks - 1) * step_planes,
        (head.width * head.ticks + 7) // 8 if flags & FAST_MISSING else 0,
        (head.slow_width + 7) // 8 if flags & SLOW_MISSING else 0,
    ]


def peek(data: bytes) -> tuple[str, bytes]:
    """Node and table key of a message, its body left alone; ``WireError`` as from ``unseal``."""
    check(data)
    length = int.from_bytes(data[10:12], "little")
    return _node(data[_NAME_OFFSET : _NAME_OFFSET + length]), data[48:56]


def check(data: bytes) -> None:
    """Raise ``WireError`` unless magic, version and checksum are those of a message."""
    if len(data) < _NAME_OFFSET:
        raise WireError(f"message of {len(data)} bytes is shorter than its header")
    magic, version, crc = _HEAD.unpack_from(data)
    if magic != _MAGIC:
        raise WireError("message does not begin with the magic of a Reveal slice")
    if version != VERSION:
        raise WireError(f"message is of wire version {version}, this reader knows {VERSION}")
    if zlib.crc32(memoryview(data)[_HEAD.size :]) != crc:
        raise WireError("message is damaged: its checksum does not match")


def _fits(ticks: int, width: int, slow_width: int) -> bool:
    return (
        1 <= ticks <= MAX_TICKS
        and width + slow_width <= MAX_CHANNELS
        and ticks * width <= MAX_VALUES
    )


def _decompress(frame: bytes, size: int) -> bytes:
    try:
        if zstandard.frame_content_size(frame) != size:
            raise WireError("message body is not of the length its header claims")
        body = _own_decompressor().decompress(frame, max_output_size=size, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise WireError(f"message body cannot be decompressed: {error}") from None
    return body


def _own_compressor() -> zstandard.ZstdCompressor:
    """Return the compressor of this thread; a new one each time would map and unmap memory.

    Level 1 with 4 KiB of hash table, not 128: bodies are mostly zeros, so they do not get longer.
    Matches have at least seven bytes, not five: 1 % longer, and 25 % less time to decompress.
    """
    if not hasattr(_THREAD, "compressor"):
        _THREAD.compressor = zstandard.ZstdCompressor(
            compression_params=zstandard.ZstdCompressionParameters(
                window_log=16, chain_log=6, hash_log=10, search_log=1, min_match=7,
                target_length=0, strategy=zstandard.STRATEGY_FAST,
            )
        )  # fmt: skip
    compressor: zstandard.ZstdCompressor = _THREAD.compressor
    return compressor


def _own_decompressor() -> zstandard.ZstdDecompressor:
    """Return the decompressor of this thread: to create one takes twice the time of its use."""
    if not hasattr(_THREAD, "decompressor"):
        _THREAD.decompressor = zstandard.ZstdDecompressor()
    decompressor: zstandard.ZstdDecompressor = _THREAD.decompressor
    return decompressor


def _node(name: bytes) -> str:
    try:
        node = name.decode()
    except UnicodeDecodeError:
        raise WireError("node name is not UTF-8") from None
    # people read it in logs, tables and reports: a collector sends no other
    if not node.isprintable():
        raise WireError(f"node name {node!a} is not printable")
    return node
