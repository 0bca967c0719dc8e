"""Wire v1: golden bytes, round trips, and refusal of everything that is not a message.

Golden files.  ``tests/fixtures/wire/v1-*.bin`` are messages as some release sent them; each must
always decode to the message that ``GOLDEN`` builds for its name.  They are never rewritten:
a file is added when the wire can carry something new, with ``path.write_bytes(encode(...))`` of
its builder, and a new version gets additional files.  zstd may choose other bytes in another
release, so the test compares the encoded *header* with the golden one, and decodes the rest.
"""

from __future__ import annotations

import dataclasses
import struct
import tracemalloc
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from reveal_contract import wire
from reveal_contract.channels import MAX_CHANNELS, Channel, ChannelTable
from reveal_contract.metric import Kind, Lane
from reveal_contract.wire import Message, WireError
from support.property_tests import examples

FIXTURES = Path(__file__).parent.parent / "fixtures" / "wire"
GAUGES = np.array([False, True, False, True])
HEADER = 66  # bytes before the node's name
INT64 = np.iinfo(np.int64)
# crc32, and lengths of what zstd makes, are the only header bytes that may differ
CRC = slice(4, 8)


def build(fast: np.ndarray, slow: np.ndarray, node: str = "node-1", **other: object) -> Message:
    given = {
        "boot": bytes(range(16)), "sequence": 7, "start_ns": 1_700_000_000_123_456_789,
        "tick_us": 100_000, "table": b"\x01\x02\x03\x04\x05\x06\x07\x08",
        "fast_missing": np.zeros(fast.shape, np.bool_),
        "slow_missing": np.zeros(slow.shape, np.bool_),
        "lateness": np.zeros(len(fast), np.int32),
    }  # fmt: skip
    return Message(node=node, fast=fast, slow=slow, **{**given, **other})  # type: ignore[arg-type]


def plain() -> Message:
    fast = (np.arange(40, dtype=np.int64).reshape(10, 4) * 977) % 1009
    return build(fast, np.array([5, -6, 1 << 40], np.int64))


def gaps() -> Message:
    message = plain()
    fast_missing = np.zeros((10, 4), np.bool_)
    fast_missing[0, 1] = fast_missing[3:6, 3] = fast_missing[2, 0] = True
    slow_missing = np.array([False, True, False])
    return dataclasses.replace(
        message,
        fast=np.where(fast_missing, 0, message.fast),
        slow=np.where(slow_missing, 0, message.slow),
        fast_missing=fast_missing,
        slow_missing=slow_missing,
        lateness=np.arange(10, dtype=np.int32) * 1_000 - 7,
    )


def extremes() -> Message:
    fast = np.array([[INT64.max, INT64.min, -1, 0], [INT64.min, INT64.max, 1, -1]], np.int64)
    return build(fast, np.array([INT64.min, INT64.max], np.int64), node="nœud.example")


def empty() -> Message:
    return build(np.zeros((1, 0), np.int64), np.zeros(0, np.int64), node="n" * 253)


GOLDEN: dict[str, Callable[[], Message]] = {
    "v1-plain.bin": plain, "v1-gaps.bin": gaps, "v1-extremes.bin": extremes, "v1-empty.bin": empty,
}  # fmt: skip


def gauges_of(message: Message) -> wire.Bools:
    return GAUGES[: message.fast.shape[1]]


def assert_equal(got: Message, sent: Message) -> None:
    """Compare two messages, except for the values of missing samples, which have no meaning."""
    for name in ("node", "boot", "sequence", "start_ns", "tick_us", "table"):
        assert getattr(got, name) == getattr(sent, name), name
    np.testing.assert_array_equal(got.fast_missing, sent.fast_missing)
    np.testing.assert_array_equal(got.slow_missing, sent.slow_missing)
    observed, slow_observed = ~sent.fast_missing, ~sent.slow_missing
    np.testing.assert_array_equal(got.fast[observed], sent.fast[observed])
    np.testing.assert_array_equal(got.slow[slow_observed], sent.slow[slow_observed])
    lateness = sent.lateness if sent.lateness.size else np.zeros(len(sent.fast), np.int32)
    np.testing.assert_array_equal(got.lateness, lateness)
    assert got.fast.dtype == got.slow.dtype == np.int64


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_bytes_always_decode(name: str) -> None:
    message = GOLDEN[name]()
    assert_equal(wire.decode((FIXTURES / name).read_bytes(), gauges_of(message)), message)


