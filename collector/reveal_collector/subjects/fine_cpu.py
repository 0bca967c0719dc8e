"""Source: the CPU clock of busy subjects at 50 Hz, five sub-samples a tick.

Work that repeats faster than every 200 ms shows at 10 Hz as a slow rhythm it does not have.  A
thread reads one file a busy subject every 20 ms on a grid; the tick thread takes what the five
grid steps before the last one used.  A column is one of the five: ``subject#1`` to ``#5``.
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
from reveal_collector.subjects.fine_grid import Grid, Reading, Rings, grid
from reveal_collector.subjects.tracker import Subject, SubjectTracker
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane

log = logging.getLogger(__name__)

STEP_NS = 20_000_000
A_TICK = 5
MOST = 16
_TICKS, _LOOK_SECONDS = 10, 0.95
_BUSY, _IDLE = 0.05, 0.02  # of a CPU: to come in, and to stay
_STAY_SECONDS = 30
_NS_PER_US = 1000
_METRIC = "cpu.subject.usage.fine"


def clock_of(subject: Subject, trees: Mapping[str, Path]) -> Reading | None:
    """The open CPU clock of a cgroup, to be read in us; ``None`` where it is gone.

    ``cpuacct.usage`` is a number in ns (cpuacct.rst); ``cpu.stat`` of version 2 begins with
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
                return Reading(fd, len(start), divisor)
        except OSError:
            log.debug("the CPU clock of %s cannot be read", subject.path)
        os.close(fd)
    return None


class Chooser:
    """Which subjects are busy enough; one that is in stays a while after it went idle."""

    def __init__(self) -> None:
        self._last: dict[Subject, int] = {}
        self._busy_at: dict[Subject, float] = {}

    def choose(self, clocks: Mapping[Subject, int], now: float, seconds: float) -> list[Subject]:
        """From CPU clocks in ns and the time since the last call: up to ``MOST``, busiest first."""
        rates = {
            subject: (clock - self._last[subject]) / (seconds * 1e9)
            for subject, clock in clocks.items()
            if subject in self._last
        }
        self._last = dict(clocks)
        for subject, rate in rates.items():
            if rate >= (_IDLE if subject in self._busy_at else _BUSY):
                self._busy_at[subject] = now
        self._busy_at = {
            subject: at for subject, at in self._busy_at.items()
            if subject in clocks and now - at < _STAY_SECONDS
        }  # fmt: skip
        return sorted(self._busy_at, key=lambda one: (-rates.get(one, 0.0), one.path))[:MOST]


class FineLane:
    """``cpu.subject.usage.fine`` of the busy subjects, in us; the thread sleeps while none is."""

    name, lane = "subject-fine", Lane.FAST

    def __init__(self, tracker: SubjectTracker) -> None:
        self.channels: tuple[Channel, ...] = ()
        self.paused = False
        self._tracker = tracker
        self._chooser = Chooser()
        self._rings = Rings(MOST)
        self._grid: Grid | None = None
        self._followed: dict[Subject, tuple[int, Reading]] = {}  # slot and open clock
        self._reads = 0
        self._looked = 0.0

    def open(self) -> None:
        if not self._tracker.trees:
            raise Unsupported("no cgroup hierarchy is mounted", "mount cgroup2, or pass its root")
        self._tracker.start()
        self._grid = grid(self._rings, STEP_NS)
        self._looked = time.monotonic()

    def read(self) -> Sequence[int | None]:
        self._reads += 1
        if self._is_due() and self._choose():
            raise LayoutChanged(self.name)
        last = time.monotonic_ns() // STEP_NS - 1  # the one before may still be under way
        steps = range(last - A_TICK + 1, last + 1)
        between = self._rings.between
        return [between(slot, step) for slot, _ in self._followed.values() for step in steps]

    def _is_due(self) -> bool:
        """Once a second: every ten ticks, or by the clock where nothing is read every tick."""
        return self._reads >= _TICKS or time.monotonic() - self._looked >= _LOOK_SECONDS

    def close(self) -> None:
        if self._grid is None:
            return
        for subject in list(self._followed):
            self._leave(subject)
        self._grid.stop()
        self._grid = None
        self._tracker.stop()
        self.channels = ()

    def _choose(self) -> bool:
        """Whether other subjects are followed now."""
        now = time.monotonic()
        seconds, self._looked, self._reads = max(now - self._looked, 0.1), now, 0
        busy = self._chooser.choose(self._tracker.clocks.copy(), now, seconds)
        wanted = [] if self.paused else busy
        before = list(self._followed)
        for subject in before:
            if subject not in wanted:
                self._leave(subject)
        for subject in wanted:
            if subject not in self._followed:
                self._enter(subject)
        self.channels = tuple(
            channel(_METRIC, f"{subject.instance}#{place}", _NS_PER_US)
            for subject in self._followed
            for place in range(1, A_TICK + 1)
        )
        return before != list(self._followed)

    def _enter(self, subject: Subject) -> None:
        clock = clock_of(subject, self._tracker.trees)
        if clock is None or self._grid is None:
            return
        taken = {slot for slot, _ in self._followed.values()}
        slot = next(at for at in range(MOST) if at not in taken)
        self._followed[subject] = slot, clock
        self._grid.follow(slot, clock)

    def _leave(self, subject: Subject) -> None:
        slot, clock = self._followed.pop(subject)
        if self._grid is not None:
            self._grid.follow(slot, None)
        os.close(clock.fd)
