"""What became of the slices of a gap: trimmed before they were read, or never arrived."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_analyzer.stream.trimmed import BEHIND_SECONDS, Gap, LostSlices, TrimmedSpans

SHARD = 3
T0 = 1_700_000_000_000  # ms on the clock of Redis
NOW = 5000.0  # s on the clock of the analyzer


def gap(first_s: int, next_s: int) -> Gap:
    """The gap of a node that sends each second, between the slices of these seconds."""
    return Gap(T0 + first_s * 1000, T0 + next_s * 1000, next_s - first_s - 1, 1000)


def read_until(second: int) -> TrimmedSpans:
    """The spans of an analyzer that has read everything until this second, which is now."""
    spans = TrimmedSpans()
    spans.take_over(SHARD, T0)
    spans.read([SHARD], {SHARD: T0 + second * 1000}, (), NOW + second)
    return spans


def come_back(spans: TrimmedSpans, second: int, first: int) -> None:
    assert spans.behind([SHARD], NOW + second) == [SHARD]
    spans.check({SHARD: T0 + first * 1000}, T0 + second * 1000, NOW + second)


def test_what_the_stream_lost_while_the_analyzer_was_away_is_trimmed() -> None:
    spans = read_until(10)
    come_back(spans, 410, first=290)
    assert spans.split(SHARD, gap(10, 290)) == LostSlices(missing=0, trimmed=279)


def test_slices_that_never_arrived_are_missing() -> None:
    spans = read_until(300)
    assert spans.behind([SHARD], NOW + 300 + BEHIND_SECONDS) == []
    assert spans.split(SHARD, gap(100, 300)) == LostSlices(missing=199, trimmed=0)


def test_a_node_that_was_away_before_and_after_the_analyzer_has_both() -> None:
    """The stream has the slices from second 290 on; the node was back at 350."""
    spans = read_until(10)
    come_back(spans, 410, first=290)
    assert spans.split(SHARD, gap(10, 350)) == LostSlices(missing=59, trimmed=280)


def test_a_pause_in_which_nothing_was_trimmed_loses_nothing() -> None:
    spans = read_until(200)
    come_back(spans, 260, first=140)
    assert spans.split(SHARD, gap(200, 230)) == LostSlices(missing=29, trimmed=0)


def test_a_node_that_was_silent_before_the_pause_lost_nothing_then() -> None:
    """It has a shard for itself: the stream begins with its next slice."""
    spans = read_until(10)
    spans.read([SHARD], {}, (), NOW + 300)
    come_back(spans, 320, first=315)
    assert spans.split(SHARD, gap(10, 315)) == LostSlices(missing=289, trimmed=15)


def test_the_gap_of_a_takeover_begins_where_the_last_owner_stopped() -> None:
    """The state of the node is of second 40; the last owner read on, to an entry at 100."""
    spans = TrimmedSpans()
    spans.take_over(SHARD, T0 + 100_000)
    come_back(spans, 500, first=380)
    assert spans.split(SHARD, gap(40, 380)) == LostSlices(missing=0, trimmed=280)


def test_an_analyzer_that_stays_too_slow_loses_more_and_more() -> None:
    spans = read_until(10)
    come_back(spans, 140, first=20)
    spans.read([SHARD], {SHARD: T0 + 25_000}, {SHARD}, NOW + 140)  # there is more
    come_back(spans, 160, first=40)
    assert spans.split(SHARD, gap(10, 20)).trimmed == 9
    assert spans.split(SHARD, gap(25, 40)) == LostSlices(missing=0, trimmed=14)


def test_entries_that_were_pending_and_trimmed_are_not_counted_again() -> None:
    spans = read_until(100)
    spans.pending_lost(SHARD, T0 + 60_000)
    assert spans.split(SHARD, gap(50, 61)) == LostSlices(missing=0, trimmed=0)


def test_nothing_is_known_of_another_shard() -> None:
    spans = read_until(10)
    assert spans.behind([SHARD + 1], NOW + 1e6) == []
    assert spans.split(SHARD + 1, gap(10, 20)) == LostSlices(missing=9, trimmed=0)


@given(st.integers(0, 400), st.integers(1, 400), st.integers(0, 800), st.integers(-400, 400))
def test_no_slice_is_counted_twice(first: int, length: int, head: int, jitter_ms: int) -> None:
    spans = read_until(10)
    come_back(spans, 500, first=head)
    lost = gap(first, first + length)._replace(to_ms=T0 + (first + length) * 1000 + jitter_ms)
    assert sum(spans.split(SHARD, lost)) <= lost.slices
    assert min(spans.split(SHARD, lost)) >= 0


@pytest.mark.parametrize("jitter_ms", [-400, 0, 400])
def test_uneven_times_change_no_count(jitter_ms: int) -> None:
    spans = read_until(10)
    come_back(spans, 410, first=290)
    uneven = gap(10, 290)._replace(from_ms=T0 + 10_000 - 300, to_ms=T0 + 290_400 + jitter_ms)
    assert spans.split(SHARD, uneven) == LostSlices(missing=0, trimmed=279)
