"""The bytes of a node's history: pure.

The history of an hour is a sequence of parts, each with some seconds, so that a part is appended
without reading the others.  Layout of a part, little endian::

    0  4  magic "RVH1"     4  4  length of the frame     8  4  crc32 of the frame
    12 .. one zstd frame

The frame holds: the length of a JSON header (uint32), the header (node, boot, writer, how many
channels the writer named before in this hour, those that are new, seconds, byte planes, whether
values are missing), then the sequence numbers and the starts (int64), the steps, and, where some
are missing, one bit for each.  Steps are channel-major: the first, then the differences, as zigzag
integers cut into byte planes.  A channel that is not read any more is missing from then on.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import zstandard

from reveal_analyzer.arrays import Bools, Ints
from reveal_contract import foreign_json
from reveal_contract.byte_planes import filled, from_planes, to_planes
from reveal_contract.channels import (
    MAX_CHANNELS,
    Channel,
    TableError,
    announced_row,
    channel_of_row,
)
from reveal_contract.wire import bits
from reveal_contract.zstd_frames import decompressed

_MAGIC = b"RVH1"
_FRAME = struct.Struct("<4sII")
_LENGTH = struct.Struct("<I")
_LEVEL = 6
_MOST_BYTES = 128 << 20  # of an unpacked frame
_MOST_SECONDS = 3600
_BOOT_BYTES = 16


class PartError(ValueError):
    """The bytes are not those of a part; the text says why."""


@dataclass(frozen=True, eq=False)
class Part:
    """Some seconds of a node; ``steps`` and ``missing`` are (seconds, channels).

    The channels are the first ``known`` ones that this writer named before, then ``added``.
    """

    node: str
    boot: bytes
    writer: str
    known: int
    added: tuple[Channel, ...]
    sequences: Ints
    starts_ns: Ints
    steps: Ints
    missing: Bools

    @property
    def width(self) -> int:
        """The number of channels."""
        return self.known + len(self.added)


def encode(part: Part) -> bytes:
    """Return the bytes of a part."""
    differences = np.diff(filled(part.steps, part.missing), axis=0, prepend=0)
    planes, step_bytes = to_planes(np.ascontiguousarray(differences.T).ravel())
    header = {
        "node": part.node,
        "boot": part.boot.hex(),
        "writer": part.writer,
        "known": part.known,
        "added": [announced_row(channel) for channel in part.added],
        "seconds": len(part.starts_ns),
        "planes": planes,
        "missing": bool(part.missing.any()),
    }
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    body = b"".join(
        [
            _LENGTH.pack(len(text)), text, part.sequences.astype("<i8").tobytes(),
            part.starts_ns.astype("<i8").tobytes(), step_bytes,
            np.packbits(part.missing.T).tobytes() if header["missing"] else b"",
        ]
    )  # fmt: skip
    frame = zstandard.ZstdCompressor(level=_LEVEL).compress(body)
    return _FRAME.pack(_MAGIC, len(frame), zlib.crc32(frame)) + frame


def parts(data: bytes) -> Iterator[Part]:
    """Yield the parts; the rest after a damaged one is left out, as after a write that was cut."""
    position = 0
    while position + _FRAME.size <= len(data):
        magic, length, checksum = _FRAME.unpack_from(data, position)
        begin = position + _FRAME.size
        frame = data[begin : begin + length]
        if magic != _MAGIC or len(frame) < length or zlib.crc32(frame) != checksum:
            return
        try:
            yield _part(frame)
        except PartError:
            return
        position = begin + length


def _part(frame: bytes) -> Part:
    try:
        body = decompressed(frame, _MOST_BYTES)
        (length,) = _LENGTH.unpack_from(body)
        header = foreign_json.loads(body[_LENGTH.size : _LENGTH.size + length])
        return _decoded(header, body[_LENGTH.size + length :])
    except (
        struct.error, KeyError, TypeError, ValueError, TableError
    ) as error:  # fmt: skip
        raise PartError(f"a part of a node's history is damaged: {error}") from None


def _decoded(header: Any, body: bytes) -> Part:
    seconds, planes, known = (
        _number(header[name], most)
        for name, most in (("seconds", _MOST_SECONDS), ("planes", 8), ("known", MAX_CHANNELS))
    )
    added = tuple(channel_of_row(row) for row in header["added"])
    width = known + len(added)
    begin, end = 16 * seconds, 16 * seconds + width * seconds * planes
    masks = -(-width * seconds // 8) if header["missing"] else 0
    if width > MAX_CHANNELS or len(body) != end + masks:
        raise ValueError(f"{len(body)} bytes are not {seconds} seconds of {width} channels")
    numbers = np.frombuffer(body[:begin], "<i8").astype(np.int64)
    differences = from_planes(body[begin:end], width * seconds, planes).reshape(width, seconds)
    steps = np.cumsum(differences, axis=1, dtype=np.int64).T
    missing = bits(body[end:], (width, seconds)).T
    boot = bytes.fromhex(header["boot"])
    if len(boot) != _BOOT_BYTES:
        raise ValueError("the boot id is too short or too long")
    return Part(
        str(header["node"]), boot, str(header["writer"]), known, added,
        numbers[:seconds], numbers[seconds:], steps, missing,
    )  # fmt: skip


def _number(value: Any, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise ValueError(f"{value!r} is not between 0 and {most}")
    return value
