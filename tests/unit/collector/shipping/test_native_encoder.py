"""The C encoder returns the same bytes as the numpy reference for any readings."""

from __future__ import annotations

import subprocess
import sys
from array import array
from collections.abc import Callable
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_collector import native
from reveal_collector.readers.raw_slice import MISSING, RawSlice, SliceOrigin
from reveal_collector.shipping.native_encoder import Encoder, NativeEncoder, encoder_of
from reveal_collector.shipping.numpy_encoder import NumpyEncoder
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Kind, Lane
from reveal_contract.wire import WireError, decode
from support.property_tests import examples

ORIGIN = SliceOrigin("n1", bytes(range(16)), 100_000)
INSTANCES = "abcdefgh"
# unknown ones, and levels with bounds: a temperature may be below zero, a speed has an "unknown"
METRICS = {
    "m.other": 1.0, "cpu.temperature.board": 1e-3, "network.nic.speed": 1e6, "memory.mem_free": 1.0
}  # fmt: skip
FAST = st.builds(
    Channel,
    st.sampled_from([*METRICS]),
    st.sampled_from(INSTANCES),
    st.sampled_from(tuple(Kind)[:3]),
    members=st.sampled_from((0, 0, 1)),
)
SLOW = st.builds(
    Channel, st.sampled_from([*METRICS]), st.sampled_from(INSTANCES),
    st.sampled_from(tuple(Kind)[:3]),
    st.sampled_from([1.0, *METRICS.values()]), st.sampled_from((Lane.SLOW, Lane.RARE)),
    st.sampled_from((0, 0, 1)),
)  # fmt: skip
EDGES = st.sampled_from(
    [MISSING, MISSING + 1, -55_001, -1, 0, 1, 127, 128, 65_535, 2**31, 2**32, 2**63 - 1]
)
READINGS = st.one_of(st.integers(0, 300), st.just(MISSING), EDGES, st.integers(-(2**63), 2**63 - 1))


needs_library = pytest.mark.skipif(
    native.load().library is None, reason=native.load().unavailable or "loaded"
)


def in_c(origin: SliceOrigin = ORIGIN) -> NativeEncoder:
    library = native.load().library
    assert library is not None
    return NativeEncoder(library, origin)


def by_name(channel: Channel) -> tuple[str, str]:
    return channel.metric, channel.instance


def steady_kinds(
    draw: st.DrawFn, channels: st.SearchStrategy[Channel]
) -> Callable[[], tuple[Channel, ...]]:
    """Return what draws the columns of a table; a channel is of the same kind in all tables."""
    kinds: dict[tuple[str, str, int], Kind] = {}

    def part() -> tuple[Channel, ...]:
        drawn = draw(st.lists(channels, max_size=6, unique_by=by_name))
        return tuple(
            replace(each, kind=kinds.setdefault(each.identity, each.kind)) for each in drawn
        )

    return part


@st.composite
def recordings(draw: st.DrawFn) -> list[RawSlice]:
    """Slices in order: tables come and go, sequences skip, counters fall and stop."""
    fast, slow = steady_kinds(draw, FAST), steady_kinds(draw, SLOW)
    tables = [ChannelTable(fast(), slow()) for _ in range(draw(st.integers(1, 3)))]
    slices, sequence = [], 0
    for _ in range(draw(st.integers(1, 14))):
        sequence += draw(st.sampled_from([1, 1, 1, 1, 1, 2, 3, 12]))
        table, ticks = draw(st.sampled_from(tables)), draw(st.sampled_from([10, 10, 1, 3]))
        slices.append(
            RawSlice(
                sequence, 10**18 + sequence, table,
                draw(rows(ticks * len(table.fast))), draw(rows(len(table.slow))),
                draw(st.lists(st.integers(0, 2**31 - 1), min_size=ticks, max_size=ticks)),
            )
        )  # fmt: skip
    return slices


def rows(count: int) -> st.SearchStrategy[array[int]]:
    cells = st.one_of(READINGS, st.integers(0, 20)) if count else READINGS
    return st.lists(cells, min_size=count, max_size=count).map(lambda cells: array("q", cells))


@needs_library
@pytest.mark.timeout(240)  # 4 s alone, more than 60 s late in a process that has run all others
@given(recordings())
@examples(120)
def test_both_encoders_give_the_same_bytes(slices: list[RawSlice]) -> None:
    ours, reference = in_c(), NumpyEncoder(ORIGIN)
    for raw in slices:
        assert ours.encode(raw) == reference.encode(raw)


@pytest.mark.parametrize("encoder_type", [NumpyEncoder, pytest.param(in_c, marks=needs_library)])
def test_a_level_outside_of_its_bounds_is_missing(
    encoder_type: Callable[[SliceOrigin], Encoder],
) -> None:
    link = Channel("network.nic.speed", "eth0", Kind.STATE, 1e6, Lane.SLOW)
    rare = Channel("storage.disk.reads", "sda", Kind.COUNTER, 1.0, Lane.SLOW)
    swap = Channel("memory.swap_free", "", Kind.GAUGE, 1024.0)
    table = ChannelTable((swap,), (link, rare))
    encoder = encoder_type(ORIGIN)
    found = []
    for sequence, speed in enumerate((25_000, -1, 65_535, 4_294_967_295, 0, 10_000)):
        levels = array("q", [7, -128])
        raw = RawSlice(sequence, 0, table, levels, array("q", [speed, -9 + sequence]), [0, 0])
        message = decode(encoder.encode(raw))
        assert message.fast_missing[:, 0].tolist() == [False, True]
        assert message.slow_missing[1] == (sequence == 0)  # a counter above 2^63
        found.append(None if message.slow_missing[0] else int(message.slow[0]))
    assert found == [25_000, None, None, None, None, 10_000]


def slice_of(sequence: int, cells: list[int], ticks: int = 2) -> RawSlice:
    table = ChannelTable((Channel("m.fast", "a", Kind.COUNTER),), ())
    return RawSlice(sequence, sequence, table, array("q", cells), array("q"), [0] * ticks)


@needs_library
def test_readings_may_lie_in_memory_that_is_not_an_array() -> None:
    shared = memoryview(bytearray(array("q", [5, 9]).tobytes())).cast("q")
    slice_ = replace(slice_of(1, [5, 9]), fast=shared)
    assert in_c().encode(slice_) == in_c().encode(slice_of(1, [5, 9]))


@needs_library
def test_readings_of_a_wrong_length_are_refused_without_side_effects() -> None:
    encoder = in_c()
    encoder.encode(slice_of(1, [5, 9]))
    with pytest.raises(ValueError, match="3 readings for 2 columns"):
        encoder.encode(slice_of(2, [10, 11, 12]))
    after = decode(encoder.encode(slice_of(3, [20, 23])))
    assert after.fast_missing[:, 0].tolist() == [True, False]
    assert after.fast[1, 0] == 3


@needs_library
def test_a_slice_no_message_can_hold_is_refused() -> None:
    for wrong in (
        slice_of(1, [], ticks=0),
        slice_of(-1, [1, 2]),
        slice_of(1, [0] * 101, ticks=101),
    ):
        with pytest.raises(WireError):
            in_c().encode(wrong)


def test_without_the_library_numpy_encodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "load", lambda: native.LoadedLibrary(None, "not built"))
    assert isinstance(encoder_of(ORIGIN), NumpyEncoder)


ENCODER = "reveal_collector.shipping.native_encoder"


def test_the_native_encoder_needs_no_numpy() -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"import sys, {ENCODER}; print(*sys.modules)"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert not {"numpy", "pandas", "redis"} & set(done.stdout.split())
