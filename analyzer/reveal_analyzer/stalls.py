"""Tenants that stand still: alive, never idle for half a minute, and now without any CPU time.

A job that ends takes its cgroup or its tasks with it and is not counted; one that is stopped
(SIGSTOP, a frozen cgroup) or waits for something that never comes keeps both.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reveal_contract.channels import Channel

USAGE, TASKS = "cpu.subject.usage", "cpu.subject.tasks"
_ACTIVE_S = 30  # seconds without an idle one that make a subject steady
_WORKING = 1e7  # ns of CPU time a second: 1 % of a core
_IDLE = 2e6  # 0.2 %
_STILL_S = 4  # idle seconds in a row that are a standstill
_PROCESS_GROUP = "pgrp:"  # counted in ticks of 10 ms: too coarse to tell idle from nearly so


@dataclass
class _Subject:
    usage: deque[float] = field(default_factory=lambda: deque(maxlen=_ACTIVE_S))
    tasks: float = float("nan")
    idle: int = 0
    steady: bool = False

    def push(self, usage: float, tasks: float) -> bool:
        """Whether it stands still after this second."""
        if math.isnan(usage) or tasks == 0 or (self.idle and tasks != self.tasks):
            self.usage.clear()
            self.idle, self.steady, self.tasks = 0, False, tasks
            return False
        if usage > _IDLE:
            self.idle = 0
            self.usage.append(usage)
            self.steady = len(self.usage) == _ACTIVE_S and min(self.usage) >= _WORKING
            self.tasks = tasks
            return False
        self.idle += 1
        return self.steady and self.idle >= _STILL_S


class StallWatch:
    """Counts the subjects of one node that stand still, second by second."""

    def __init__(self) -> None:
        self._subjects: dict[str, _Subject] = {}
        self._channels: Sequence[Channel] = ()
        self._places: dict[str, tuple[int, int]] = {}

    def push(self, channels: Sequence[Channel], seconds: NDArray[np.float64]) -> int:
        """Take the seconds of all channels; how many subjects stand still."""
        if channels is not self._channels:
            self._channels, self._places = channels, _places(channels)
            self._subjects = {n: s for n, s in self._subjects.items() if n in self._places}
        still = 0
        for name, (usage, tasks) in self._places.items():
            subject = self._subjects.setdefault(name, _Subject())
            count = seconds.item(tasks) if tasks >= 0 else 1.0
            still += subject.push(seconds.item(usage), count)
        return still


def _places(channels: Sequence[Channel]) -> dict[str, tuple[int, int]]:
    """Where each cgroup's usage and tasks are; -1 for tasks that are not counted."""
    tasks = {c.instance: at for at, c in enumerate(channels) if c.metric == TASKS}
    return {
        c.instance: (at, tasks.get(c.instance, -1))
        for at, c in enumerate(channels)
        if c.metric == USAGE and not c.instance.startswith(_PROCESS_GROUP)
    }
