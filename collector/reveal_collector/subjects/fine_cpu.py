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

from reveal_collector.kernel_interfaces.errors import LayoutChanged, Unsupported
from reveal_collector.readers.textfile import channel
from reveal_collector.subjects.cgroup_files import UNIFIED
from reveal_collector.subjects.fine_grid import (
    CounterFile,
    SampleRings,
    SamplingThread,
    start_sampling_thread,
)
from reveal_collector.subjects.stable_selection import CpuRates, StableSelection
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
_MARGIN = 0.02  # CPUs that a subject must use more than another to replace it
_NS_PER_US = 1000
_METRIC = "cpu.subject.usage.fine"
_UNREAD: tuple[None, ...] = (None,) * STEPS_PER_TICK


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
    """Selects the busy subjects; one that became idle stays unless another needs its place.

    ``active`` are those that were busy lately.
    """

    def __init__(self) -> None:
        self.active: frozenset[CgroupSubject] = frozenset()
        self._rates: CpuRates[CgroupSubject] = CpuRates()
        self._last_busy: dict[CgroupSubject, float] = {}
        self._selection: StableSelection[CgroupSubject] = StableSelection(
            MAX_SUBJECTS, _MARGIN, name=lambda subject: subject.path
        )

    def choose(self, clocks: Mapping[CgroupSubject, int], now: float) -> list[CgroupSubject]:
        """Return up to ``MAX_SUBJECTS`` subjects in the order of their paths.

        ``clocks`` are the CPU clocks of all subjects in ns.
        """
        rates = self._rates.update(clocks, now)
        for subject, rate in rates.items():
            if rate >= (_IDLE_SHARE if subject in self._last_busy else _BUSY_SHARE):
                self._last_busy[subject] = now
        self._last_busy = {
            subject: last for subject, last in self._last_busy.items()
            if subject in clocks and now - last < _STAY_SECONDS
        }  # fmt: skip
        chosen = self._selection.update(rates, now, entering=self._last_busy)
        self.active = chosen & self._last_busy.keys()
        return sorted(chosen, key=lambda subject: subject.path)


class FineCpu:
    """``cpu.subject.usage.fine`` of busy subjects in us; its thread sleeps while none is busy.

    A subject that became idle keeps its columns, empty, so that the channel table stays.
    """

    name, lane = "subject-fine", Lane.FAST
    keeps_lane = True  # each read takes the steps since the one before

    def __init__(self, tracker: SubjectTracker) -> None:
        self.channels: tuple[Channel, ...] = ()
        self.paused = False
        self._tracker = tracker
        self._busy_subjects = BusySubjects()
        self._rings = SampleRings(MAX_SUBJECTS)
        self._thread: SamplingThread | None = None
        self._chosen: list[CgroupSubject] = []  # those that have columns
        self._slots: dict[CgroupSubject, tuple[int, CounterFile]] = {}  # slot and open clock
        self._columns: list[int | None] = []  # the slots in the order of the columns
        self._subjects: tuple[CgroupSubject, ...] = ()
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
        increases = self._rings.increases
        row: list[int | None] = []
        for slot in self._columns:
            row += _UNREAD if slot is None else increases(slot, last, STEPS_PER_TICK)
        return row

    def _is_due(self) -> bool:
        """Return whether the subjects changed, or a second has passed.

        A second passes in ticks, or by the clock if ticks are rare.
        """
        return (
            self._reads >= _CHOOSE_TICKS
            or self._tracker.current is not self._subjects
            or time.monotonic() - self._chosen_s >= _CHOOSE_SECONDS
        )

    def close(self) -> None:
        if self._thread is None:
            return
        for subject in list(self._slots):
            self._stop_sampling(subject)
        self._thread.stop()
        self._thread = None
        self._tracker.stop()
        self.channels, self._chosen, self._columns = (), [], []

    def _choose(self) -> bool:
        """Select the busy subjects again; return whether they changed."""
        self._chosen_s, self._reads = time.monotonic(), 0
        self._subjects = self._tracker.current
        busy = self._busy_subjects.choose(self._tracker.clocks.copy(), self._chosen_s)
        chosen = [] if self.paused else busy
        self._sample([each for each in chosen if each in self._busy_subjects.active])
        slots = (self._slots.get(subject) for subject in chosen)
        self._columns = [None if slot is None else slot[0] for slot in slots]
        if chosen == self._chosen:
            return False
        self._chosen = chosen
        self.channels = tuple(
            channel(_METRIC, f"{subject.instance}#{step}", _NS_PER_US)
            for subject in chosen
            for step in range(1, STEPS_PER_TICK + 1)
        )
        return True

    def _sample(self, active: Sequence[CgroupSubject]) -> None:
        """Sample these subjects and no others."""
        for subject in [each for each in self._slots if each not in active]:
            self._stop_sampling(subject)
        for subject in active:
            if subject not in self._slots:
                self._start_sampling(subject)

    def _start_sampling(self, subject: CgroupSubject) -> None:
        clock = clock_of(subject, self._tracker.trees)
        if clock is None or self._thread is None:
            return
        taken = {slot for slot, _ in self._slots.values()}
        slot = next(slot for slot in range(MAX_SUBJECTS) if slot not in taken)
        self._slots[subject] = slot, clock
        self._thread.assign(slot, clock)

    def _stop_sampling(self, subject: CgroupSubject) -> None:
        slot, clock = self._slots.pop(subject)
        if self._thread is not None:
            self._thread.assign(slot, None)
        os.close(clock.fd)
