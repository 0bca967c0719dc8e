"""The position of a slice: repeats, late slices, gaps and restarted collectors."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_analyzer.stream.sequence import MOST_GAP, REMEMBERED, NodeSequence, SlicePosition
from support.redis_streams import T0, message

SECOND = 10**9


def test_the_first_slice_is_neither_gap_nor_restart() -> None:
    assert NodeSequence().accept(message("n", 500)) == SlicePosition()


def test_a_step_of_the_clock_is_no_restart() -> None:
    progress = NodeSequence()
    progress.accept(message("n", 1))
    assert progress.accept(message("n", 2, start_ns=T0 - 3600 * SECOND)) == SlicePosition()
    assert progress.accept(message("n", 2, start_ns=T0 - 3600 * SECOND)) == SlicePosition(
        repeat=True
    )
    assert progress.accept(message("n", 3, start_ns=T0 - 3599 * SECOND)) == SlicePosition()


def test_a_collector_restarted_after_the_clock_was_set_back_is_heard() -> None:
    progress = NodeSequence()
    progress.accept(message("n", 1000))
    back = T0 - 3600 * SECOND
    assert progress.accept(message("n", 0, start_ns=back)) == SlicePosition(restarted=True)
    assert progress.accept(message("n", 1, start_ns=back + SECOND)) == SlicePosition()


def test_a_repeat_older_than_the_memory_is_still_a_repeat() -> None:
    progress = NodeSequence()
    for sequence in range(REMEMBERED + 50):
        progress.accept(message("n", sequence))
    assert progress.accept(message("n", 3)) == SlicePosition(repeat=True)


def test_memory_of_a_node_is_bounded() -> None:
    progress = NodeSequence()
    for sequence in range(3 * REMEMBERED):
        progress.accept(message("n", sequence))
    assert len(progress._starts) == REMEMBERED


@pytest.mark.parametrize("sequence", [0, 5, 6])
def test_a_collector_that_restarts_immediately_is_a_restart(sequence: int) -> None:
    progress = NodeSequence()
    for number in range(6):
        progress.accept(message("n", number))
    start = T0 + 5 * SECOND + 1_300_000_000
    position = progress.accept(message("n", sequence, start_ns=start))
    assert position == (SlicePosition(restarted=True) if sequence < 6 else SlicePosition())


def test_a_number_far_ahead_is_another_sequence_and_no_loss() -> None:
    """A single forged slice counted 9.2e18 missing ones."""
    progress = NodeSequence()
    progress.accept(message("n", 0))
    assert progress.accept(message("n", MOST_GAP)).gap == MOST_GAP - 1
    assert progress.accept(message("n", 2**63 - 1)) == SlicePosition(restarted=True)


@dataclass(frozen=True)
class Run:
    """One run of a collector: which slices are delivered, some of them again later."""

    slices: list[int]
    repeats: list[int]


_runs = st.builds(
    Run,
    st.lists(st.integers(0, 300), min_size=1, max_size=30, unique=True).map(sorted),
    st.lists(st.integers(0, 29), max_size=10),
)


@given(st.lists(_runs, min_size=1, max_size=4))
def test_each_slice_is_accepted_once_with_the_gap_before_it(runs: list[Run]) -> None:
    progress = NodeSequence()
    start = T0
    for number, run in enumerate(runs):
        last = None
        for sequence in run.slices:
            sent = message("n", sequence, start_ns=start + sequence * SECOND)
            position = progress.accept(sent)
            if last is None:
                assert position in (SlicePosition(), SlicePosition(restarted=True)) or (
                    number and position.gap
                )
            else:
                assert position == SlicePosition(gap=sequence - last - 1)
            last = sequence
        for index in run.repeats:
            sequence = run.slices[index % len(run.slices)]
            again = message("n", sequence, start_ns=start + sequence * SECOND)
            assert progress.accept(again) == SlicePosition(repeat=True)
        start += 400 * SECOND  # the next collector starts later
