"""The bytes of a saved state: what goes in comes out, anything else is refused in one way."""

import contextlib
import json
import struct
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from reveal_analyzer.state import codec
from reveal_analyzer.state.codec import MAX_BYTES, Position, SavedState, decode, encode
from reveal_analyzer.state.tree import StateError, StateTree
from support.property_tests import examples

LAST = Position("n1", bytes(range(16)), 42, 1_700_000_000_000_000_000, "1700000000000-3")
RANDOM = np.random.default_rng(1)
NUMBERS = {
    "live": {
        "labels": ["cpu.user", "cpu.system"],
        "history": RANDOM.normal(size=(7, 4, 2)).astype(np.float32),
        "active": np.array([True, False]),
        "age": 90,
    },
    "cases": [],
    "note": None,
}


def state(tree: StateTree) -> SavedState:
    return SavedState(LAST, 1_700_000_001, tree)


VALID = encode(state(NUMBERS))


def equal(left: Any, right: Any) -> bool:
    if isinstance(left, np.ndarray):
        same = isinstance(right, np.ndarray) and left.dtype == right.dtype
        return same and bool(np.array_equal(left, right, equal_nan=left.dtype.kind == "f"))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(equal(left[key], right[key]) for key in left)
    if isinstance(left, list):
        return len(left) == len(right) and all(map(equal, left, right))
    return type(left) is type(right) and (left == right or left != left)  # noqa: PLR0124 - NaN


def test_a_state_comes_back_as_it_was() -> None:
    back = decode(VALID)
    assert (back.position, back.saved_s) == (LAST, 1_700_000_001)
    assert equal(back.tree, NUMBERS)
    assert codec.position(VALID) == LAST


_TYPES = st.one_of(
    st.just(np.dtype(np.bool_)),
    arrays.integer_dtypes(endianness="="),
    arrays.unsigned_integer_dtypes(endianness="="),
    arrays.floating_dtypes(endianness="=", sizes=(16, 32, 64)),
)
_LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**63), 2**63), st.floats(), st.text(max_size=9),
    arrays.arrays(_TYPES, arrays.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)),
)  # fmt: skip
_TREES = st.dictionaries(
    st.text(max_size=9),
    st.recursive(
        _LEAVES,
        lambda inner: st.one_of(
            st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=9), inner, max_size=4)
        ),
        max_leaves=9,
    ),
    max_size=5,
)


@given(_TREES)
@examples(200)
def test_any_tree_comes_back_as_it_was(tree: dict[str, Any]) -> None:
    assert equal(decode(encode(state(tree))).tree, tree)


def resealed(data: bytes) -> bytes:
    """The same bytes with the checksum that fits them."""
    return data[:4] + struct.pack("<I", zlib.crc32(data[8:])) + data[8:]


@st.composite
def damage(draw: st.DrawFn) -> Callable[[bytes], bytes]:
    """Bytes replaced, removed or added somewhere."""
    start, length = draw(st.floats(0, 1)), draw(st.integers(0, 30))
    put = draw(st.binary(max_size=30))

    def apply(data: bytes) -> bytes:
        index = int(start * len(data))
        return data[:index] + put + data[index + length :]

    return apply


@given(damage(), st.booleans())
@examples(400)
def test_damaged_bytes_raise_only_state_errors(spoil: Callable[[bytes], bytes], seal: bool) -> None:
    data = spoil(VALID)
    with contextlib.suppress(StateError):
        decode(resealed(data) if seal and len(data) >= 8 else data)


def sealed(listing: bytes, tree: bytes, rest: bytes = b"", header: bytes | None = None) -> bytes:
    """The bytes of a state with these parts, right or wrong."""
    length = struct.Struct("<I")
    content = length.pack(len(listing)) + listing + length.pack(len(tree)) + tree + rest
    if header is None:
        row = {"node": "n1", "boot": "00", "sequence": 1, "start": 1, "entry": "", "saved": 1}
        header = json.dumps(row).encode()
    frame = zstandard.ZstdCompressor().compress(content)
    return resealed(b"RVS\x01" + bytes(4) + length.pack(len(header)) + header + frame)


