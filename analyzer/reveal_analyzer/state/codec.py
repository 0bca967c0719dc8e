"""The bytes of a saved state: a versioned header, and a compressed tree of numbers and arrays.

Layout, little-endian::

    "RVS" | version (1) | crc32 of all that follows (4) | length (4), header (JSON) | frame (zstd)

The frame holds: length (4), types and shapes of the arrays (JSON), length (4), the tree (JSON), the
arrays.  In the tree, ``{"$array": n}`` stands for the n-th array.  The bytes of an array are
transposed, all first bytes of its numbers before all second ones: so they compress better.

Nothing in a state is executable.  ``decode`` raises ``StateError`` for anything that ``encode`` did
not write, and allocates a few times ``MAX_DECODED`` at most.
"""

from __future__ import annotations

import json
import math
import re
import struct
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import zstandard
from numpy.typing import NDArray

from reveal_analyzer.state.tree import StateError, StateTree, integer, octets, text
from reveal_contract.zstd_frames import FrameError, decompressed

VERSION = 1
MAX_BYTES = 64 * 1024
MAX_DECODED = 4 << 20
_MAX_ARRAYS = 4096
_MAX_DIMENSIONS = 8
_MAGIC = b"RVS"
_HEAD = struct.Struct("<3sBI")
_ENTRY = re.compile(r"[0-9]{1,20}-[0-9]{1,20}")
_LENGTH = struct.Struct("<I")
_ARRAY = "$array"
# one each, as to create one takes longer than its use; a state is encoded by one thread
_COMPRESSOR = zstandard.ZstdCompressor(level=3)
# the element types of arrays, by the names that the bytes use
_TYPES = {
    name: np.dtype(name)
    for name in ("?", "<i1", "<i2", "<i4", "<i8", "<u1", "<u2", "<u4", "<u8", "<f2", "<f4", "<f8")
}
_NAMES = {dtype: name for name, dtype in _TYPES.items()}

SectionPath = tuple[str, ...]


class Position(NamedTuple):
    """The last slice that a state covers.

    ``entry`` is the id of its stream entry, "" if it came from elsewhere; ``start_ns`` its time on
    the node's clock.
    """

    node: str
    boot: bytes
    sequence: int
    start_ns: int
    entry: str = ""


@dataclass(frozen=True)
class SavedState:
    """What was learned about a node up to a slice, and when it was saved (seconds since epoch)."""

    position: Position
    saved_s: int
    tree: StateTree


def encode(state: SavedState, optional: Iterable[SectionPath] = ()) -> bytes:
    """Return the bytes of a state, at most ``MAX_BYTES``.

    If it is larger, the ``optional`` sections are left out one after the other, in their order.
    Raises ``StateError`` if it is still larger, or holds what is neither JSON nor an array.
    """
    tree, rest = state.tree, iter(optional)
    while len(data := _encode(state, tree)) > MAX_BYTES:
        path = next(rest, None)
        if path is None:
            raise StateError(f"it takes {len(data)} bytes, more than {MAX_BYTES}")
        tree = without(tree, path)
    return data


def decode(data: bytes) -> SavedState:
    """Return the state of these bytes; raises ``StateError`` if they are not one."""
    header, start = _header(data)
    content = _decompress(data[start:])
    listing, end = _prefixed(content, 0)
    tree_json, end = _prefixed(content, end)
    arrays = _arrays(_loaded(listing, "list of arrays"), content, end)
    tree = _loaded(tree_json, "tree", lambda row: _resolve(row, arrays))
    if not isinstance(tree, dict):
        raise StateError("its tree is not an object")
    return SavedState(_position(header), integer(header, "saved"), tree)


def position(data: bytes) -> Position:
    """Return the position of a state without its content; raises ``StateError``."""
    return _position(_header(data)[0])


def without(tree: StateTree, path: SectionPath) -> StateTree:
    """Return the tree without the section at ``path``."""
    name, *rest = path
    if name not in tree:
        return tree
    if not rest:
        return {key: value for key, value in tree.items() if key != name}
    inner = tree[name]
    if not isinstance(inner, Mapping):
        return tree
    return {**tree, name: without(inner, tuple(rest))}


def _encode(state: SavedState, tree: StateTree) -> bytes:
    arrays: list[NDArray[Any]] = []

    def outside_json(value: object) -> object:
        if isinstance(value, np.ndarray):
            arrays.append(value)
            return {_ARRAY: len(arrays) - 1}
        if isinstance(value, np.generic):
            return value.item()
        if isinstance(value, Mapping):
            return dict(value)
        raise StateError(f"a value of type {type(value).__name__} cannot be saved")

    tree_json = _json(tree, outside_json)
    listing = _json([[_type_name(each), each.shape] for each in arrays])
    parts = [_LENGTH.pack(len(listing)), listing, _LENGTH.pack(len(tree_json)), tree_json]
    header = _json(_header_of(state))
    frame = _COMPRESSOR.compress(b"".join([*parts, *map(_transposed, arrays)]))
    tail = _LENGTH.pack(len(header)) + header + frame
    return _HEAD.pack(_MAGIC, VERSION, zlib.crc32(tail)) + tail


