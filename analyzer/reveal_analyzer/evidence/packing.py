"""A recording of samples in about half of its bytes, for a store that counts them: pure.

Each slice of a recording is compressed for itself, as it was sent.  Here the slices of the same
table and length lie side by side, byte for byte, and are compressed together.  Layout, in a single
zstd frame: the length of a JSON header (uint32), the header (node, notes, tables, groups), then of
each group the heads of its slices and their bodies, transposed.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import zstandard

from reveal_contract import foreign_json
from reveal_contract.channels import ChannelTable, TableError
from reveal_contract.envelope import Body, Head, WireError, refuse_unencodable, seal, unseal
from reveal_contract.recording import RecordingBuffer, RecordingError, RecordingReader
from reveal_contract.zstd_frames import decompressed

_LEVEL = 9
_MOST_BYTES = 64 << 20  # unpacked
_LENGTH = struct.Struct("<I")
# boot, sequence, start, tick, ticks, flags, planes of firsts and steps
_HEAD = struct.Struct("<16sQqIBBBB")


class _Slice(NamedTuple):
    head: Head
    body: Body


def packed(recording: bytes) -> bytes:
    """Return a recording of one node packed; raises ``RecordingError`` or ``WireError``."""
    notes: list[dict[str, Any]] = []
    tables: dict[bytes, ChannelTable] = {}
    groups: dict[tuple[bytes, int], list[_Slice]] = {}
    node = ""
    for entry in RecordingReader(Path("evidence"), recording):
        if entry.note is not None:
            notes.append(entry.note)
        elif entry.table is not None:
            tables[entry.table.key] = entry.table
            each = _Slice(*unseal(entry.data))
            groups.setdefault((entry.table.key, len(each.body.data)), []).append(each)
            node = each.head.node
    numbers = {key: number for number, key in enumerate(tables)}
    header = {
        "node": node,
        "notes": notes,
        "tables": [table.to_json().decode() for table in tables.values()],
        "groups": [[numbers[key], size, len(group)] for (key, size), group in groups.items()],
    }
    text = json.dumps(header).encode()
    parts = [_LENGTH.pack(len(text)), text]
    for (_, size), group in groups.items():
        parts += _columns(group, size)
    return zstandard.ZstdCompressor(level=_LEVEL).compress(b"".join(parts))


def unpacked(data: bytes) -> bytes:
    """Return the recording; raises ``RecordingError`` for what ``packed`` did not write."""
    try:
        whole = decompressed(data, _MOST_BYTES)
        return _recording(whole)
    except (
        struct.error, KeyError, TypeError, ValueError, IndexError,
        TableError, WireError,
    ) as error:  # fmt: skip
        raise RecordingError(f"packed samples are damaged: {error}") from None


def _recording(whole: bytes) -> bytes:
    (length,) = _LENGTH.unpack_from(whole)
    begin = _LENGTH.size + length
    header = foreign_json.loads(whole[_LENGTH.size : begin])
    tables = [ChannelTable.from_json(text) for text in header["tables"]]
    buffer = RecordingBuffer()
    for note in header["notes"]:
        buffer.note(note)
    slices = _slices(whole[begin:], header["node"], tables, header["groups"])
    for each, table in sorted(slices, key=lambda pair: pair[0].head.start_ns):
        buffer.message(seal(each.head, each.body), table)
    return buffer.to_bytes()


def _columns(group: Iterable[_Slice], size: int) -> list[bytes]:
    """Return the heads and the bodies of a group, each transposed."""
    heads = b"".join(
        _HEAD.pack(
            head.boot, head.sequence, head.start_ns, head.tick_us, head.ticks, body.flags,
            body.first_planes, body.step_planes,
        )
        for head, body in group
    )  # fmt: skip
    bodies = b"".join(bytes(each.body.data) for each in group)
    return [_transposed(heads, _HEAD.size), _transposed(bodies, size)]


def _slices(
    data: bytes, node: str, tables: list[ChannelTable], groups: list[list[int]]
) -> Iterator[tuple[_Slice, ChannelTable]]:
    position = 0
    for number, size, count in groups:
        middle = position + count * _HEAD.size
        end = middle + count * size
        heads = _transposed(data[position:middle], count)
        bodies = _transposed(data[middle:end], count)
        for index in range(count):
            row = _HEAD.unpack_from(heads, index * _HEAD.size)
            body = bodies[index * size : (index + 1) * size]
            yield _slice(row, body, node, tables[number]), tables[number]
        position = end


def _slice(row: tuple[Any, ...], data: bytes, node: str, table: ChannelTable) -> _Slice:
    boot, sequence, start_ns, tick_us, ticks, flags, first_planes, step_planes = row
    head = Head(
        node, boot, sequence, start_ns, tick_us, table.key, ticks, len(table.fast), len(table.slow)
    )
    refuse_unencodable(head)
    return _Slice(head, Body(flags, first_planes, step_planes, data))


def _transposed(data: bytes, width: int) -> bytes:
    """Return rows of ``width`` bytes as columns."""
    if not data:
        return b""
    rows = np.frombuffer(data, np.uint8).reshape(-1, width)
    return np.ascontiguousarray(rows.T).tobytes()
