"""Which streams are read next, and in which order their entries come."""

from __future__ import annotations

from reveal_analyzer.stream.consumer import BATCH, LEAST, StreamEntry, by_node, entries_per_stream
from reveal_analyzer.stream.poll_schedule import ACTIVE_SECONDS, QUIET_POLLS, PollSchedule
from reveal_contract import names, wire
from support.redis_streams import TABLE, message

SHARDS = set(range(20))


def asked_for(schedule: PollSchedule, now: float, pending: dict[int, int]) -> list[int]:
    """Read once from streams with ``pending`` entries, and remove what was read."""
    asked = schedule.next(SHARDS, now)
    taken = {
        number: min(entries_per_stream(len(asked)), pending.get(number, 0)) for number in asked
    }
    for number, count in taken.items():
        pending[number] = pending.get(number, 0) - count
    schedule.read(asked, {number: count for number, count in taken.items() if count}, now)
    return sorted(asked)


def test_idle_streams_are_polled_in_turn_and_none_is_skipped() -> None:
    schedule = PollSchedule()
    polled = [asked_for(schedule, tick / 20, {}) for tick in range(QUIET_POLLS)]
    assert all(len(asked) == len(SHARDS) // QUIET_POLLS for asked in polled)
    assert sorted(number for asked in polled for number in asked) == sorted(SHARDS)


def test_an_active_stream_is_polled_each_time_until_it_is_idle() -> None:
    schedule = PollSchedule()
    schedule.active([7], 100.0)
    for tick in range(20):
        assert 7 in schedule.next(SHARDS, 100.0 + tick / 20)
    later = [
        schedule.next(SHARDS, 100.0 + ACTIVE_SECONDS + tick / 20) for tick in range(QUIET_POLLS)
    ]
    assert sum(7 in asked for asked in later) == 1


def test_a_stream_with_a_backlog_is_read_alone_next() -> None:
    schedule, pending = PollSchedule(), {3: entries_per_stream(20) + 5}
    schedule.active(SHARDS, 0.0)
    assert asked_for(schedule, 0.0, pending) == sorted(SHARDS)
    assert schedule.behind
    assert asked_for(schedule, 0.0, pending) == [3]
    assert not schedule.behind
    assert asked_for(schedule, 0.0, pending) == sorted(SHARDS)


def test_a_flooded_stream_takes_turns_with_all_others() -> None:
    schedule, pending = PollSchedule(), {3: 100 * BATCH}
    schedule.active(SHARDS, 0.0)
    asked = [asked_for(schedule, 0.0, pending) for _ in range(7)]
    assert asked[0] == sorted(SHARDS)
    assert asked[1::2] == [[3]] * 3
    assert asked[2::2] == [sorted(SHARDS - {3})] * 3


def test_streams_with_a_backlog_are_read_once_a_round_each() -> None:
    schedule, pending = PollSchedule(), dict.fromkeys(SHARDS, 3 * BATCH)
    schedule.active(SHARDS, 0.0)
    asked_for(schedule, 0.0, pending)
    for _ in range(2):
        alone = [asked_for(schedule, 0.0, pending) for _ in SHARDS]
        assert sorted(alone) == [[number] for number in sorted(SHARDS)]
        assert asked_for(schedule, 0.0, pending) == []  # every stream is behind
    assert max(pending.values()) < BATCH


def test_a_stream_that_went_to_another_analyzer_is_not_read() -> None:
    schedule, pending = PollSchedule(), {3: BATCH, 4: BATCH}
    schedule.active(SHARDS, 0.0)
    asked_for(schedule, 0.0, pending)
    assert schedule.next(SHARDS - {3}, 0.0) == [4]
    assert schedule.next({5}, 0.0) == [5]
    assert not schedule.behind


def test_entries_come_node_by_node_each_in_its_order() -> None:
    sent = [(node, sequence) for sequence in range(4) for node in ("b", "a", "c")]
    entries = [
        StreamEntry(0, b"%d-0" % index, {names.FIELD_DATA.encode(): data})
        for index, data in enumerate(
            wire.encode(message(node, sequence), wire.gauges(TABLE)) for node, sequence in sent
        )
    ]
    broken = [
        StreamEntry(0, b"98-0", {names.FIELD_DATA.encode(): b"no"}),
        StreamEntry(0, b"99-0", {}),
    ]
    got = by_node([*entries[:6], *broken, *entries[6:]])
    assert [int(entry.id.split(b"-")[0]) for entry in got] == [
        0, 3, 6, 9, 1, 4, 7, 10, 2, 5, 8, 11, 98, 99,
    ]  # fmt: skip


def test_a_pause_of_half_a_second_puts_no_stream_behind_where_4000_nodes_send() -> None:
    schedule, pending = (
        PollSchedule(),
        dict.fromkeys(range(names.SHARDS), 4000 // names.SHARDS // 2),
    )
    schedule.active(pending, 0.0)
    asked = schedule.next(set(pending), 0.0)
    schedule.read(
        asked,
        {number: min(entries_per_stream(len(asked)), pending[number]) for number in asked},
        0.0,
    )
    assert not schedule.behind


def test_few_streams_share_a_batch_and_many_get_enough_to_keep_up() -> None:
    assert entries_per_stream(1) == BATCH
    assert entries_per_stream(4) == BATCH // 4
    assert entries_per_stream(1000) == LEAST