def _header_of(state: SavedState) -> dict[str, str | int]:
    last = state.position
    return {
        "node": last.node,
        "boot": last.boot.hex(),
        "sequence": last.sequence,
        "start": last.start_ns,
        "entry": last.entry,
        "saved": state.saved_s,
    }


def _json(value: object, outside_json: Callable[[object], object] | None = None) -> bytes:
    try:
        text = json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=outside_json)
    except StateError:
        raise
    except (TypeError, ValueError, RecursionError) as error:
        raise StateError(f"the state cannot be saved: {error}") from None
    return text.encode(errors="surrogatepass")


def _type_name(values: NDArray[Any]) -> str:
    try:
        return _NAMES[values.dtype.newbyteorder("<")]
    except KeyError:
        raise StateError(f"an array of {values.dtype} cannot be saved") from None


def _transposed(values: NDArray[Any]) -> bytes:
    little = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
    return little.reshape(-1).view(np.uint8).reshape(-1, little.itemsize).T.tobytes()


def _header(data: bytes) -> tuple[dict[str, Any], int]:
    """Return the header of a state, and where its frame begins."""
    if len(data) < _HEAD.size + _LENGTH.size or len(data) > MAX_BYTES:
        raise StateError(f"{len(data)} bytes are not a saved state")
    magic, version, checksum = _HEAD.unpack_from(data)
    if magic != _MAGIC:
        raise StateError("it does not begin as a saved state")
    if version != VERSION:
        raise StateError(f"it has version {version}, {VERSION} is expected")
    if zlib.crc32(data[_HEAD.size :]) != checksum:
        raise StateError("its checksum does not match")
    row, end = _prefixed(data, _HEAD.size)
    header = _object(row, "header")
    return header, end


def _prefixed(data: bytes, start: int) -> tuple[bytes, int]:
    """Return the bytes after a length, and where they end."""
    if len(data) < start + _LENGTH.size:
        raise StateError("it is truncated")
    begin = start + _LENGTH.size
    end = begin + int(_LENGTH.unpack_from(data, start)[0])
    if len(data) < end:
        raise StateError("it is truncated")
    return data[begin:end], end


def _object(data: bytes, name: str) -> dict[str, Any]:
    row = _loaded(data, name)
    if not isinstance(row, dict):
        raise StateError(f"its {name} is not an object")
    return row


def _loaded(
    data: bytes, name: str, hook: Callable[[dict[str, Any]], object] | None = None
) -> object:
    try:
        return json.loads(data.decode(errors="surrogatepass"), object_hook=hook)
    except StateError:
        raise
    except (ValueError, RecursionError) as error:
        raise StateError(f"its {name} cannot be read: {error}") from None


def _position(header: StateTree) -> Position:
    entry = text(header, "entry")
    if entry and not _ENTRY.fullmatch(entry):
        raise StateError("it has no id of a stream entry")
    return Position(
        node=text(header, "node"),
        boot=octets(header, "boot"),
        sequence=integer(header, "sequence", most=2**64 - 1),
        start_ns=integer(header, "start", least=-(2**63)),
        entry=entry,
    )


def _decompress(frame: bytes) -> bytes:
    try:
        return decompressed(frame, MAX_DECODED)
    except FrameError as error:
        raise StateError(str(error)) from None


def _arrays(listing: object, data: bytes, offset: int) -> list[NDArray[Any]]:
    """Return the arrays that are listed; they fill the data from ``offset`` on."""
    if not isinstance(listing, list) or len(listing) > _MAX_ARRAYS:
        raise StateError("its list of arrays cannot be used")
    found = []
    for row in listing:
        dtype, shape = _shape(row)
        size = math.prod(shape) * dtype.itemsize
        if size > len(data) - offset:
            raise StateError("an array is truncated")
        planes = np.frombuffer(data, np.uint8, size, offset).reshape(dtype.itemsize, -1)
        found.append(_numbers(np.ascontiguousarray(planes.T), dtype).reshape(shape))
        offset += size
    if offset != len(data):
        raise StateError("bytes are left after its arrays")
    return found


def _numbers(rows: NDArray[np.uint8], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return the numbers whose bytes are the rows; a truth value may not be any other byte."""
    values = rows.reshape(-1)
    return values != 0 if dtype.kind == "b" else values.view(dtype)


def _shape(row: object) -> tuple[np.dtype[Any], tuple[int, ...]]:
    match row:
        case [str(name), list(lengths)] if name in _TYPES and len(lengths) <= _MAX_DIMENSIONS:
            if all(type(each) is int and 0 <= each <= MAX_DECODED for each in lengths):
                return _TYPES[name], tuple(lengths)
    raise StateError("an array has an impossible type or shape")


def _resolve(row: dict[str, Any], arrays: Sequence[NDArray[Any]]) -> object:
    if row.keys() != {_ARRAY}:
        return row
    index = row[_ARRAY]
    if type(index) is not int or not 0 <= index < len(arrays):
        raise StateError("its tree refers to an array that it has not")
    return arrays[index]
