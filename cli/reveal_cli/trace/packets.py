"""Packets of a Perfetto trace, as bytes.

A trace needs about thirty fields of Perfetto's messages, all of them integers, texts and nested
messages, so they are encoded here.  The package ``perfetto`` would bring the runtime of protobuf
to every host, whose versions often conflict with those of ML frameworks; the tests parse the
result with it.  Field numbers: ``protos/perfetto/trace`` of Perfetto; they never change.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from reveal_contract.foreign_names import printable

_VARINT, _FIXED64, _BYTES = 0, 1, 2
_MASK = (1 << 64) - 1
_REALTIME, _BOOTTIME = 1, 6
_SEQUENCE = 1  # one writer: one sequence of packets
_STATE_CLEARED = 1
_BEGIN, _END, _COUNTER = 1, 2, 4
MOST_TEXT, MOST_NAME = 4096, 160  # characters


@dataclass(frozen=True, slots=True)
class Slice:
    """A span on a track; ``flows_out`` lead to slices that have the same ids in ``flows_in``."""

    name: str
    begin_ns: int
    end_ns: int
    category: str = ""
    details: Mapping[str, str] = field(default_factory=dict)
    flows_out: Sequence[int] = ()
    flows_in: Sequence[int] = ()


def clocks(time_ns: int, origin_ns: int) -> bytes:
    """Return the packet that ties the clock of the viewer to time since the epoch.

    The viewer shows times of CLOCK_BOOTTIME; ``origin_ns`` is when that is 0.
    """
    pairs = ((_BOOTTIME, time_ns - origin_ns), (_REALTIME, time_ns))
    snapshot = b"".join(
        _message(1, _integer(1, clock), _integer(2, value)) for clock, value in pairs
    )
    cleared = _integer(13, _STATE_CLEARED)
    return _packet(time_ns, _message(6, snapshot, _integer(2, _BOOTTIME)), cleared)


def process_track(uuid: int, pid: int, name: str) -> bytes:
    """Return the packet of a track that is displayed as a process."""
    process = _message(3, _integer(1, pid), _name(6, name))
    return _packet(None, _message(60, _integer(1, uuid), _name(2, name), process))


def track(uuid: int, parent: int, name: str) -> bytes:
    """Return the packet of a track for slices or other tracks."""
    return _packet(None, _message(60, _integer(1, uuid), _name(2, name), _integer(5, parent)))


def counter_track(uuid: int, parent: int, name: str, unit: str) -> bytes:
    """Return the packet of a track for the values of one metric."""
    counter = _message(8, _name(6, unit))
    return _packet(
        None, _message(60, _integer(1, uuid), _name(2, name), _integer(5, parent), counter)
    )


def slice_begin(uuid: int, slice_: Slice) -> bytes:
    """Return the packet that begins a slice on a track."""
    details = b"".join(
        _message(4, _name(10, key), _text(6, value)) for key, value in slice_.details.items()
    )
    flows = b"".join(_fixed(47, flow) for flow in slice_.flows_out)
    flows += b"".join(_fixed(48, flow) for flow in slice_.flows_in)
    category = _name(22, slice_.category) if slice_.category else b""
    return _event(slice_.begin_ns, uuid, _BEGIN, _name(23, slice_.name), category, details, flows)


def slice_end(uuid: int, slice_: Slice) -> bytes:
    """Return the packet that ends a slice, the last one begun on its track."""
    return _event(slice_.end_ns, uuid, _END)


def count(uuid: int, time_ns: int, value: float) -> bytes:
    """Return the packet of one value of a counter track."""
    number = _key(44, _FIXED64) + struct.pack("<d", value)
    return _event(time_ns, uuid, _COUNTER, number)


def _event(time_ns: int, uuid: int, kind: int, *fields: bytes) -> bytes:
    return _packet(time_ns, _message(11, _integer(9, kind), _integer(11, uuid), *fields))


def _packet(time_ns: int | None, *fields: bytes) -> bytes:
    """Return a packet of the trace; descriptions of tracks have no time."""
    times = b"" if time_ns is None else _integer(8, time_ns) + _integer(58, _REALTIME)
    return _message(1, times, _integer(10, _SEQUENCE), *fields)


def _message(number: int, *fields: bytes) -> bytes:
    content = b"".join(fields)
    return _key(number, _BYTES) + _varint(len(content)) + content


def _name(number: int, name: str) -> bytes:
    """Return a text that is displayed beside others: a long one is shortened."""
    inert = printable(name)
    short = inert if len(inert) <= MOST_NAME else f"{inert[: MOST_NAME - 1]}…"
    return _message(number, short.encode())


def _text(number: int, text: str) -> bytes:
    return _message(number, printable(text)[:MOST_TEXT].encode())


def _integer(number: int, value: int) -> bytes:
    return _key(number, _VARINT) + _varint(value)


def _fixed(number: int, value: int) -> bytes:
    return _key(number, _FIXED64) + struct.pack("<Q", value)


def _key(number: int, kind: int) -> bytes:
    return _varint(number << 3 | kind)


def _varint(value: int) -> bytes:
    left, result = value & _MASK, bytearray()
    while left > 0x7F:
        result.append(left & 0x7F | 0x80)
        left >>= 7
    result.append(left)
    return bytes(result)
