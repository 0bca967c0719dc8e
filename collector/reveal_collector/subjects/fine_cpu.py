"""Source: the CPU clock of busy subjects at 50 Hz, five samples per tick.

At 10 Hz, work that repeats faster than every 200 ms aliases to a slow rhythm.  Therefore a thread
reads one file of each busy subject every 20 ms on a time grid.  The tick thread takes the
increases of the last five complete steps.  Each step is a column: ``subject#1`` to ``#5``.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from reveal_collector.kernel.errors import LayoutChanged, Unsupported
from reveal_collector.readers.textfile import channel
from reveal_collector.subjects.cgroup_files import UNIFIED
from reveal_collector.subjects.fine_grid import (
    CounterFile,
    SampleRings,
    SamplingThread,
    start_sampling_thread,
)
from reveal_collector.subjects.tracker import CgroupSubject, SubjectTracker
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane

log = logging.getLogger(__name__)

STEP_NS = 20_000_000
STEPS_PER_TICK = 5
MAX_SUBJECTS = 16
_CHOOSE_TICKS, _CHOOSE_SECONDS = 10, 0.95
_BUSY_SHARE, _IDLE_SHARE = 0.05, 0.02  # of a CPU: to be added, and to stay
_STAY_SECONDS = 30
_NS_PER_US = 1000
_METRIC = "cpu.subject.usage.fine"


def clock_of(subject: CgroupSubject, trees: Mapping[str, Path]) -> CounterFile | None:
    """Open the CPU clock of a cgroup, in microseconds; return ``None`` if it has ended.

    ``cpuacct.usage`` is a number in ns (cpuacct.rst).  ``cpu.stat`` of version 2 starts with
    ``usage_usec`` (cgroup-v2.rst).
    """
    for hierarchy, name, start, divisor in (
        ("cpuacct", "cpuacct.usage", b"", _NS_PER_US),
        (UNIFIED, "cpu.stat", b"usage_usec ", 1),
    ):
        if hierarchy not in trees:
            continue
        try:
            fd = os.open(trees[hierarchy] / subject.path[1:] / name, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            if os.pread(fd, 64, 0).startswith(start):
                return CounterFile(fd, len(start), divisor)
        except OSError:
            log.debug("cannot read the CPU clock of %s", subject.path)
        os.close(fd)
    return None


class BusySubjects:
    """Selects the busy subjects; a selected one stays for a while after it became idle."""

    def __init__(self) -> None:
        self._clocks: dict[CgroupSubject, int] = {}
        self._last_busy: dict[CgroupSubject, float] = {}

    def choose(
        self, clocks: Mapping[CgroupSubject, int], now: float, seconds: float
    ) -> list[CgroupSubject]:
        """Return up to ``MAX_SUBJECTS`` subjects, the busiest first.

        ``clocks`` are CPU clocks in ns, ``seconds`` is the time since the last call.
        """
        rates = {
            subject: (clock - self._clocks[subject]) / (seconds * 1e9)
            for subject, clock in clocks.items()
            if subject in self._clocks
        }
        self._clocks = dict(clocks)
        for subject, rate in rates.items():
            if rate >= (_IDLE_SHARE if subject in self._last_busy else _BUSY_SHARE):
                self._last_busy[subject] = now
        self._last_busy = {
            subject: last for subject, last in self._last_busy.items()
            if subject in clocks and now - last < _STAY_SECONDS
        }  # fmt: skip
        return sorted(
            self._last_busy, key=lambda subject: (-rates.get(subject, 0.0), subject.path)
        )[:MAX_SUBJECTS]


class FineCpu:
    """``cpu.subject.usage.fine`` of busy subjects in us; its thread sleeps while none is busy."""

    name, lane = "subject-fine", Lane.FAST

    def __init__(self, tracker: SubjectTracker) -> None:
        self.channels: tuple[Channel, ...] = ()
        self.paused = False
        self._tracker = tracker
        self._busy_subjects = BusySubjects()
        self._rings = SampleRings(MAX_SUBJECTS)
        self._thread: SamplingThread | None = None
        self._slots: dict[CgroupSubject, tuple[int, CounterFile]] = {}  # slot and open clock
        self._reads = 0
        self._chosen_s = 0.0

    def open(self) -> None:
        if not self._tracker.trees:
            raise Unsupported(
                "no cgroup hierarchy is mounted", "mount cgroup2, or set the path of its root"
            )
        self._tracker.start()
        self._thread = start_sampling_thread(self._rings, STEP_NS)
        self._chosen_s = time.monotonic()

    def read(self) -> Sequence[int | None]:
        self._reads += 1
        if self._is_due() and self._choose():
            raise LayoutChanged(self.name)
        last = time.monotonic_ns() // STEP_NS - 1  # complete: the current one may be under way
        steps = range(last - STEPS_PER_TICK + 1, last + 1)
        increase = self._rings.increase
        return [increase(slot, step) for slot, _ in self._slots.values() for step in steps]

    def _is_due(self) -> bool:
        """Return whether a second has passed: in ticks, or by the clock if ticks are rare."""
        return self._reads >= _CHOOSE_TICKS or time.monotonic() - self._chosen_s >= _CHOOSE_SECONDS

    def close(self) -> None:
        if self._thread is None:
            return
        for subject in list(self._slots):
            self._remove(subject)
        self._thread.stop()
        self._thread = None
        self._tracker.stop()
        self.channels = ()

    def _choose(self) -> bool:
        """Select the busy subjects again; return whether they changed."""
        now = time.monotonic()
        seconds, self._chosen_s, self._reads = max(now - self._chosen_s, 0.1), now, 0
        busy = self._busy_subjects.choose(self._tracker.clocks.copy(), now, seconds)
        chosen = [] if self.paused else busy
        previous = list(self._slots)
        for subject in previous:
            if subject not in chosen:
                self._remove(subject)
        for subject in chosen:
            if subject not in self._slots:
                self._add(subject)
        self.channels = tuple(
            channel(_METRIC, f"{subject.instance}#{step}", _NS_PER_US)
            for subject in self._slots
            for step in range(1, STEPS_PER_TICK + 1)
        )
        return previous != list(self._slots)

    def _add(self, subject: CgroupSubject) -> None:
        clock = clock_of(subject, self._tracker.trees)
        if clock is None or self._thread is None:
            return
        taken = {slot for slot, _ in self._slots.values()}
        slot = next(slot for slot in range(MAX_SUBJECTS) if slot not in taken)
        self._slots[subject] = slot, clock
        self._thread.assign(slot, clock)

    def _remove(self, subject: CgroupSubject) -> None:
        slot, clock = self._slots.pop(subject)
        if self._thread is not None:
            self._thread.assign(slot, None)
        os.close(clock.fd)
