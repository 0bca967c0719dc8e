"""Clips in files: small enough to be kept with the code, read without any tool.

Layout: 8 bytes magic with a version, 4 bytes length of the header, the header (JSON), then one xz
stream.  The stream holds fast values, slow values (both channel by channel over time, gauges as
differences, zigzag integers cut into byte planes), then the masks as bits.
"""

from __future__ import annotations

import json
import lzma
import math
import struct
from pathlib import Path
from typing import Any

import numpy as np

from reveal_contract.channels import ChannelTable
from reveal_contract.metric import Kind, Subsystem
from scenariobench.clip import Bools, Clip, Ints, RecordedFault

MAGIC = b"RVLCLP\x00\x01"
SUFFIX = ".clip"
_LENGTH = struct.Struct("<I")
_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 1 << 24}]


class ClipError(ValueError):
    """The file is no clip; the text says why."""


def write(clip: Clip, folder: Path) -> Path:
    """Write ``NAME.clip`` into the folder; return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    fast_planes, fast = _packed(_by_channel(clip.fast), _gauges(clip.channels.fast))
    slow_planes, slow = _packed(clip.slow.T, _gauges(clip.channels.slow))
    header = {
        "name": clip.name, "workload": clip.workload, "tick_us": clip.tick_us,
        "shape": clip.fast.shape, "slow": clip.slow.shape[1],
        "planes": [fast_planes, slow_planes], "fault": _fault_row(clip.fault),
        "table": json.loads(clip.channels.to_json()),
    }  # fmt: skip
    masks = [clip.fast_missing, clip.slow_missing, clip.present]
    body = b"".join([fast, slow, *(np.packbits(mask).tobytes() for mask in masks)])
    head = lzma.compress(json.dumps(header, separators=(",", ":")).encode())
    path = folder / (clip.name + SUFFIX)
    packed = lzma.compress(body, lzma.FORMAT_XZ, filters=_FILTERS)
    path.write_bytes(b"".join([MAGIC, _LENGTH.pack(len(head)), head, packed]))
    return path


def read(path: Path) -> Clip:
    """Read what ``write`` wrote; raises ``ClipError`` for anything else."""
    try:
        data = path.read_bytes()
        if data[: len(MAGIC)] != MAGIC:
            raise ClipError(f"{path} is not a clip")
        start = len(MAGIC) + _LENGTH.size
        (length,) = _LENGTH.unpack_from(data, len(MAGIC))
        header = json.loads(lzma.decompress(data[start : start + length]))
        return _clip(header, lzma.decompress(data[start + length :]))
    except (OSError, lzma.LZMAError, struct.error, ValueError, KeyError) as error:
        raise ClipError(f"{path} is not a clip: {error}") from None


def read_fault(path: Path) -> tuple[str, str, RecordedFault | None]:
    """Return workload, name and fault of a clip without its values."""
    with path.open("rb") as file:
        (length,) = _LENGTH.unpack_from(file.read(len(MAGIC) + _LENGTH.size), len(MAGIC))
        header = json.loads(lzma.decompress(file.read(length)))
    return header["workload"], header["name"], _fault_of(header["fault"])


def _clip(header: dict[str, Any], body: bytes) -> Clip:
    table = ChannelTable.from_json(json.dumps(header["table"]))
    seconds, ticks, width = header["shape"]
    slow_width = header["slow"]
    view = memoryview(body)
    fast_planes, slow_planes = header["planes"]
    fast, view = _unpacked(view, (width, seconds * ticks), fast_planes, _gauges(table.fast))
    slow, view = _unpacked(view, (slow_width, seconds), slow_planes, _gauges(table.slow))
    fast_missing, view = _bits(view, (seconds, ticks, width))
    slow_missing, view = _bits(view, (seconds, slow_width))
    present, view = _bits(view, (seconds, width + slow_width))
    return Clip(
        header["name"], header["workload"], header["tick_us"], table,
        np.ascontiguousarray(fast.reshape(width, seconds, ticks).transpose(1, 2, 0)),
        np.ascontiguousarray(slow.T), fast_missing, slow_missing, present,
        _fault_of(header["fault"]),
    )  # fmt: skip


def _by_channel(fast: Ints) -> Ints:
    seconds, ticks, width = fast.shape
    return fast.reshape(seconds * ticks, width).T


def _gauges(channels: tuple[Any, ...]) -> Bools:
    return np.array([channel.kind is not Kind.COUNTER for channel in channels], np.bool_)


def _packed(values: Ints, gauges: Bools) -> tuple[int, bytes]:
    """Return (channels, time) as byte planes, and how many there are."""
    steps = np.array(values, np.int64)
    steps[gauges, 1:] = np.diff(values[gauges], axis=1)
    zigzag = ((steps << 1) ^ (steps >> 63)).view(np.uint64)
    planes = max(1, (int(zigzag.max(initial=0)).bit_length() + 7) // 8)
    split = np.ascontiguousarray(zigzag.ravel()).view(np.uint8).reshape(-1, 8)
    return planes, np.ascontiguousarray(split[:, :planes].T).tobytes()


def _unpacked(
    view: memoryview, shape: tuple[int, int], planes: int, gauges: Bools
) -> tuple[Ints, memoryview]:
    count = math.prod(shape)
    split = np.zeros((count, 8), np.uint8)
    split[:, :planes] = np.frombuffer(view, np.uint8, count * planes).reshape(planes, count).T
    zigzag = split.view(np.uint64).ravel()
    unit = np.uint64(1)
    steps = ((zigzag >> unit) ^ (-(zigzag & unit).astype(np.int64)).view(np.uint64)).view(np.int64)
    values = steps.reshape(shape)
    values[gauges] = np.cumsum(values[gauges], axis=1)
    return values, view[count * planes :]


def _bits(view: memoryview, shape: tuple[int, ...]) -> tuple[Bools, memoryview]:
    count = math.prod(shape)
    size = (count + 7) // 8
    bits = np.unpackbits(np.frombuffer(view, np.uint8, size), count=count)
    return bits.astype(np.bool_).reshape(shape), view[size:]


def _fault_row(fault: RecordedFault | None) -> dict[str, Any] | None:
    if fault is None:
        return None
    return {**vars(fault), "subsystems": sorted(fault.subsystems)}


def _fault_of(row: dict[str, Any] | None) -> RecordedFault | None:
    if row is None:
        return None
    return RecordedFault(**{**row, "subsystems": frozenset(map(Subsystem, row["subsystems"]))})