@pytest.mark.parametrize("name", GOLDEN)
def test_encoding_keeps_the_golden_header(name: str) -> None:
    message = GOLDEN[name]()
    golden = (FIXTURES / name).read_bytes()
    encoded = wire.encode(message, gauges_of(message))
    end = HEADER + len(message.node.encode())
    without_crc = [bytes([*data[: CRC.start], *data[CRC.stop : end]]) for data in (encoded, golden)]
    assert without_crc[0] == without_crc[1]
    body = [zstandard.ZstdDecompressor().decompress(data[end:]) for data in (encoded, golden)]
    assert body[0] == body[1]


def test_every_golden_file_has_its_builder() -> None:
    assert {path.name for path in FIXTURES.glob("*.bin")} == GOLDEN.keys()


@st.composite
def messages(draw: st.DrawFn) -> tuple[Message, wire.Bools]:
    ticks, width, slow = draw(st.integers(1, 12)), draw(st.integers(0, 9)), draw(st.integers(0, 9))
    small = st.integers(-300, 300)
    values = draw(st.sampled_from([st.integers(INT64.min, INT64.max), small]))
    message = Message(
        node=draw(st.text(min_size=1, max_size=20).filter(str.isprintable)),
        boot=draw(st.binary(min_size=16, max_size=16)),
        sequence=draw(st.integers(0, 2**64 - 1)),
        start_ns=draw(st.integers(INT64.min, INT64.max)),
        tick_us=draw(st.integers(0, 2**32 - 1)),
        table=draw(st.binary(min_size=8, max_size=8)),
        fast=draw(hnp.arrays(np.int64, (ticks, width), elements=values)),
        slow=draw(hnp.arrays(np.int64, slow, elements=values)),
        fast_missing=draw(hnp.arrays(np.bool_, (ticks, width))),
        slow_missing=draw(hnp.arrays(np.bool_, slow)),
        lateness=draw(hnp.arrays(np.int32, draw(st.sampled_from([0, ticks])))),
    )
    return message, draw(hnp.arrays(np.bool_, width))


@given(messages())
@examples(200)
def test_what_is_encoded_comes_back(given: tuple[Message, wire.Bools]) -> None:
    message, gauges = given
    data = wire.encode(message, gauges)
    assert_equal(wire.decode(data, gauges), message)
    assert wire.peek(data) == (message.node, message.table)


@given(st.binary(max_size=300))
@examples(300)
def test_random_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(WireError):
        wire.decode(data)
    with pytest.raises(WireError):
        wire.decode(b"RVL\x01" + data)
    with pytest.raises(WireError):  # with a valid checksum, the later checks must refuse it
        wire.decode(b"RVL\x01" + struct.pack("<I", zlib.crc32(data)) + data)


@pytest.mark.parametrize("name", GOLDEN)
def test_every_truncation_is_refused(name: str) -> None:
    data = (FIXTURES / name).read_bytes()
    for length in range(len(data)):
        with pytest.raises(WireError):
            wire.decode(data[:length])
        with pytest.raises(WireError):
            wire.peek(data[:length])
    for extra in (b"\0", data):
        with pytest.raises(WireError):
            wire.decode(data + extra)


def test_every_mutation_of_a_byte_is_refused() -> None:
    data = bytearray((FIXTURES / "v1-gaps.bin").read_bytes())
    for index, right in enumerate(data):
        for wrong in {right ^ 1, right ^ 128, right ^ 255, 0, (right + 1) % 256} - {right}:
            data[index] = wrong
            with pytest.raises(WireError):
                wire.decode(bytes(data))
        data[index] = right
    wire.decode(bytes(data))


def sealed(data: bytes) -> bytes:
    """Return the bytes with a valid checksum."""
    return data[:4] + struct.pack("<I", zlib.crc32(data[8:])) + data[8:]


