"""Raw rows to messages: differences, resets, wraps, gaps, new tables, rare counters."""

from __future__ import annotations

from array import array
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from reveal_collector.readers.raw_slice import (
    MISSING,
    RARE_SLICES,
    Cells,
    RawSlice,
    SliceOrigin,
    gather,
)
from reveal_collector.shipping.counter_increments import counter_increments
from reveal_collector.shipping.numpy_encoder import MessageBuilder
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Kind, Lane
from reveal_contract.wire import decode, encode

ORIGIN = SliceOrigin("n1", bytes(16), 100_000)
COUNTER = Channel("cpu.user", "0", Kind.COUNTER)
OTHER = Channel("cpu.user", "1", Kind.COUNTER)
LEVEL = Channel("memory.mem_free", "", Kind.GAUGE)
SLOW = Channel("network.six", "", Kind.COUNTER, 1.0, Lane.SLOW)
RARE = Channel("memory.errors", "", Kind.COUNTER, 1.0, Lane.RARE)
INT64 = st.integers(-(2**63), 2**63 - 1)


def raw(table: ChannelTable, sequence: int, fast: Cells, slow: Cells = ()) -> RawSlice:
    ticks = len(fast) // len(table.fast) if table.fast else 1
    rows, row = row_of(fast), row_of(slow)
    return RawSlice(sequence, 1000 + sequence, table, rows, row, [5] * ticks)


def row_of(cells: Cells) -> array[int]:
    row = array("q")
    gather(row, cells)
    return row


def test_a_counter_travels_as_differences_and_a_gauge_as_levels() -> None:
    table = ChannelTable((COUNTER, LEVEL), ())
    builder = MessageBuilder(ORIGIN)
    first = builder.build(raw(table, 0, [10, 7, 13, 8]))
    second = builder.build(raw(table, 1, [20, 9, 20, 6]))
    assert first.fast_missing.tolist() == [[True, False], [False, False]]
    assert first.fast[1].tolist() == [3, 8]
    assert second.fast.tolist() == [[7, 9], [0, 6]]
    assert not second.fast_missing.any()


def test_a_reset_costs_a_sample_and_makes_no_spike() -> None:
    table = ChannelTable((COUNTER,), ())
    builder = MessageBuilder(ORIGIN)
    builder.build(raw(table, 0, [100, 110]))
    after = builder.build(raw(table, 1, [3, 9, 14]))
    assert after.fast_missing[:, 0].tolist() == [True, False, False]
    assert after.fast[1:, 0].tolist() == [6, 5]


def test_a_32_bit_wrap_is_a_reset_and_a_64_bit_wrap_an_ordinary_step() -> None:
    table = ChannelTable((COUNTER, OTHER), ())
    builder = MessageBuilder(ORIGIN)
    message = builder.build(raw(table, 0, [2**32 - 1, 2**64 - 2, 1, 3]))
    assert message.fast_missing[1].tolist() == [True, False]
    assert message.fast[1, 1] == 5


def test_a_counter_above_the_signed_range_keeps_its_differences() -> None:
    table = ChannelTable((COUNTER,), ())
    message = MessageBuilder(ORIGIN).build(raw(table, 0, [2**63 - 1, 2**63 + 4, None]))
    assert message.fast[1, 0] == 5
    assert message.fast_missing[:, 0].tolist() == [True, False, True]


def test_a_lost_level_is_missing_and_a_lost_count_is_known_from_the_next_reading() -> None:
    table = ChannelTable((COUNTER, LEVEL), ())
    message = MessageBuilder(ORIGIN).build(raw(table, 0, [1, 1, None, None, 4, 2, 5, 2]))
    assert message.fast_missing.tolist() == [
        [True, False], [False, True], [False, False], [False, False],
    ]  # fmt: skip
    assert message.fast[1:, 0].tolist() == [2, 1, 1]
    assert message.fast[2:, 1].tolist() == [2, 2]