@given(damage(), damage(), damage())
@examples(400)
def test_damaged_parts_raise_only_state_errors(
    listing: Callable[[bytes], bytes],
    tree: Callable[[bytes], bytes],
    rest: Callable[[bytes], bytes],
) -> None:
    rows = b'[["<f4",[2,3]],["?",[4]]]'
    text = b'{"a":{"$array":0},"b":[{"$array":1}],"c":{"d":1e3}}'
    assert decode(sealed(rows, text, bytes(28))).tree.keys() == {"a", "b", "c"}
    with contextlib.suppress(StateError):
        decode(sealed(listing(rows), tree(text), rest(bytes(28))))


DEEP = b"[" * 100_000 + b"]" * 100_000


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"RVS",
        VALID[:-1],
        b"RVX" + VALID[3:],
        bytes(MAX_BYTES + 1),
        sealed(b"[]", b"[]"),
        sealed(b"{}", b"{}"),
        sealed(DEEP, b"{}"),
        sealed(b"[]", b'{"a":' + DEEP + b"}"),
        sealed(b"[]", b'{"a":{"$array":0}}'),
        sealed(b'[["<f4",[1]]]', b'{"a":{"$array":-1}}', bytes(4)),
        sealed(b'[["<f4",[1]]]', b'{"a":{"$array":true}}', bytes(4)),
        sealed(b'[["O",[1]]]', b"{}", bytes(8)),
        sealed(b'[["<f4",[-1]]]', b"{}", bytes(4)),
        sealed(b'[["<f4",[65536,65536,65536,65536]]]', b"{}", bytes(4)),
        sealed(b'[["<f4",[1,1,1,1,1,1,1,1,1]]]', b"{}", bytes(4)),
        sealed(b'[["<f4",[2]]]', b"{}", bytes(7)),
        sealed(b'[["<f4",[2]]]', b"{}", bytes(9)),
        sealed(b"[]", b'{"a":\xff}'),
        sealed(b"[]", b"{}", header=b"[]"),
        sealed(b"[]", b"{}", header=b'{"node":"n1","boot":"xy","sequence":1}'),
        sealed(b"[]", b"{}", bytes(codec.MAX_DECODED)),
    ],
    ids=range(22),
)
def test_what_is_no_state_is_refused(data: bytes) -> None:
    with pytest.raises(StateError):
        decode(data)


def test_another_version_is_named() -> None:
    other = VALID[:3] + bytes([codec.VERSION + 1]) + VALID[4:]
    with pytest.raises(StateError, match=rf"version {codec.VERSION + 1}, {codec.VERSION} is"):
        decode(other)


def test_a_large_state_is_saved_without_its_optional_sections_in_their_order() -> None:
    noise = RANDOM.normal(size=(3, 10_000))
    tree = {"keep": 1, "live": {"old": noise[0], "new": noise[1][:4000], "age": 7}, "x": noise[2]}
    order = (("absent",), ("keep", "inside"), ("x",), ("live", "old"), ("live", "new"))
    data = encode(state(tree), order)
    assert len(data) <= MAX_BYTES
    left = decode(data).tree
    assert left.keys() == {"keep", "live"}
    assert isinstance(left["live"], dict)
    assert left["live"].keys() == {"new", "age"}


def test_a_state_that_stays_too_large_is_refused() -> None:
    with pytest.raises(StateError, match=f"more than {MAX_BYTES}"):
        encode(state({"x": RANDOM.normal(size=10_000)}), [("y",)])


@pytest.mark.parametrize("value", [b"bytes", {1, 2}, 1j, np.array(["text"]), np.array([None])])
def test_what_is_neither_json_nor_numbers_is_refused(value: Any) -> None:
    with pytest.raises(StateError):
        encode(state({"x": [value]}))


def test_numbers_of_numpy_become_numbers_of_json() -> None:
    tree = decode(encode(state({"a": np.float32(0.5), "b": np.int64(3), "c": np.bool_(True)}))).tree
    assert tree == {"a": 0.5, "b": 3, "c": True}


def test_arrays_in_any_memory_order_come_back() -> None:
    values = np.arange(24, dtype=">f8").reshape(4, 6)
    tree = decode(encode(state({"t": values.T, "s": values[::2, ::-3]}))).tree
    assert np.array_equal(np.asarray(tree["t"]), values.T)
    assert np.array_equal(np.asarray(tree["s"]), values[::2, ::-3])
