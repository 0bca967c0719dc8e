from __future__ import annotations

import random
from dataclasses import replace
from itertools import islice, pairwise

import numpy as np
import pytest

from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Kind, Lane
from scenariobench.compose import slices
from scenariobench.splice import (
    Layer,
    Shift,
    bouncing,
    calm_seconds,
    fault_seconds,
    quiet_levels,
)
from scenariobench.timeline import Disturbance, DisturbanceKind, Span, Timeline
from support.synthetic_clips import CACHED, SWITCHES, TICKS, USAGE, faulty, healthy

START_NS = 1_700_000_000 * 10**9


def _timeline(*spans: Span, disturbances: tuple[Disturbance, ...] = ()) -> Timeline:
    return Timeline("row", "name", 7, 60, (healthy(),), spans, (), disturbances)


def test_neighbors_stay_neighbors_and_all_seconds_come() -> None:
    seconds = list(islice(bouncing(random.Random(1), 3, 12), 2000))
    assert set(seconds) == set(range(3, 12))
    assert max(abs(after - before) for before, after in pairwise(seconds)) == 1


def test_the_order_turns_only_where_it_may() -> None:
    may_turn = [second == 6 for second in range(12)]
    seconds = list(islice(bouncing(random.Random(1), 0, 12, None, may_turn), 2000))
    turns = {b for a, b, c in zip(seconds, seconds[1:], seconds[2:], strict=False) if a == c}
    assert turns == {0, 6, 11}


def test_a_checkpoint_is_no_calm_second() -> None:
    written = Channel("storage.disk.write_bytes", "vda", Kind.COUNTER, 512.0, Lane.FAST)
    clip = healthy(seconds=40)
    clip = replace(clip, channels=ChannelTable((SWITCHES, written), (CACHED,)))
    clip.fast[:, :, 1] = 0
    clip.fast[20, 3, 1] = 100_000
    assert [second for second in range(40) if not calm_seconds(clip)[second]] == [*range(12, 29)]


def test_a_checkpoint_in_a_fault_is_played_once() -> None:
    clip = faulty()
    written = Channel("storage.disk.write_bytes", "vda", Kind.COUNTER, 512.0, Lane.FAST)
    clip = replace(clip, channels=ChannelTable((SWITCHES, written, USAGE), (CACHED,)))
    clip.fast[:, :, 1] = 0
    clip.fast[9, 3, 1] = 100_000
    order = fault_seconds(clip, 200, random.Random(1))
    assert order.count(9) == 1
    assert set(order[12:200]) == {10, 11, 12, 13, 14}


@pytest.mark.parametrize("low", [0, 5])
def test_a_single_second_repeats(low: int) -> None:
    assert list(islice(bouncing(random.Random(1), low, low + 1), 5)) == [low] * 5


@pytest.mark.parametrize("seconds", [3, 10, 400])
def test_a_fault_lasts_as_long_as_it_should(seconds: int) -> None:
    order = fault_seconds(faulty(), seconds, random.Random(1))
    assert order[0] == 5
    assert order[seconds] == 15, "the second in which it ends"
    assert set(order[1:seconds]) <= set(range(6, 15))
    assert order[seconds:] == list(range(15, 25))


def test_gauges_are_moved_to_the_level_of_the_base() -> None:
    shift = Shift(quiet_levels(faulty(cached=900)), quiet_levels(healthy(cached=500)))
    frame = shift.apply(faulty(cached=900).frame(6))
    assert frame.slow.tolist() == [500]
    assert frame.fast[0].tolist() == [60, 2000, 1_000_000], "counters stay as they are"


def test_a_layer_adds_only_what_the_fault_changed() -> None:
    layer = Layer(faulty(cached=900))
    frame = layer.add(healthy(cached=500).frame(0), 8)
    assert frame.table.fast == (*healthy().channels.fast, USAGE)
    assert frame.fast[3].tolist() == [60, 2000, 1_000_000]
    assert frame.slow.tolist() == [500]