def test_a_collector_that_misses_every_other_tick_sends_its_counters() -> None:
    table = ChannelTable((COUNTER,), ())
    builder = MessageBuilder(ORIGIN)
    counts = [100 * tick if tick % 2 == 0 else None for tick in range(20)]
    first = builder.build(raw(table, 0, counts[:10]))
    second = builder.build(raw(table, 1, counts[10:]))
    assert first.fast_missing[:, 0].tolist() == [True] + [False] * 8 + [True]
    assert second.fast_missing[:, 0].tolist() == [True] + [False] * 8 + [True]
    assert set(first.fast[1:9, 0]) == set(second.fast[1:9, 0]) == {100}


def test_a_gap_is_bridged_from_the_last_slice_but_never_over_a_reset_or_an_unknown_end() -> None:
    table = ChannelTable((COUNTER,), ())
    builder = MessageBuilder(ORIGIN)
    builder.build(raw(table, 0, [1, 2]))
    message = builder.build(raw(table, 1, [None, None, 12, None, 3, None]))
    assert message.fast_missing[:, 0].tolist() == [False] * 3 + [True] * 3
    assert message.fast[:3, 0].tolist() == [4, 3, 3]


@given(st.lists(st.none() | st.integers(0, 50), min_size=1, max_size=10), st.integers(0, 2**64 - 1))
def test_what_is_sent_of_a_counter_adds_up_to_its_readings(
    steps: list[int | None], start: int
) -> None:
    """``None`` is a tick that was missed, a number the increment since the reading before."""
    table, total, cells = ChannelTable((COUNTER,), ()), start, list[int | None]()
    for step in steps:
        total += step or 0
        cells.append(None if step is None else total % 2**64)
    builder = MessageBuilder(ORIGIN)
    builder.build(raw(table, 0, [start]))
    message = builder.build(raw(table, 1, cells))
    known = ~message.fast_missing[:, 0]
    assert message.fast[known, 0].sum() == sum(step or 0 for step in steps)
    trailing = next((n for n, cell in enumerate(reversed(cells)) if cell is not None), len(cells))
    assert int((~known).sum()) == trailing


def test_no_difference_spans_a_gap_in_the_sequence() -> None:
    table = ChannelTable((COUNTER,), (SLOW,))
    builder = MessageBuilder(ORIGIN)
    builder.build(raw(table, 4, [1, 2], [5]))
    after = builder.build(raw(table, 7, [50, 51], [99]))
    assert after.fast_missing[:, 0].tolist() == [True, False]
    assert after.slow_missing.tolist() == [True]


def test_a_new_table_keeps_the_differences_of_the_columns_that_stay() -> None:
    builder = MessageBuilder(ORIGIN)
    builder.build(raw(ChannelTable((COUNTER,), ()), 0, [1, 2]))
    message = builder.build(raw(ChannelTable((OTHER, COUNTER), ()), 1, [50, 6, 51, 8]))
    assert message.fast[:, 1].tolist() == [4, 2]
    assert message.fast_missing.tolist() == [[True, False], [False, False]]


def test_a_message_survives_the_wire_format() -> None:
    table = ChannelTable((COUNTER, LEVEL), (SLOW,))
    builder = MessageBuilder(ORIGIN)
    builder.build(raw(table, 0, [1, 2, 3, 4], [8]))
    message = builder.build(raw(table, 1, [None, 2, 9, None], [10]))
    back = decode(encode(message, builder.gauges), builder.gauges)
    assert back.fast_missing.tolist() == message.fast_missing.tolist()
    assert back.slow.tolist() == [2]