@given(st.data())
@examples(300)
def test_mutations_under_a_right_checksum_never_crash(data: st.DataObject) -> None:
    """Whoever can write to Redis can compute a checksum: decoded or refused, nothing else."""
    message = bytearray((FIXTURES / data.draw(st.sampled_from(sorted(GOLDEN)))).read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        message[data.draw(st.integers(8, len(message) - 1))] = data.draw(st.integers(0, 255))
    try:
        decoded = wire.decode(sealed(bytes(message)), GAUGES)
    except WireError:
        return
    assert decoded.fast.shape == decoded.fast_missing.shape
    assert decoded.slow.shape == decoded.slow_missing.shape


def claim(
    ticks: int = 10, width: int = 4, slow: int = 3, planes: int = 2, frame: bytes = b""
) -> bytes:
    fields = struct.pack(
        "<BBH16sQqI8sIIBB", 0, ticks, 1, b"b" * 16, 1, 1, 1, b"t" * 8, width, slow, planes, planes
    )
    return sealed(b"RVL\x01\0\0\0\0" + fields + b"n" + frame)


def bomb(size: int) -> bytes:
    return zstandard.ZstdCompressor().compress(bytes(size))


@pytest.mark.parametrize(
    "data",
    [
        claim(ticks=100, width=60_000, planes=8),
        claim(ticks=100, width=60_000, planes=0, frame=bomb(400)),
        claim(width=2**32 - 1, slow=2**32 - 1, planes=8),
        claim(ticks=255, width=4_000),
        claim(width=0, slow=MAX_CHANNELS + 1),
        claim(width=4, frame=bomb(64 << 20)),
        claim(planes=255, frame=bomb(1 << 20)),
    ],
    ids=range(7),
)
def test_giant_claims_allocate_nothing(data: bytes) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(WireError):
            wire.decode(data)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_frames_with_a_wrong_length_are_refused() -> None:
    size = 40 + 7 * 2 + 36 * 2  # of claim()'s defaults
    honest = zstandard.ZstdCompressor().compress(bytes(size))
    wire.decode(claim(frame=honest))
    unsized = zstandard.ZstdCompressor(write_content_size=False).compress(bytes(size))
    for frame in (unsized, honest[:-1], honest + honest, b"", bomb(size - 1)):
        with pytest.raises(WireError):
            wire.decode(claim(frame=frame))


@pytest.mark.parametrize("name", ["n\x1b[31m1", "a\nb", "\u202ea", "\0"])
def test_a_node_name_that_could_control_a_terminal_is_refused(name: str) -> None:
    with pytest.raises(WireError, match="not printable"):
        wire.encode(dataclasses.replace(plain(), node=name), GAUGES)
    raw = name.encode()
    data = wire.encode(dataclasses.replace(plain(), node="n" * len(raw)), GAUGES)
    forged = sealed(data[:HEADER] + raw + data[HEADER + len(raw) :])
    with pytest.raises(WireError, match="not printable"):
        wire.decode(forged, GAUGES)
    with pytest.raises(WireError, match="not printable"):
        wire.peek(forged)


def test_a_node_name_that_is_not_utf8_or_too_long_is_refused() -> None:
    data = wire.encode(plain(), GAUGES)
    with pytest.raises(WireError, match="UTF-8"):
        wire.decode(sealed(data[:HEADER] + b"\xff" + data[HEADER + 1 :]))
    for length in (0, 254, 65_535):
        with pytest.raises(WireError):
            wire.decode(sealed(data[:10] + struct.pack("<H", length) + data[12:]))


@pytest.mark.parametrize(
    "wrong",
    [
        {"node": ""},
        {"node": "n" * 254},
        {"boot": b"short"},
        {"table": b""},
        {"sequence": -1},
        {"start_ns": 1 << 63},
        {"tick_us": 1 << 32},
        {"lateness": np.zeros(3, np.int32)},
        {"fast": np.zeros((101, 4), np.int64)},
        {"fast": np.zeros((0, 4), np.int64)},
        {"slow_missing": np.zeros(2, np.bool_)},
        {"fast_missing": np.zeros((10, 3), np.bool_)},
    ],
)
def test_what_could_not_be_decoded_is_not_encoded(wrong: dict[str, object]) -> None:
    with pytest.raises(WireError):
        wire.encode(dataclasses.replace(plain(), **wrong), GAUGES)  # type: ignore[arg-type]


def test_another_table_than_the_messages_is_refused() -> None:
    data = wire.encode(plain(), GAUGES)
    with pytest.raises(WireError, match="3 fast channels"):
        wire.decode(data, GAUGES[:3])


def test_an_unknown_version_is_named_in_the_error() -> None:
    data = wire.encode(plain(), GAUGES)
    with pytest.raises(WireError, match="version 9"):
        wire.decode(data[:3] + b"\x09" + data[4:])


def test_levels_are_all_but_counters() -> None:
    table = ChannelTable(
        tuple(Channel(f"m.{kind}", kind=kind) for kind in (Kind.COUNTER, Kind.GAUGE, Kind.STATE)),
        (Channel("m.slow", lane=Lane.SLOW),),
    )
    assert wire.gauges(table).tolist() == [False, True, True]


def test_missing_values_cost_next_to_nothing() -> None:
    rng = np.random.default_rng(1)
    fast = rng.integers(0, 1 << 40, (10, 4))
    missing = np.ones(fast.shape, np.bool_)
    hidden = build(fast, np.zeros(0, np.int64), fast_missing=missing)
    nothing = build(np.zeros_like(fast), np.zeros(0, np.int64), fast_missing=missing)
    assert len(wire.encode(hidden, GAUGES)) == len(wire.encode(nothing, GAUGES))
