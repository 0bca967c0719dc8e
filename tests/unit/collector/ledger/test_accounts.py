"""Increments of subjects and pairs between two readings."""

from __future__ import annotations

import pytest

from reveal_collector.ledger.accounts import FIXED, KERNEL_METRICS, METRICS, Interval
from reveal_collector.ledger.disk_latency import AloneLatencies, Requests
from reveal_collector.ledger.programs import SECTOR_BYTES, WRAP, State, Totals
from reveal_collector.ledger.slots import Slot
from reveal_contract import ledger
from reveal_contract.ledger import adds_up
from support.ledger_maps import SECOND, slot, totals

JOB, HOG, SMALL = slot("job", 3), slot("hog", 4), slot("small", 5, busy=0)
KERNEL, OTHER, IDLE = 1, 0, 2
BEFORE = totals(now=SECOND)


def interval(now: Totals) -> Interval:
    now.now = 2 * SECOND
    return Interval(BEFORE, now, (JOB, HOG, SMALL), AloneLatencies())


def counters_of(found: Interval, subject: Slot) -> dict[str, int]:
    return dict(zip(METRICS, found.counters(subject), strict=True))


def test_waits_are_split_by_who_ran() -> None:
    spent = {(3, State.WAIT): 600, (3, State.RUN): 400, (3, State.ALIVE): 1000}
    waited = {(3, 4): 300, (3, KERNEL): 50, (3, OTHER): 50, (3, 3): 150, (3, IDLE): 50}
    counters = counters_of(interval(totals(spent=spent, waited=waited)), JOB)
    assert counters[ledger.WAIT_OTHERS] == 400
    assert counters[ledger.WAIT_SELF] == 150
    assert counters[ledger.WAIT_IDLE] == 50
    assert adds_up({name: float(value) for name, value in counters.items()})


def test_pairs_name_others_and_the_fixed_rows_but_not_the_victim() -> None:
    waited = {(3, 4): 300, (3, KERNEL): 50, (3, OTHER): 60, (3, 3): 150, (3, IDLE): 50}
    pairs = interval(totals(waited=waited)).pairs(JOB)
    assert pairs == {
        ("job", "hog"): (300, 0),
        ("job", "kernel"): (50, 0),
        ("job", "other"): (60, 0),
    }


