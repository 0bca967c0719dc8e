"""The work of the tick thread, with a manual clock and faulty sources."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from reveal_collector.kernel_interfaces.errors import LayoutChanged, Unsupported
from reveal_collector.readers.raw_slice import MISSING, RawSlice
from reveal_collector.sampling import feed as feeds
from reveal_collector.sampling.clock import phase_ns
from reveal_collector.sampling.feed import Feed
from reveal_collector.sampling.rare_feed import RARE_PERIOD_NS, TOLERANCE_NS
from reveal_collector.sampling.sampler import Sampler
from reveal_contract.metric import Lane
from support.sampler_bench import SECOND, TICK, Bench, FakeSource


def column(raw: RawSlice, index: int) -> list[int | None]:
    """Return the values of a fast channel, one for each tick."""
    cells = raw.fast[index :: len(raw.table.fast)]
    return [None if cell == MISSING else cell for cell in cells]


def test_fast_sources_are_read_every_tick_and_slow_sources_once() -> None:
    fast, slow, rare = FakeSource("f"), FakeSource("s", Lane.SLOW), FakeSource("r", Lane.RARE)
    bench = Bench(fast, slow, rare)
    bench.sampler.rare_lane.run_due(0)
    raw = bench.slice()
    assert (fast.reads, slow.reads, rare.reads) == (10, 1, 1)
    assert column(raw, 0) == [100 * n + ord("a") for n in range(1, 11)]
    assert list(raw.slow) == [100 + ord("a")] * 2
    assert [channel.lane for channel in raw.table.slow] == [Lane.SLOW, Lane.RARE]


def test_slow_sources_are_staggered_over_the_ticks() -> None:
    slow = [FakeSource(f"s{n}", Lane.SLOW) for n in range(5)]
    read_time_ns: dict[str, int] = {}
    bench = Bench(FakeSource("f"), *slow)
    for source in slow:
        source.script = lambda reads, name=source.name: read_time_ns.update({name: bench.clock.now})
    begin = bench.due
    bench.slice()
    assert [(read_time_ns[f"s{n}"] - begin) // TICK for n in range(5)] == [0, 2, 4, 6, 8]


def test_a_rare_source_is_read_every_ten_seconds_and_repeated_between() -> None:
    rare = FakeSource("r", Lane.RARE)
    bench = Bench(rare)
    for now in (0, RARE_PERIOD_NS - 1, RARE_PERIOD_NS):
        bench.sampler.rare_lane.run_due(now)
        assert list(bench.slice().slow) == [rare.reads * 100 + ord("a")]
    assert rare.reads == 2


def test_what_was_read_of_a_rare_source_long_ago_is_missing() -> None:
    rare = FakeSource("r", Lane.RARE)
    bench = Bench(rare)
    bench.sampler.rare_lane.run_due(0)
    read_ns = bench.clock.now
    values = [(bench.slice().slow[0], bench.clock.now - read_ns) for _ in range(20)]
    limit = RARE_PERIOD_NS + TOLERANCE_NS
    assert [value == MISSING for value, _ in values] == [age > limit for _, age in values]
    bench.sampler.rare_lane.run_due(RARE_PERIOD_NS)
    assert bench.slice().slow[0] != MISSING


def test_the_grid_is_the_nodes_own_and_sequences_go_on_after_a_restart() -> None:
    bench = Bench(FakeSource("f"))
    assert bench.due % TICK == phase_ns("n1", TICK)
    first = bench.slice()
    again = Bench(FakeSource("f"))
    again.clock.now = bench.due + SECOND // 2
    again.due = again.sampler.first_due()
    assert again.slice().sequence == first.sequence + 2
    assert {phase_ns(f"node-{n}", TICK) // (TICK // 4) for n in range(40)} == {0, 1, 2, 3}


def test_a_late_tick_is_recorded_and_a_missed_tick_is_missing() -> None:
    source = FakeSource("f")
    bench = Bench(source)
    late = {bench.due + 3 * TICK: 20_000_000, bench.due + 5 * TICK: 130_000_000}
    bench.clock.delay = lambda due: late.get(due, 0)
    raw = bench.slice()
    assert raw.lateness[3] == 20_000
    assert raw.lateness[5] == 130_000
    assert column(raw, 0)[5] is None
    assert raw.lateness[6] == 30_000
    assert column(raw, 0)[6] is not None
    assert (bench.sampler.counts.missed_ticks, source.reads) == (1, 9)


def test_a_standstill_is_a_gap_in_the_sequence() -> None:
    bench = Bench(FakeSource("f"))
    before = bench.slice()
    bench.clock.now = bench.due + 60 * SECOND + TICK // 20
    after = bench.slice()
    assert after.sequence - before.sequence == 61
    assert bench.sampler.counts.skipped_slices == 60
    assert None not in column(after, 0)


def test_a_suspension_is_a_gap_in_the_sequence_and_no_step_of_the_clock() -> None:
    bench = Bench(FakeSource("f"))
    first = bench.slice()
    bench.clock.asleep += 3600 * SECOND
    bench.clock.epoch += 3600 * SECOND
    after = bench.slice()
    assert after.start_ns - first.start_ns == 3601 * SECOND
    assert after.sequence - first.sequence == 3601
    for wobble in (-1000, 1000, SECOND // 2, -SECOND // 2):  # the clocks are not read at once
        bench.clock.asleep += wobble
        assert bench.slice().sequence == after.sequence + 1
        after = bench.slices[-1]


def test_a_step_of_the_wall_clock_moves_stamps_and_nothing_else() -> None:
    bench = Bench(FakeSource("f"))
    before = bench.slice()
    bench.clock.epoch -= 3600 * SECOND
    after = bench.slice()
    assert after.sequence == before.sequence + 1
    assert after.start_ns == before.start_ns + SECOND - 3600 * SECOND
    assert list(after.lateness) == [0] * 10


def test_new_columns_come_with_the_next_table_and_lose_nothing_old() -> None:
    moving, steady = FakeSource("m", columns="ab"), FakeSource("f")
    bench = Bench(moving, steady)

    def change(reads: int) -> None:
        if reads == 4:
            moving.name_columns("cba")
            raise LayoutChanged("m")

    moving.script = change
    during = bench.slice()
    assert len(during.table.fast) == 3
    assert [value % 100 for value in during.fast] == [97, 98, 97] * 10
    after = bench.slice()
    assert [channel.instance for channel in after.table.fast] == ["c", "b", "a", "a"]
    assert [value % 100 for value in after.fast] == [99, 98, 97, 97] * 10


def test_a_column_that_is_gone_is_missing_until_the_next_table() -> None:
    source = FakeSource("m", columns="ab")
    bench = Bench(source)

    def change(reads: int) -> None:
        if reads == 6:
            source.name_columns("b")
            raise LayoutChanged("m")

    source.script = change
    raw = bench.slice()
    assert column(raw, 0)[5:] == [None] * 5
    assert None not in column(raw, 1)


@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), ValueError("garbled")])
def test_a_failing_source_gives_missing_values_and_the_others_go_on(error: Exception) -> None:
    bad, good = FakeSource("b"), FakeSource("g")
    bench = Bench(bad, good)

    def fail(reads: int) -> None:
        if reads == 3:
            raise error

    bad.script = fail
    raw = bench.slice()
    assert [n for n, cell in enumerate(column(raw, 0)) if cell is None] == [2]
    assert None not in column(raw, 1)


def test_a_source_that_keeps_failing_is_left_alone_reopened_later_and_back_with_new_columns() -> (
    None
):
    bad = FakeSource("b")
    bench = Bench(bad, FakeSource("g"))

    def fail(reads: int) -> None:
        raise OSError(19, "No such device")

    bad.script = fail
    bench.slice()
    assert bad.reads == feeds.FAILURES
    broken = bench.sampler.feeds[0]
    bench.sampler.rare_lane.run_due(broken.retry_due_ns - 1)
    assert bad.opened == 0

    bad.script = lambda reads: None
    bad.name_columns("xy")
    bench.sampler.rare_lane.run_due(broken.retry_due_ns)
    assert (bad.closed, bad.opened, broken.broken) == (1, 1, False)
    raw = bench.slice()
    assert [channel.instance for channel in raw.table.fast] == ["x", "y", "a"]
    assert MISSING not in raw.fast


def test_what_cannot_be_reopened_is_tried_less_and_less_often() -> None:
    bad = FakeSource("b")
    broken = Feed(bad)
    bad.script = lambda reads: (_ for _ in ()).throw(OSError(5, "no"))
    for _ in range(feeds.FAILURES):
        assert broken.read() == (None,)

    def refuse() -> None:
        raise Unsupported("gone")

    bad.open = refuse  # type: ignore[method-assign]
    waits = []
    for _ in range(8):
        now = broken.retry_due_ns
        broken.reopen(now)
        waits.append((broken.retry_due_ns - now) // 1_000_000_000)
    assert waits == [2, 4, 8, 16, 32, 60, 60, 60]
    assert broken.broken


@pytest.mark.parametrize("lane", [Lane.FAST, Lane.SLOW, Lane.RARE])
def test_a_source_that_was_not_there_joins_when_it_opens(lane: Lane) -> None:
    steady, late = FakeSource("a"), FakeSource("late", lane)
    bench = Bench(steady)
    bench.sampler = Sampler("n1", [steady], bench.slices.append, clock=bench.clock, absent=[late])
    bench.slice()
    feed = bench.sampler.feeds[1]
    assert (feed.absent, late.opened, late.reads) == (True, 0, 0)
    bench.sampler.rare_lane.run_due(feed.retry_due_ns)
    bench.sampler.rare_lane.run_due(feed.retry_due_ns + RARE_PERIOD_NS)
    bench.slice()
    bench.slice()
    assert (feed.absent, late.opened) == (False, 1)
    assert [len(each.table.fast) + len(each.table.slow) for each in bench.slices] == [1, 2, 2]


def test_a_source_that_is_not_there_is_asked_for_once_a_minute() -> None:
    missing = FakeSource("late")

    def refuse() -> None:
        raise Unsupported("no driver")

    missing.open = refuse  # type: ignore[method-assign]
    feed = Feed(missing, absent=True)
    for _ in range(3):
        now = feed.retry_due_ns
        feed.reopen(now)
        assert (feed.retry_due_ns - now, feed.absent) == (60 * SECOND, True)


def test_a_wrong_number_of_values_never_shifts_the_columns_of_others() -> None:
    bad = FakeSource("b")
    bench = Bench(bad, FakeSource("g"))
    bad.columns = ["a", "b"]  # more values than channels, without saying so
    raw = bench.slice()
    assert column(raw, 0) == [None] * 10
    assert None not in column(raw, 1)


def timed(source: FakeSource, nanoseconds: Sequence[int], monkeypatch: pytest.MonkeyPatch) -> Feed:
    clock = [0]
    monkeypatch.setattr(feeds, "monotonic_ns", lambda: clock[0])
    slow_feed = Feed(source)
    for spent in nanoseconds:

        def spend(reads: int, spent: int = spent) -> None:
            clock[0] += spent

        source.script = spend
        slow_feed.read()
    return slow_feed


def test_a_source_goes_into_the_lane_granted_and_comes_back_to_the_same_table() -> None:
    moving, steady, slow = FakeSource("m"), FakeSource("f"), FakeSource("s", Lane.SLOW)
    bench = Bench(moving, steady, slow)
    look = bench.sampler.rare_lane.run_due
    before = bench.slice().table

    bench.sampler.limit_lanes({"m": Lane.SLOW, "s": Lane.RARE})
    bench.slice()
    look(0)
    raw = bench.slice()
    lanes = [(channel.metric, channel.lane) for channel in (*raw.table.fast, *raw.table.slow)]
    assert lanes == [("f.x", Lane.FAST), ("m.x", Lane.SLOW), ("s.x", Lane.RARE)]
    assert MISSING not in [*raw.fast, *raw.slow]

    bench.sampler.limit_lanes({})
    bench.slice()  # the rare lane has to let go first
    reads = slow.reads
    look(0)
    bench.slice()
    raw = bench.slice()
    assert raw.table.key == before.key
    assert MISSING not in [*raw.fast, *raw.slow]
    look(RARE_PERIOD_NS)
    assert slow.reads == reads + 1


def test_what_is_granted_never_makes_a_slow_source_fast() -> None:
    source = FakeSource("s", Lane.SLOW)
    bench = Bench(FakeSource("f"), source)
    bench.sampler.limit_lanes({"s": Lane.FAST})
    bench.slice()
    assert [channel.lane for channel in bench.slice().table.slow] == [Lane.SLOW]


@pytest.mark.parametrize(
    ("lane", "spent", "goes_to"),
    [
        (Lane.FAST, [150_000] * 50, None),
        (Lane.FAST, [250_000] * 50, Lane.SLOW),
        (Lane.FAST, [20_000] * 48 + [9_000_000] * 2, None),
        (Lane.FAST, [20_000] * 47 + [9_000_000] * 3, Lane.SLOW),
        (Lane.FAST, [250_000] * 20, None),
        (Lane.SLOW, [3_000_000] * 10, None),
        (Lane.SLOW, [7_000_000] * 10, Lane.RARE),
        (Lane.RARE, [900_000_000] * 10, None),
    ],
)
def test_the_lane_follows_the_time_a_read_takes(
    lane: Lane, spent: list[int], goes_to: Lane | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert timed(FakeSource("s", lane), spent, monkeypatch).slower_lane() is goes_to


def test_a_demoted_source_changes_lane_in_the_table_and_is_logged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source, steady = FakeSource("s"), FakeSource("g")
    bench = Bench(source, steady)
    clock = bench.clock
    monkeypatch.setattr(feeds, "monotonic_ns", lambda: clock.now)

    def spend(reads: int) -> None:
        clock.now += 300_000

    source.script = spend
    for _ in range(6):
        raw = bench.slice()
    assert [channel.metric for channel in raw.table.fast] == ["g.x"]
    assert [(c.metric, c.lane) for c in raw.table.slow] == [("s.x", Lane.SLOW)]
    assert bench.sampler.feeds[0].demoted == "s: fast -> slow, a read takes 300 us"
    assert len(raw.slow) == 1
