"""Whose waits for a CPU are: those of the subject itself, of others, or of a CPU that wakes up."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reveal_collector.ledger.cpu_waits import CpuTimes, CpuWaits, split_waits

ITSELF, IDLE, BUILD, HOG = 3, 2, 4, 5
TIMES = st.integers(0, 10**12)


def test_threads_fewer_than_the_cpus_do_not_wait_for_each_other() -> None:
    """Four threads beside a build on 16 CPUs: the scheduler puts two of them on one CPU."""
    times = CpuTimes(ran=2_100, waited=1_900, surplus=0, occupied=1.0)
    found = split_waits({ITSELF: 1_600, BUILD: 200, HOG: 100}, ITSELF, IDLE, times)
    assert found == CpuWaits(0, 0, {BUILD: 1_267, HOG: 633})


def test_threads_above_the_cpus_wait_for_each_other_whoever_else_is_there() -> None:
    """Four threads on two CPUs that another subject uses by half: each one lost half."""
    times = CpuTimes(ran=1_000, waited=3_000, surplus=2_000, occupied=1.0)
    waited = {ITSELF: 1_000, HOG: 2_000}
    assert split_waits(waited, ITSELF, IDLE, times) == CpuWaits(1_000, 0, {HOG: 2_000})


def test_alone_all_waits_are_those_of_the_surplus() -> None:
    """A parallel build of six jobs on two CPUs."""
    times = CpuTimes(ran=2_000, waited=4_000, surplus=4_000, occupied=0.0)
    assert split_waits({ITSELF: 4_000}, ITSELF, IDLE, times) == CpuWaits(4_000, 0, {})


def test_threads_on_a_single_cpu_while_others_are_idle_wait_for_these_to_wake_up() -> None:
    times = CpuTimes(ran=3_900, waited=100, surplus=0, occupied=0.1)
    found = split_waits({ITSELF: 60, IDLE: 30, HOG: 10}, ITSELF, IDLE, times)
    assert found == CpuWaits(0, 84, {HOG: 16})


def test_without_known_cpus_waits_for_itself_are_its_own() -> None:
    found = split_waits({ITSELF: 60, IDLE: 30, HOG: 10, BUILD: -1}, ITSELF, IDLE, None)
    assert found == CpuWaits(60, 30, {HOG: 10})


@given(
    st.dictionaries(st.integers(0, 9), TIMES),
    st.builds(CpuTimes, TIMES, TIMES, TIMES, st.floats(0, 1)),
)
def test_no_wait_is_lost_or_negative(waited: dict[int, int], times: CpuTimes) -> None:
    found = split_waits(waited, ITSELF, IDLE, times)
    parts = (found.own, found.idle, *found.others.values())
    assert min(parts) >= 0
    assert abs(sum(parts) - sum(waited.values())) <= len(waited) + 1e-9 * sum(waited.values())
    assert found.own <= waited.get(ITSELF, 0)
