"""Stalled subjects: alive, busy for half a minute, and now without any CPU time.

A job that ends removes its cgroup or its tasks and is not counted.  A job that is stopped (SIGSTOP,
a frozen cgroup) or waits for an event that never comes keeps both.  So do a server without requests
and a rank whose peers write a checkpoint: a subject that worked on network input and receives none
now waits for others, and is not counted either.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reveal_contract.channels import Channel

USAGE, TASKS, RECEIVED = "cpu.subject.usage", "cpu.subject.tasks", "network.subject.rx_packets"
_ACTIVE_S = 30  # busy seconds in a row that make a subject steady
_WORKING = 1e7  # ns of CPU time a second: 1 % of a core
_IDLE = 2e6  # 0.2 %
_STILL_S = 4  # idle seconds in a row that make a stall
_FED_PACKETS = 5.0  # packets per second on average: the job works on network input
# The network of an idle subject is read every five seconds only, so the last packets before the
# stall may count as received since.  A frozen server with active clients receives more than that.
_SILENT_S, _SILENT_SECONDS_OF_PACKETS = (
    6,
    2.0,
)  # seconds, and how many mean seconds of packets may arrive in them
_PROCESS_GROUP = "pgrp:"  # counted in ticks of 10 ms, too coarse to separate idle from nearly idle


@dataclass
class _SubjectActivity:
    usage: deque[float] = field(default_factory=lambda: deque(maxlen=_ACTIVE_S))
    received: deque[float] = field(default_factory=lambda: deque(maxlen=_ACTIVE_S))
    since_idle: deque[float] = field(default_factory=lambda: deque(maxlen=_SILENT_S))
    counts: deque[float] = field(default_factory=lambda: deque(maxlen=_ACTIVE_S))  # of tasks
    tasks: float = float("nan")
    idle: int = 0
    steady: bool = False

    def push(self, usage: float, tasks: float, received: float) -> bool:
        """Add a second; return whether the subject is stalled after it."""
        arrived = 0.0 if math.isnan(received) else received
        if math.isnan(usage) or tasks == 0 or (self.idle and tasks != self.tasks):
            self.usage.clear()
            self.received.clear()
            self.counts.clear()
            self.since_idle.clear()
            self.idle, self.steady, self.tasks = 0, False, tasks
            return False
        if usage > _IDLE:
            self._work(usage, arrived, tasks)
            return False
        self.idle += 1
        self.since_idle.append(arrived)
        return (
            self.steady
            and self.idle >= _STILL_S
            and not (self._waits_for_input or self._tasks_ended)
        )

    def _work(self, usage: float, arrived: float, tasks: float) -> None:
        if self.idle:
            self.idle = 0
            self.since_idle.clear()
        self.usage.append(usage)
        self.received.append(arrived)
        self.counts.append(tasks)
        self.tasks = tasks
        self.steady = len(self.usage) == _ACTIVE_S and min(self.usage) >= _WORKING

    @property
    def _tasks_ended(self) -> bool:
        """Return whether tasks ended in the last busy second."""
        *earlier, last = self.counts
        return last < min(earlier)

    @property
    def _waits_for_input(self) -> bool:
        """Return whether the subject worked on network input and now receives none."""
        mean = sum(self.received) / len(self.received)
        return mean >= _FED_PACKETS and sum(self.since_idle) < _SILENT_SECONDS_OF_PACKETS * mean


class StallCounter:
    """Counts the stalled subjects of one node, second by second."""

    def __init__(self) -> None:
        self._subjects: dict[str, _SubjectActivity] = {}
        self._channels: Sequence[Channel] = ()
        self._counters: dict[str, tuple[int, int, int]] = {}

    def push(self, channels: Sequence[Channel], seconds: NDArray[np.float64]) -> int:
        """Add the values of all channels; return how many subjects are stalled."""
        if channels is not self._channels:
            self._channels, self._counters = channels, _counters(channels)
            self._subjects = {n: s for n, s in self._subjects.items() if n in self._counters}
        stalled = 0
        for name, (usage, tasks, received) in self._counters.items():
            subject = self._subjects.setdefault(name, _SubjectActivity())
            count = seconds.item(tasks) if tasks >= 0 else 1.0
            arrived = seconds.item(received) if received >= 0 else 0.0
            stalled += subject.push(seconds.item(usage), count, arrived)
        return stalled


def _counters(channels: Sequence[Channel]) -> dict[str, tuple[int, int, int]]:
    """Return the channels of usage, tasks and packets of each cgroup; -1 for missing ones."""
    tasks, received = (_by_instance(channels, metric) for metric in (TASKS, RECEIVED))
    return {
        name: (index, tasks.get(name, -1), received.get(name, -1))
        for name, index in _by_instance(channels, USAGE).items()
        if not name.startswith(_PROCESS_GROUP)
    }


def _by_instance(channels: Sequence[Channel], metric: str) -> dict[str, int]:
    return {c.instance: index for index, c in enumerate(channels) if c.metric == metric}