def test_a_layer_keeps_low_rates() -> None:
    clip, base = faulty(), healthy()
    clip.fast[:5, :, 0] = base.fast[:, :, 0] = 0
    clip.fast[:5, ::2, 0] = base.fast[:, ::2, 0] = 1
    clip.fast[5:15, :, 0] = np.arange(TICKS) % 2 == 0
    layer = Layer(clip)
    sums = [layer.add(base.frame(second), 8).fast[:, 0].sum() for second in range(20)]
    assert np.mean(sums) == pytest.approx(5, abs=0.5)


def test_a_layer_does_not_relieve_a_cpu() -> None:
    clip = faulty()
    clip.fast[5:15, :, 1] = 0
    frame = Layer(clip).add(healthy().frame(0), 8)
    assert frame.fast[3].tolist() == [60, 2000, 1_000_000], "less pressure is left out"


def test_nothing_waits_for_longer_than_the_tick_lasts() -> None:
    clip = faulty()
    clip.fast[5:15, :, 1] = 99_000
    frame = Layer(clip).add(healthy().frame(0), 8)
    assert frame.fast[:, 1].max() == 99_000
    base = healthy()
    base.fast[:, :, 1] = 60_000
    assert Layer(clip).add(base.frame(0), 8).fast[:, 1].max() == 100_000


def test_slices_follow_each_other() -> None:
    played = list(slices(_timeline(Span(faulty(), 20, 12)), START_NS))
    assert [each.message.sequence for each in played] == list(range(60))
    assert {b.message.start_ns - a.message.start_ns for a, b in pairwise(played)} == {10**9}
    present = [each.second for each in played if USAGE in each.table.fast]
    assert present == list(range(20, 33))
    switches = [int(each.frame.fast[:, 0].sum()) for each in played]
    assert switches[19] == 100
    assert set(switches[20:32]) == {600}
    assert set(switches[32:]) == {100}


def test_the_same_seed_gives_the_same_slices() -> None:
    first, second = (list(slices(_timeline(Span(faulty(), 20, 30)), START_NS)) for _ in range(2))
    assert all(
        np.array_equal(a.message.fast, b.message.fast) for a, b in zip(first, second, strict=True)
    )


def _disturbed(*disturbances: Disturbance) -> list[tuple[int, int, int, bytes]]:
    return [
        (each.second, each.message.sequence, each.message.start_ns, each.message.boot)
        for each in slices(_timeline(disturbances=disturbances), START_NS)
    ]


def test_a_gap_leaves_numbers_out() -> None:
    rows = _disturbed(Disturbance(DisturbanceKind.GAP, 10, 20))
    assert [row[1] for row in rows] == [*range(10), *range(30, 60)]


def test_a_clock_that_is_set_keeps_the_numbers() -> None:
    rows = _disturbed(Disturbance(DisturbanceKind.CLOCK, 10, step_s=-7200))
    assert [row[1] for row in rows] == list(range(60))
    assert rows[10][2] - rows[9][2] == -7199 * 10**9


def test_a_node_that_comes_back_has_booted() -> None:
    rows = _disturbed(Disturbance(DisturbanceKind.AWAY, 10, 20))
    assert [row[:2] for row in rows[9:12]] == [(9, 9), (30, 0), (31, 1)]
    assert len({row[3] for row in rows}) == 2
    assert rows[10][2] - rows[9][2] == 21 * 10**9


def test_missing_channels_stay_in_the_table() -> None:
    disturbance = Disturbance(DisturbanceKind.MISSING, 10, 5, ("cpu.context", "memory."))
    played = list(slices(_timeline(disturbances=(disturbance,)), START_NS))
    frame = played[12].frame
    assert frame.fast_missing[:, 0].all()
    assert not frame.fast_missing[:, 1].any()
    assert frame.slow_missing.all()
    assert not played[15].frame.slow_missing.any()


def test_a_device_that_is_gone_leaves_the_table() -> None:
    disturbance = Disturbance(DisturbanceKind.GONE, 22, 0, ("@/fault",))
    played = list(slices(_timeline(Span(faulty(), 20, 12), disturbances=(disturbance,)), START_NS))
    assert USAGE in played[21].table.fast
    assert USAGE not in played[22].table.fast
    assert played[22].frame.fast.shape == (10, 2)
    assert played[22].table.slow == (CACHED,)
    assert played[22].table.fast[0] == SWITCHES
