"""Stalled subjects: alive, busy for half a minute, and now without any CPU time.

A job that is stopped (SIGSTOP, a frozen cgroup) or waits for an event that never comes keeps its
tasks and its memory.  A job that ends keeps neither, also if its cgroup stays, or if nobody has
collected its exit status yet (a zombie counts as a task).  What was not read says nothing: without
a count of tasks or the memory in use, nobody knows whether a subject is alive.

A server without requests and a rank whose peers write a checkpoint are not counted either: a
subject that worked on network input and receives none now waits for others.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.derive.channel_index import indices_of
from reveal_contract.channels import Channel

USAGE, TASKS, RECEIVED = "cpu.subject.usage", "cpu.subject.tasks", "network.subject.rx_packets"
MEMORY = "memory.subject.anon"
_ACTIVE_S = 30  # busy seconds in a row that make a subject steady
_WORKING = 1e7  # ns of CPU time a second: 1 % of a core
_IDLE = 2e6  # 0.2 %
_STILL_S = 4  # idle seconds in a row that make a stall
_MISSING_S = 3  # seconds in a row that may be missing
_KEPT_MEMORY = 0.5  # of the memory while it was busy: a program that ended has freed more
_FREEING_S = 10  # idle seconds in which memory is freed by an end; later it may be swapped out
_FED_PACKETS = 5.0  # packets per second on average: the job works on network input
# The network of an idle subject is read every five seconds only, so the last packets before the
# stall may count as received since.  A frozen server with active clients receives more than that.
_SILENT_S, _SILENT_SECONDS_OF_PACKETS = (
    6,
    2.0,
)  # seconds, and how many mean seconds of packets may arrive in them
_PROCESS_GROUP = "pgrp:"  # counted in ticks of 10 ms, too coarse to separate idle from nearly idle
_NAN = float("nan")


class _BusySecond(NamedTuple):
    """What a subject had in a second in which it worked; NaN where nothing was read."""

    tasks: float
    memory: float  # bytes
    received: float  # packets


@dataclass
class _SubjectActivity:
    busy: deque[_BusySecond] = field(default_factory=lambda: deque(maxlen=_ACTIVE_S))
    since_idle: deque[float] = field(default_factory=lambda: deque(maxlen=_SILENT_S))
    working: int = 0  # busy seconds in a row, idle ones between them left out
    idle: int = 0
    missing: int = 0

    def push(self, usage: float, second: _BusySecond) -> float:
        """Add a second with ``usage`` ns of CPU time.

        Return 1 if the subject is stalled now, 0 if not, and NaN if it was and was not read now.
        """
        if usage > _IDLE and second.tasks != 0:
            self._work(usage, second)
        elif self.busy:  # a subject that never worked cannot stall
            return self._rest(usage, second)
        return 0

    def _work(self, usage: float, second: _BusySecond) -> None:
        if self.idle:
            self.idle = 0
            self.since_idle.clear()
        self.missing = 0
        self.busy.append(second)
        self.working = self.working + 1 if usage >= _WORKING else 0

    def _rest(self, usage: float, second: _BusySecond) -> float:
        """Add a second without work, and return what ``push`` does."""
        if self.working < _ACTIVE_S:  # nearly all subjects: not steady, so not stalled
            self.idle += 1
            if self.idle >= _STILL_S:
                self._forget()
            return 0
        # without a count of tasks or the memory in use, nobody knows whether it is alive
        if math.isnan(usage) or (math.isnan(second.tasks) and math.isnan(second.memory)):
            return self._miss()
        self.missing = 0
        if self._ended(second):
            self._forget()
            return 0
        self.idle += 1
        self.since_idle.append(_or_zero(second.received))
        return self._is_stalled

    def _miss(self) -> float:
        """Count a second in which the subject was not read; a stalled one waits for the next."""
        if self._is_stalled:
            return _NAN
        self.missing += 1
        if self.missing > _MISSING_S:
            self._forget()
        return 0

    @property
    def _is_stalled(self) -> bool:
        return self.idle >= _STILL_S and not self._waits_for_input

    def _ended(self, second: _BusySecond) -> bool:
        """Return whether tasks of the subject ended or began, or its memory was freed."""
        *earlier, last = self.busy
        if second.tasks == 0:
            return True
        # in the first idle second, the count may still be that of the last busy one
        if self.idle and not math.isnan(second.tasks) and second.tasks != last.tasks:
            return True
        fewest = min((each.tasks for each in earlier if not math.isnan(each.tasks)), default=0.0)
        if second.tasks < fewest or last.tasks < fewest:
            return True
        return self.idle < _FREEING_S and second.memory < _KEPT_MEMORY * _mean_memory(earlier)

    def _forget(self) -> None:
        self.busy.clear()
        self.since_idle.clear()
        self.working = self.idle = self.missing = 0

    @property
    def _waits_for_input(self) -> bool:
        """Return whether the subject worked on network input and now receives none."""
        mean = sum(_or_zero(each.received) for each in self.busy) / len(self.busy)
        return mean >= _FED_PACKETS and sum(self.since_idle) < _SILENT_SECONDS_OF_PACKETS * mean


def _or_zero(value: float) -> float:
    return 0.0 if math.isnan(value) else value


def _mean_memory(seconds: Sequence[_BusySecond]) -> float:
    """Return the mean memory over the seconds in which it was read; 0 if there are none."""
    read = [each.memory for each in seconds if not math.isnan(each.memory)]
    return sum(read) / len(read) if read else 0.0


class StallCounter:
    """Counts the stalled subjects of one node, second by second."""

    def __init__(self) -> None:
        self._subjects: dict[str, _SubjectActivity] = {}
        self._channels: Sequence[Channel] = ()
        self._counters: dict[str, tuple[int, ...]] = {}

    def push(self, channels: Sequence[Channel], seconds: NDArray[np.float64]) -> float:
        """Add the values of all channels; return how many subjects are known to be stalled.

        NaN where none is and one was before it was no longer read, or where no usage was read.
        """
        if channels is not self._channels:
            self._channels, self._counters = channels, _counters(channels)
            known = self._subjects
            self._subjects = {n: known.get(n) or _SubjectActivity() for n in self._counters}
        stalled, unknown, unread = 0.0, False, bool(self._counters)
        for subject, (usage, *others) in zip(
            self._subjects.values(), self._counters.values(), strict=True
        ):
            used = seconds.item(usage)
            unread = unread and math.isnan(used)
            if used <= _IDLE and not subject.busy:  # nearly all subjects of nearly all nodes
                continue
            second = _BusySecond(*[_NAN if i < 0 else seconds.item(i) for i in others])
            state = subject.push(used, second)
            unknown |= math.isnan(state)
            stalled += 0.0 if math.isnan(state) else state
        return _NAN if unread or (unknown and not stalled) else stalled


def inputs(channels: Sequence[Channel]) -> list[int]:
    """Return the channels without whose values a subject may be stalled unseen."""
    known = (each[:-1] for each in _counters(channels).values())  # packets may be missing
    return [index for indices in known for index in indices if index >= 0]


def _counters(channels: Sequence[Channel]) -> dict[str, tuple[int, ...]]:
    """Return the channels of each cgroup: usage, then those of a ``_BusySecond``; -1: none."""
    others = [_by_instance(channels, metric) for metric in (TASKS, MEMORY, RECEIVED)]
    return {
        name: (index, *(other.get(name, -1) for other in others))
        for name, index in _by_instance(channels, USAGE).items()
        if not name.startswith(_PROCESS_GROUP)
    }


def _by_instance(channels: Sequence[Channel], metric: str) -> dict[str, int]:
    return {channels[index].instance: index for index in indices_of(channels, metric)}