def test_waits_behind_threads_of_its_own_are_lost_to_who_occupies_the_other_cpus() -> None:
    spent = {
        (3, State.RUN): 2 * SECOND, (3, State.WAIT): 2 * SECOND, (4, State.RUN): 14 * SECOND,
    }  # fmt: skip
    waited = {(3, 3): 3 * SECOND // 2, (3, 4): SECOND // 2}
    found = interval(totals(spent=spent, waited=waited, cpus={3: 16}))
    counters = counters_of(found, JOB)
    assert (counters[ledger.WAIT_OTHERS], counters[ledger.WAIT_SELF]) == (2 * SECOND, 0)
    assert found.pairs(JOB) == {("job", "hog"): (2 * SECOND, 0)}


def test_a_subject_without_an_index_waits_for_itself_by_its_surplus_of_threads() -> None:
    spent = {
        (5, State.RUN): 2 * SECOND, (5, State.WAIT): SECOND, (5, State.SURPLUS): SECOND,
    }  # fmt: skip
    counters = counters_of(interval(totals(spent=spent, cpus={5: 2})), SMALL)
    assert (counters[ledger.WAIT_OTHERS], counters[ledger.WAIT_SELF]) == (0, SECOND)


def test_waits_for_storage_are_split_by_whose_requests_are_under_way() -> None:
    spent = {
        (3, State.IO): SECOND // 2, (3, State.DISK): SECOND // 4, (4, State.DISK): SECOND // 2,
        (KERNEL, State.DISK): SECOND // 4,
    }  # fmt: skip
    found = interval(totals(spent=spent))
    counters = counters_of(found, JOB)
    assert counters[ledger.IO_OTHERS] == 3 * SECOND // 8
    assert counters[ledger.IO_OWN] == SECOND // 8
    assert found.pairs(JOB) == {
        ("job", "hog"): (0, SECOND // 4),
        ("job", "kernel"): (0, SECOND // 8),
    }


def test_counts_of_requests_may_wrap() -> None:
    before = totals(SECOND, ended={(3, 0): (WRAP - 4, WRAP - 8)})
    now = totals(2 * SECOND, {(3, State.DISK): 10}, ended={(3, 0): (6, 72)})
    found = Interval(before, now, (JOB,), AloneLatencies())
    assert found.requests["job"][0] == Requests(10, 10, 80 * SECTOR_BYTES)


def test_a_wait_that_is_no_longer_than_alone_is_its_own() -> None:
    """Ten requests of 10 ms, each of which took 4 ms before the hog had nine of ten under way."""
    alone, ended = AloneLatencies(), {(3, 0): (10, 80)}
    before = Interval(
        BEFORE,
        totals(2 * SECOND, {(3, State.IO): 1, (3, State.DISK): SECOND // 25}, ended=ended),
        (JOB, HOG),
        alone,
    )
    alone.learn(before.requests, {"job", "hog"}, SECOND)
    spent = {
        (3, State.IO): SECOND // 10, (3, State.DISK): SECOND // 10,
        (4, State.DISK): 9 * SECOND // 10,
    }  # fmt: skip
    found = Interval(BEFORE, totals(2 * SECOND, spent, ended=ended), (JOB, HOG), alone)
    counters = counters_of(found, JOB)
    assert counters[ledger.IO_OWN] == SECOND // 25
    assert counters[ledger.IO_OTHERS] == SECOND // 10 - SECOND // 25
    assert found.pairs(JOB) == {("job", "hog"): (0, SECOND // 10 - SECOND // 25)}


def test_a_neighbor_on_another_disk_takes_nothing() -> None:
    spent = {(3, State.IO): SECOND // 2}
    disks = {(3, 0): SECOND // 4, (4, 1): SECOND, (KERNEL, 0): SECOND // 4}
    found = interval(totals(spent=spent, disks=disks))
    assert counters_of(found, JOB)[ledger.IO_OTHERS] == SECOND // 4
    assert counters_of(found, HOG)[ledger.DISK] == SECOND
    assert found.pairs(JOB) == {("job", "kernel"): (0, SECOND // 4)}


def test_without_requests_under_way_waits_for_storage_are_nobody_elses() -> None:
    found = interval(totals(spent={(3, State.IO): SECOND}))
    assert counters_of(found, JOB)[ledger.IO_OWN] == SECOND
    assert found.pairs(JOB) == {}


def test_a_parent_of_vfork_waits_for_no_disk() -> None:
    spent = {(3, State.KILLABLE): SECOND, (4, State.DISK): SECOND}
    counters = counters_of(interval(totals(spent=spent)), JOB)
    assert counters[ledger.KILLABLE] == SECOND
    assert not any(counters[part] for part in ledger.DESIRED)


def test_reclaim_is_time_lost_to_memory_also_on_a_cpu() -> None:
    spent = {(3, State.MEMORY): 30, (3, State.RECLAIM): 12}
    assert counters_of(interval(totals(spent=spent)), JOB)[ledger.MEMORY] == 42


def test_a_subject_without_an_index_has_waits_but_no_culprits() -> None:
    found = interval(totals(spent={(5, State.WAIT): 100}, waited={(0, 4): 100, (0, 0): 7}))
    assert counters_of(found, SMALL)[ledger.WAIT_OTHERS] == 100
    assert found.pairs(SMALL) == {}


def test_every_state_is_a_part_or_a_count_of_its_own() -> None:
    """The parts hold each state off and on the CPU exactly once."""
    states = set(State) - {State.ALIVE, State.DISK, State.SURPLUS}
    spent = {(3, state): 1 << state for state in states}
    counters = counters_of(interval(totals(spent=spent)), JOB)
    assert sum(counters[part] for part in ledger.PARTS) == sum(1 << state for state in states)


def test_desired_time_leaves_out_sleep() -> None:
    spent = {(3, state): SECOND for state in State}
    assert interval(totals(spent=spent)).desired_cpus(JOB) == 9


def test_the_fixed_rows_are_other_and_kernel() -> None:
    assert [row.name for row in FIXED] == [ledger.OTHER, ledger.KERNEL]
    assert set(KERNEL_METRICS) < set(METRICS)


@pytest.mark.parametrize(("ns", "plausible"), [(90 * SECOND, True), (1200 * SECOND, False)])
def test_a_count_without_its_base_is_not_plausible(ns: int, plausible: bool) -> None:
    """A reading between the two is off by the uptime, here of 20 minutes, in either direction."""
    for sign in (1, -1):
        now = totals(now=2 * SECOND, spent={(3, State.SLEEP): sign * ns}, threads={3: 2})
        assert Interval(BEFORE, now, [JOB], AloneLatencies()).is_plausible is plausible
