"""Stalled subjects, in contrast to subjects that end, pause or never worked."""

from __future__ import annotations

import numpy as np
import pytest

from reveal_analyzer.derive.stalls import StallCounter
from reveal_contract.channels import Channel

CHANNELS = (Channel("cpu.subject.usage", "/job"), Channel("cpu.subject.tasks", "/job"))
BUSY, IDLE = 3e8, 0.0


def still(usages: list[float], tasks: list[float]) -> list[float]:
    watch = StallCounter()
    rows = zip(usages, tasks, strict=True)
    return [watch.push(CHANNELS, np.array(row)) for row in rows]


def test_a_steady_job_without_cpu_time_stands_still_until_it_works_again() -> None:
    stalled = still([BUSY] * 30 + [IDLE] * 6 + [BUSY], [4.0] * 37)
    assert stalled == [0] * 33 + [1] * 3 + [0]


@pytest.mark.parametrize(
    ("usages", "tasks"),
    [
        ([BUSY] * 30 + [IDLE] * 10, [4.0] * 30 + [0.0] * 10),  # it ended
        ([BUSY] * 30 + [IDLE] * 10, [4.0] * 30 + [1.0] * 10),  # its workers ended
        ([BUSY] * 30 + [IDLE] * 10, [4.0] * 29 + [1.0] * 11),  # and were counted at once
        ([BUSY] * 30 + [IDLE] * 10, [4.0] * 31 + [float("nan")] * 9),  # its levels are gone
        ([BUSY] * 10 + [IDLE] * 10, [4.0] * 20),  # it has just begun
        (([BUSY] * 20 + [IDLE] * 6) * 3, [4.0] * 78),  # it pauses often
        ([IDLE] * 40, [4.0] * 40),  # it never worked
        (([BUSY] * 10 + [3e6] + [BUSY] * 10 + [IDLE] * 5) * 2, [4.0] * 52),  # it comes and goes
    ],
)
def test_what_is_no_standstill(usages: list[float], tasks: list[float]) -> None:
    assert sum(still(usages, tasks)) == 0


def test_process_groups_are_too_coarsely_counted() -> None:
    watch = StallCounter()
    group = (Channel("cpu.subject.usage", "pgrp:job[1]"),)
    assert sum(watch.push(group, np.array([v])) for v in [BUSY] * 30 + [IDLE] * 9) == 0


NAN = float("nan")
MEMORY = Channel("memory.subject.anon", "/job")
GIB, SHELL = 2.0**30, 2.0**20


def with_memory(
    tasks: list[float] | None, memory: list[float], usages: list[float] | None = None
) -> list[float]:
    """Return the stalls of a job that works for 30 s; without ``tasks`` nothing counts them."""
    usages = usages or [BUSY] * 30 + [IDLE] * (len(memory) - 30)
    watch = StallCounter()
    channels = (*(CHANNELS if tasks else CHANNELS[:1]), MEMORY)
    rows = zip(usages, *([tasks] if tasks else []), memory, strict=True)
    return [watch.push(channels, np.array(row)) for row in rows]


def test_an_ended_job_whose_exit_status_nobody_collects_has_no_memory() -> None:
    zombie = with_memory([4.0] * 40, [GIB] * 30 + [0.0] * 10)
    assert sum(zombie) == 0


def test_a_count_that_is_read_late_makes_no_stall_of_an_ended_job() -> None:
    """The tasks of an idle cgroup are read every five seconds only."""
    late = with_memory([4.0] * 36 + [1.0] * 4, [GIB] * 30 + [SHELL] * 10)
    assert sum(late) == 0


def test_memory_alone_shows_whether_a_job_is_alive() -> None:
    assert sum(with_memory(None, [GIB] * 40)) == 7
    assert sum(with_memory(None, [GIB] * 30 + [SHELL] * 10)) == 0


def test_without_tasks_and_memory_nobody_knows_whether_it_is_alive() -> None:
    watch = StallCounter()
    usages = [BUSY] * 30 + [IDLE] * 20
    assert sum(watch.push(CHANNELS[:1], np.array([usage])) for usage in usages) == 0


def test_a_stopped_job_that_is_swapped_out_later_still_stands_still() -> None:
    swapped = with_memory([4.0] * 60, [GIB] * 45 + [GIB / 10] * 15)
    assert swapped == [0] * 33 + [1] * 27


