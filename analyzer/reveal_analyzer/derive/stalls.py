"""Subjects that stand still: alive, never idle for half a minute, and now without any CPU time.

A job that ends takes its cgroup or its tasks with it and is not counted; one that is stopped
(SIGSTOP, a frozen cgroup) or waits for something that never comes keeps both.  So does a server
that nobody asks any more, and a rank whose peers write their checkpoint: who worked on what came
over its network, and to whom nothing comes now, waits for others and is not counted either.
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
_ACTIVE_S = 30  # seconds without an idle one that make a subject steady
_WORKING = 1e7  # ns of CPU time a second: 1 % of a core
_IDLE = 2e6  # 0.2 %
_STILL_S = 4  # idle seconds in a row that are a standstill
_FED = 5.0  # packets a second, on average: what a job works on comes over its network
# Of who is idle the network is read every five seconds only, and what came last may count as
# having come since; the frozen server of clients that go on gets more than that.
_SILENT_S, _SILENT = 6, 2.0  # seconds, and of how many the usual packets may come in them
_PROCESS_GROUP = "pgrp:"  # counted in ticks of 10 ms: too coarse to tell idle from nearly so


@dataclass
class _Subject:
    usage: deque[float] = field(default_factory=lambda: deque(maxlen=_ACTIVE_S))
    received: deque[float] = field(default_factory=lambda: deque(maxlen=_ACTIVE_S))
    since: deque[float] = field(default_factory=lambda: deque(maxlen=_SILENT_S))
    counts: deque[float] = field(default_factory=lambda: deque(maxlen=_ACTIVE_S))  # of tasks
    tasks: float = float("nan")
    idle: int = 0
    steady: bool = False

    def push(self, usage: float, tasks: float, received: float) -> bool:
        """Whether it stands still after this second."""
        came = 0.0 if math.isnan(received) else received
        if math.isnan(usage) or tasks == 0 or (self.idle and tasks != self.tasks):
            self.usage.clear()
            self.received.clear()
            self.counts.clear()
            self.since.clear()
            self.idle, self.steady, self.tasks = 0, False, tasks
            return False
        if usage > _IDLE:
            self._work(usage, came, tasks)
            return False
        self.idle += 1
        self.since.append(came)
        return self.steady and self.idle >= _STILL_S and not (self._waits or self._ended)

    def _work(self, usage: float, came: float, tasks: float) -> None:
        if self.idle:
            self.idle = 0
            self.since.clear()
        self.usage.append(usage)
        self.received.append(came)
        self.counts.append(tasks)
        self.tasks = tasks
        self.steady = len(self.usage) == _ACTIVE_S and min(self.usage) >= _WORKING

    @property
    def _ended(self) -> bool:
        """Whether its last second at work was one in which tasks ended: counted after they did."""
        *before, last = self.counts
        return last < min(before)

    @property
    def _waits(self) -> bool:
        """Whether it got its work over the network, where nothing comes any more."""
        usual = sum(self.received) / len(self.received)
        return usual >= _FED and sum(self.since) < _SILENT * usual


class StallWatch:
    """Counts the subjects of one node that stand still, second by second."""

    def __init__(self) -> None:
        self._subjects: dict[str, _Subject] = {}
        self._channels: Sequence[Channel] = ()
        self._places: dict[str, tuple[int, int, int]] = {}

    def push(self, channels: Sequence[Channel], seconds: NDArray[np.float64]) -> int:
        """Take the seconds of all channels; how many subjects stand still."""
        if channels is not self._channels:
            self._channels, self._places = channels, _places(channels)
            self._subjects = {n: s for n, s in self._subjects.items() if n in self._places}
        still = 0
        for name, (usage, tasks, received) in self._places.items():
            subject = self._subjects.setdefault(name, _Subject())
            count = seconds.item(tasks) if tasks >= 0 else 1.0
            came = seconds.item(received) if received >= 0 else 0.0
            still += subject.push(seconds.item(usage), count, came)
        return still


def _places(channels: Sequence[Channel]) -> dict[str, tuple[int, int, int]]:
    """Where each cgroup's usage, tasks and packets are; -1 for what is not counted."""
    tasks, received = (_by_instance(channels, metric) for metric in (TASKS, RECEIVED))
    return {
        name: (at, tasks.get(name, -1), received.get(name, -1))
        for name, at in _by_instance(channels, USAGE).items()
        if not name.startswith(_PROCESS_GROUP)
    }


def _by_instance(channels: Sequence[Channel], metric: str) -> dict[str, int]:
    return {c.instance: at for at, c in enumerate(channels) if c.metric == metric}
