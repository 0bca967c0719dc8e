"""Stalled subjects, in contrast to subjects that end, pause or never worked."""

from __future__ import annotations

import numpy as np
import pytest

from reveal_analyzer.derive.stalls import StallCounter
from reveal_contract.channels import Channel

CHANNELS = (Channel("cpu.subject.usage", "/job"), Channel("cpu.subject.tasks", "/job"))
BUSY, IDLE = 3e8, 0.0


def still(usages: list[float], tasks: list[float]) -> list[int]:
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
        ([BUSY] * 30 + [float("nan")] * 10, [4.0] * 40),  # its cgroup is gone
        ([BUSY] * 10 + [IDLE] * 10, [4.0] * 20),  # it has just begun
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


SERVER = (*CHANNELS, Channel("network.subject.rx_packets", "/job"))


def served(packets: list[float], usages: list[float]) -> list[int]:
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
    nan = float("nan")
    assert sum(served([nan] * 40, [BUSY] * 30 + [IDLE] * 10)) == 7