@given(st.lists(st.integers(1, 10**12), min_size=1, max_size=4), st.integers(1, 4))
def test_a_rare_counter_is_paid_out_evenly_and_in_full(steps: list[int], early: int) -> None:
    table = ChannelTable((), (RARE,))
    builder = MessageBuilder(ORIGIN)
    total, paid, sequence = 1000, [], 0
    builder.build(raw(table, sequence, [], [total]))
    for step in steps:
        total += step
        for _ in range(RARE_SLICES + early):
            sequence += 1
            paid.append(int(builder.build(raw(table, sequence, [], [total])).slow[0]))
    assert sum(paid) == sum(steps)
    assert max(paid) <= -(-max(steps) // RARE_SLICES)


@given(st.lists(st.booleans(), min_size=RARE_SLICES, max_size=3 * RARE_SLICES))
def test_what_is_left_of_a_rare_step_waits_while_the_counter_is_missing(gaps: list[bool]) -> None:
    """A gap in the sequence makes the next increment missing, and nothing is deducted for it."""
    table = ChannelTable((), (RARE,))
    builder = MessageBuilder(ORIGIN)
    builder.build(raw(table, 0, [], [0]))
    sent = int(builder.build(raw(table, 1, [], [1000])).slow[0])
    sequence = 1
    for gap in [*gaps, *[False] * RARE_SLICES]:
        sequence += 2 if gap else 1
        message = builder.build(raw(table, sequence, [], [1000]))
        assert bool(message.slow_missing[0]) is gap
        sent += 0 if gap else int(message.slow[0])
    longest = max(map(len, "".join("x" if gap else " " for gap in gaps).split()), default=0)
    assert sent == 1000 or longest > RARE_SLICES


def test_what_is_left_of_a_rare_step_is_dropped_when_it_is_outdated() -> None:
    table = ChannelTable((), (RARE,))
    builder = MessageBuilder(ORIGIN)
    builder.build(raw(table, 0, [], [0]))
    builder.build(raw(table, 1, [], [1000]))
    for sequence in range(2, 3 + RARE_SLICES):
        assert builder.build(raw(table, sequence, [], [None])).slow_missing[0]
    builder.build(raw(table, 13, [], [1000]))
    assert builder.build(raw(table, 14, [], [1000])).slow.tolist() == [0]


def test_what_is_left_of_a_rare_step_does_not_outlive_a_long_gap() -> None:
    table = ChannelTable((), (RARE,))
    builder = MessageBuilder(ORIGIN)
    builder.build(raw(table, 0, [], [0]))
    builder.build(raw(table, 1, [], [1000]))
    builder.build(raw(table, 3601, [], [1000]))
    assert builder.build(raw(table, 3602, [], [1000])).slow.tolist() == [0]


def test_a_single_rare_event_is_visible_immediately() -> None:
    table = ChannelTable((), (RARE,))
    builder = MessageBuilder(ORIGIN)
    builder.build(raw(table, 0, [], [0]))
    assert builder.build(raw(table, 1, [], [1])).slow.tolist() == [1]
    assert builder.build(raw(table, 2, [], [1])).slow.tolist() == [0]


@given(st.lists(INT64, min_size=2, max_size=30))
def test_a_difference_is_never_negative_unless_missing(values: list[int]) -> None:
    rows = np.array(values, np.int64)[:, None]
    steps, missing = counter_increments(rows, np.zeros(rows.shape, np.bool_))
    assert ((steps >= 0) | missing).all()
    exact = [(b - a) % 2**64 for a, b in pairwise(values)]
    assert [step for step, gone in zip(steps[:, 0].tolist(), missing[:, 0], strict=True) if not gone
            ] == [step for step in exact if step < 2**63]  # fmt: skip


@given(st.lists(st.none() | st.integers(0, 2**64 - 1), max_size=40))
def test_a_row_keeps_every_bit_and_marks_what_is_missing(cells: list[int | None]) -> None:
    row = array("q", [7])
    gather(row, cells)
    assert len(row) == 1 + len(cells)
    for cell, value in zip([7, *cells], row, strict=True):
        assert value == MISSING if cell is None else value % 2**64 == cell