def test_a_stall_that_is_not_read_is_missing_and_goes_on_when_it_is_read_again() -> None:
    usages = [BUSY] * 30 + [IDLE] * 6 + [NAN] * 20 + [IDLE] * 3 + [BUSY]
    expected = [0] * 33 + [1] * 3 + [NAN] * 20 + [1] * 3 + [0]
    np.testing.assert_array_equal(still(usages, [4.0] * 60), expected)


def test_a_stalled_job_that_ends_while_it_is_not_read_does_not_stand_still() -> None:
    usages = [BUSY] * 30 + [IDLE] * 6 + [NAN] * 5 + [IDLE] * 3
    expected = [0] * 33 + [1] * 3 + [NAN] * 5 + [0] * 3
    np.testing.assert_array_equal(still(usages, [4.0] * 41 + [0.0] * 3), expected)


BOTH = (*CHANNELS, Channel("cpu.subject.usage", "/next"), Channel("cpu.subject.tasks", "/next"))


def beside(usages: list[float], others: list[float]) -> list[float]:
    """Return the stalls of two jobs with these usages."""
    watch = StallCounter()
    rows = [(usage, 4.0, other, 4.0) for usage, other in zip(usages, others, strict=True)]
    return [watch.push(BOTH, np.array(row)) for row in rows]


def test_without_a_usage_that_was_read_the_count_is_missing() -> None:
    assert np.isnan(still([NAN] * 3, [4.0] * 3)).all()
    assert beside([NAN] * 3, [BUSY] * 3) == [0] * 3
    assert StallCounter().push((), np.array([])) == 0


def test_a_job_that_disappears_while_it_works_stands_not_still() -> None:
    assert sum(beside([BUSY] * 30 + [NAN] * 10, [BUSY] * 40)) == 0


def test_a_stalled_job_that_is_not_read_hides_no_other_stall() -> None:
    usages = [BUSY] * 30 + [IDLE] * 6 + [NAN] * 4
    others = [BUSY] * 34 + [IDLE] * 6
    expected = [0] * 33 + [1] * 3 + [NAN] + [1] * 3
    np.testing.assert_array_equal(beside(usages, others), expected)


def test_a_job_that_leaves_the_table_does_not_stand_still() -> None:
    watch = StallCounter()
    renamed = (Channel("cpu.subject.usage", "/next"), Channel("cpu.subject.tasks", "/next"))
    stalled = [watch.push(CHANNELS, np.array([BUSY, 4.0])) for _ in range(30)]
    stalled += [watch.push(CHANNELS, np.array([IDLE, 4.0])) for _ in range(3)]
    stalled += [watch.push(renamed, np.array([IDLE, 4.0])) for _ in range(9)]
    stalled += [watch.push(list(CHANNELS), np.array([IDLE, 4.0])) for _ in range(9)]
    assert sum(stalled) == 0


SERVER = (*CHANNELS, Channel("network.subject.rx_packets", "/job"))


def served(packets: list[float], usages: list[float]) -> list[float]:
    watch = StallCounter()
    rows = zip(usages, [4.0] * len(usages), packets, strict=True)
    return [watch.push(SERVER, np.array(row)) for row in rows]


@pytest.mark.parametrize("late", [0.0, 60.0])  # its network is read late, with the last requests
def test_a_server_that_nobody_asks_waits(late: float) -> None:
    packets = [60.0] * 30 + [0.0] * 4 + [late] + [0.0] * 25
    assert sum(served(packets, [BUSY] * 30 + [IDLE] * 30)) == 0


def test_a_frozen_server_stands_still_while_its_clients_go_on() -> None:
    packets = [60.0] * 30 + [0.0] * 4 + [240.0] + [0.0] * 4 + [300.0]
    stalled = served(packets, [BUSY] * 30 + [IDLE] * 10)
    assert stalled == [0] * 34 + [1] * 6


def test_a_job_with_a_network_that_it_does_not_live_on_stands_still() -> None:
    stalled = served([1.0] * 30 + [0.0] * 6, [BUSY] * 30 + [IDLE] * 6)
    assert stalled == [0] * 33 + [1] * 3


def test_a_network_that_is_not_read_is_no_evidence() -> None:
    assert sum(served([NAN] * 40, [BUSY] * 30 + [IDLE] * 10)) == 7
