"""Search for busy processes beyond the number that is followed."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reveal_collector.subjects.process_search import ProcessSearch, ProcessUse, Replacement

PER_LOOK = 4


def search() -> ProcessSearch:
    return ProcessSearch(PER_LOOK, 0.01)


def test_new_processes_come_first_and_all_come_in_turn() -> None:
    found, waiting = search(), set(range(10))
    observed = [found.due(waiting) for _ in range(4)]
    assert observed[0] == [9, 8, 7, 6]
    assert set().union(*observed) == waiting
    assert found.due(waiting | {99})[0] == 99
    assert len(found.due(set())) == 0


def test_many_new_processes_leave_a_share_to_the_others() -> None:
    found, old = search(), set(range(4))
    found.due(old)
    observed: set[int] = set()
    for turn in range(1, 9):
        observed |= set(found.due(old | set(range(100 * turn, 100 * turn + 50))))
    assert old <= observed


def use(total: float, level: float = 0.0) -> ProcessUse:
    return ProcessUse(0.0, total, level)


def test_the_busiest_replace_the_least_busy() -> None:
    idle, busy, job = use(0.0), use(50.0), use(400.0)
    followed, waiting = {1: busy, 2: idle, 3: idle}, {8, 9}
    pairs = search().replacements(followed, {8: job, 9: idle}, waiting, 100.0)
    assert pairs == [Replacement(2, 8)]
    assert search().replacements(followed, {8: busy, 9: job}, waiting, 100.0) == [
        Replacement(2, 9),
        Replacement(3, 8),
    ]


def test_present_use_counts_and_not_that_of_a_whole_life() -> None:
    found = search()
    followed = {1: use(1e6)}  # worked for days, and ended
    assert not found.replacements(followed, {9: use(0.0)}, {9}, 1e6)
    assert found.replacements(followed, {9: use(10.0)}, {9}, 1e6 + 10) == [Replacement(1, 9)]


def test_what_a_process_holds_counts_too() -> None:
    large, small = use(0.0, level=0.5), use(0.0)
    assert search().replacements({1: large}, {9: use(50.0)}, {9}, 100.0) == []
    assert search().replacements({1: small}, {9: use(50.0)}, {9}, 100.0) == [Replacement(1, 9)]


def test_a_pid_used_again_is_another_process() -> None:
    found = search()
    found.replacements({1: use(0.0)}, {9: ProcessUse(0.0, 500.0)}, {9}, 1000.0)
    young = ProcessUse(1005.0, 3.0)
    assert found.replacements({1: use(0.0)}, {9: young}, {9}, 1010.0) == [Replacement(1, 9)]


@given(st.lists(st.sets(st.integers(1, 30)), max_size=20))
def test_no_more_than_a_few_each_time_and_only_those_that_wait(turns: list[set[int]]) -> None:
    found = search()
    for now, waiting in enumerate(turns):
        due = found.due(waiting)
        assert len(due) == len(set(due)) == min(PER_LOOK, len(waiting))
        assert set(due) <= waiting
        found.replacements({}, {pid: use(0.0) for pid in due}, waiting, float(now))
