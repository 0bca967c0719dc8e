"""Raw slices to wire messages in C, without numpy; ``numpy_encoder`` is the reference.

``native/encode.c`` does the arithmetic on whole slices.  This module has the buffers it works on,
the change to another table, and the header.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Sequence
from typing import Protocol

from reveal_collector import native
from reveal_collector.readers.raw_bounds import raw_bounds
from reveal_collector.readers.raw_slice import (
    MISSING,
    RARE_SLICES,
    RawSlice,
    SliceOrigin,
    signed,
)
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.envelope import Body, Head, refuse_unencodable, seal
from reveal_contract.metric import Kind, Lane

_LEVEL, _RARE = 1, 2  # kinds of channels in encode.c
_NO_CHANNELS: tuple[Channel, ...] = ()


class Encoder(Protocol):
    """Converts the raw slices of one collector, in order, to wire messages.

    Raises ``WireError`` or ``ValueError`` for a slice that no message can represent.
    """

    def encode(self, raw: RawSlice) -> bytes:
        """Return the message of the next slice."""


class _PartArguments(ctypes.Structure):
    """``struct reveal_part``."""

    _fields_ = [
        ("width", ctypes.c_int64),
        ("rows", ctypes.c_void_p),
        ("kinds", ctypes.c_void_p),
        ("bounds", ctypes.c_void_p),
        ("last", ctypes.c_void_p),
    ]


class _Arguments(ctypes.Structure):
    """``struct reveal_encoding``."""

    _fields_ = [
        ("ticks", ctypes.c_int64),
        ("lateness", ctypes.c_void_p),
        ("fast", _PartArguments),
        ("slow", _PartArguments),
        ("owed", ctypes.c_void_p),
        ("left", ctypes.c_void_p),
        ("waited", ctypes.c_void_p),
        ("rare_slices", ctypes.c_int64),
        ("zigzags", ctypes.c_void_p),
        ("masks", ctypes.c_void_p),
        ("body", ctypes.c_void_p),
        ("length", ctypes.c_int64),
        ("flags", ctypes.c_int32),
        ("first_planes", ctypes.c_int32),
        ("step_planes", ctypes.c_int32),
    ]


class _TablePart:
    """The channels of one part of the table and the last readings of their counters."""

    def __init__(
        self, channels: tuple[Channel, ...], last: array[int], arguments: _PartArguments
    ) -> None:
        self.channels, self.last = channels, last
        self.kinds = array("B", map(_kind, channels))
        self.bounds = array("q", [number for each in channels for number in _bounds(each)])
        arguments.width = len(channels)
        arguments.last, arguments.kinds = _address(last), _address(self.kinds)
        arguments.bounds = _address(self.bounds)

    def reset(self) -> None:
        """Forget the last readings: the next differences are missing."""
        self.last[:] = _repeated(MISSING, len(self.last))


class NativeEncoder:
    """The encoder of a process that has the native library."""

    def __init__(self, library: ctypes.CDLL, origin: SliceOrigin) -> None:
        self._origin = origin
        self._call = library.reveal_encode
        self._call.argtypes, self._call.restype = [ctypes.POINTER(_Arguments)], None
        self._arguments = _Arguments()
        self._table: ChannelTable | None = None
        self._sequence = -2
        self._fast = _TablePart(_NO_CHANNELS, array("q"), self._arguments.fast)
        self._slow = _TablePart(_NO_CHANNELS, array("q"), self._arguments.slow)
        self._owed, self._left, self._waited = array("q"), array("q"), array("q")
        self._ticks = 0
        self._zigzags, self._masks, self._body = array("Q"), array("B"), array("B")

    def encode(self, raw: RawSlice) -> bytes:
        """Return the message of the next slice; no difference spans a gap in the sequence."""
        head = _head(self._origin, raw)
        refuse_unencodable(head)
        if raw.table is not self._table:
            self._switch(raw.table)
        if head.ticks > self._ticks:
            self._make_room(head.ticks)
        if raw.sequence != self._sequence + 1:
            self._fast.reset()
            self._slow.reset()
        if raw.sequence - self._sequence > RARE_SLICES:  # what is left of then is outdated
            self._owed[:] = _repeated(0, len(self._owed))
        body = self._run(raw)
        self._sequence = raw.sequence
        return seal(head, body)

    def _run(self, raw: RawSlice) -> Body:
        arguments, lateness = self._arguments, array("i", raw.lateness)
        arguments.ticks = len(lateness)
        arguments.fast.rows = _address_of_cells(raw.fast, len(lateness) * len(raw.table.fast))
        arguments.slow.rows = _address_of_cells(raw.slow, len(raw.table.slow))
        arguments.lateness = _address(lateness)
        self._call(ctypes.byref(arguments))
        data = memoryview(self._body)[: arguments.length]
        return Body(arguments.flags, arguments.first_planes, arguments.step_planes, data)

    def _switch(self, table: ChannelTable) -> None:
        """Change to the columns of another table; keep the state of those that remain."""
        arguments = self._arguments
        indices = _previous_indices(self._fast.channels, table.fast)
        self._fast = _TablePart(
            table.fast, _carried(self._fast.last, indices, MISSING), arguments.fast
        )
        indices = _previous_indices(self._slow.channels, table.slow)
        self._slow = _TablePart(
            table.slow, _carried(self._slow.last, indices, MISSING), arguments.slow
        )
        self._owed, self._left, self._waited = (
            _carried(old, indices, 0) for old in (self._owed, self._left, self._waited)
        )
        arguments.owed, arguments.left = _address(self._owed), _address(self._left)
        arguments.waited = _address(self._waited)
        arguments.rare_slices = RARE_SLICES if _RARE in self._slow.kinds else 0
        self._table, self._ticks = table, 0

    def _make_room(self, ticks: int) -> None:
        fast, slow = ticks * len(self._fast.channels), len(self._slow.channels)
        masks = (fast + 7) // 8 + (slow + 7) // 8
        self._zigzags = array("Q", bytes(8 * (fast + slow)))
        self._masks = array("B", bytes(masks))
        self._body = array("B", bytes(4 * ticks + 8 * (fast + slow) + masks))
        arguments = self._arguments
        arguments.zigzags, arguments.masks = _address(self._zigzags), _address(self._masks)
        arguments.body = _address(self._body)
        self._ticks = ticks


def _head(origin: SliceOrigin, raw: RawSlice) -> Head:
    return Head(
        origin.node, origin.boot, raw.sequence, raw.start_ns, origin.tick_us, raw.table.key,
        len(raw.lateness), len(raw.table.fast), len(raw.table.slow),
    )  # fmt: skip


def _kind(channel: Channel) -> int:
    if channel.kind is not Kind.COUNTER:
        return _LEVEL
    return _RARE if channel.lane is Lane.RARE else 0


def _bounds(channel: Channel) -> tuple[int, int, int]:
    """Return the fields of ``struct reveal_bounds``."""
    bounds = raw_bounds(channel)
    return bounds.lowest, signed(bounds.highest - bounds.lowest), bounds.unknown


def _previous_indices(previous: Sequence[Channel], current: Sequence[Channel]) -> list[int]:
    """Return the earlier index of each channel, or -1; a sum of other members is another one."""
    old = {channel.identity: index for index, channel in enumerate(previous)}
    return [old.get(channel.identity, -1) for channel in current]


def _carried(values: array[int], indices: Sequence[int], new: int) -> array[int]:
    return array("q", [values[index] if index >= 0 else new for index in indices])


def _repeated(value: int, count: int) -> array[int]:
    return array("q", [value]) * count


def _address(buffer: array[int]) -> int:
    return buffer.buffer_info()[0]


def _address_of_cells(cells: array[int] | memoryview, count: int) -> int:
    """Return the address of int64 readings; raise ``ValueError`` unless there are ``count``."""
    if len(cells) != count:
        raise ValueError(f"{len(cells)} readings for {count} columns of the table")
    if isinstance(cells, array):
        return _address(cells)
    return ctypes.addressof(ctypes.c_char.from_buffer(cells)) if count else 0


def encoder_of(origin: SliceOrigin) -> Encoder:
    """Return the native encoder where the library is available, else the one in numpy."""
    library = native.load().library
    if library is not None:
        return NativeEncoder(library, origin)
    from reveal_collector.shipping.numpy_encoder import NumpyEncoder  # noqa: PLC0415 - numpy takes 12 MB

    return NumpyEncoder(origin)
