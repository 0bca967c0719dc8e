"""perf_event_open(2) without the perf tool: groups of counting events of a CPU or of a cgroup.

The manual page describes ``perf_event_attr`` and the data of a group's descriptor.  With
PERF_FORMAT_GROUP, TOTAL_TIME_ENABLED and TOTAL_TIME_RUNNING one read of the leader's descriptor
returns unsigned 64-bit integers in the machine's byte order::

    number of events | time enabled (ns) | time running (ns) | count of event 0 | count of 1 ...

Reading a group costs about 1 us on the same CPU and 10 us on another, which is interrupted.

Where there are fewer hardware counters than events, the kernel multiplexes the groups; all events
of a group are counted together.  The count over the full time is estimated from the *increments*
between two readings, never from the totals: see ``scaled_counts``.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Sequence
from operator import add, sub
from typing import NamedTuple

_NUMBERS = {"x86_64": 298, "aarch64": 241, "riscv64": 241, "ppc64le": 319, "s390x": 331}
_ATTR_SIZE = 128
# type, size, config, period, sample type, read format, flags, 8 bytes of no use to a counter,
# config1, config2
_ATTR = struct.Struct("=IIQQQQQQQQ")
_ENABLED, _RUNNING, _GROUP = 1, 2, 8
_READ_FORMAT = _ENABLED | _RUNNING | _GROUP
_CLOSE_ON_EXEC, _PID_CGROUP = 8, 4
_HEAD = 3  # number of events, time enabled, time running
_U64 = (1 << 64) - 1


class PerfEvent(NamedTuple):
    """An event to count: ``kind`` (attr.type) and the config words of perf_event_attr."""

    kind: int
    config: int
    config1: int = 0
    config2: int = 0


class GroupReading(NamedTuple):
    """One reading of a group: nanoseconds enabled and running since opening, raw counts."""

    enabled: int
    running: int
    counts: tuple[int, ...]


def scaled_counts(before: GroupReading, after: GroupReading) -> tuple[int, ...] | None:
    """Return the events counted between two readings, extrapolated to the full time.

    With dE and dR the differences of time enabled and running, dN that of a count (modulo 2^64):

    - dR = dE (the normal case, and dE = 0: no time passed for the group): dN unchanged;
    - dR = 0 < dE: the group never had a counter: None, as nothing is known;
    - else dN * dE / dR, rounded down, in integers wide enough for the product.
    """
    enabled = after.enabled - before.enabled & _U64
    running = after.running - before.running & _U64
    steps = tuple(new - old & _U64 for old, new in zip(before.counts, after.counts, strict=True))
    if running == enabled:
        return steps
    if not running:
        return None
    return tuple(each * enabled // running for each in steps)


class PerfGroup:
    """Events of one CPU that are read together.

    The constructor raises the ``OSError`` of the first event.  It leaves later events out of
    ``events`` where the kernel does not know them or the group has no counter left for them.
    """

    _pid, _flags = -1, _CLOSE_ON_EXEC

    def __init__(self, cpu: int, requested: Sequence[PerfEvent]) -> None:
        self.cpu = cpu
        self.events: list[PerfEvent] = []
        self._fds: list[int] = []
        for event in requested:
            try:
                self._fds.append(self._open(event))
            except OSError as error:
                if not self._fds and error.errno not in (errno.ENOENT, errno.EOPNOTSUPP):
                    raise
                if error.errno in (errno.EMFILE, errno.ENFILE):
                    self.close()
                    raise
            else:
                self.events.append(event)
        if not self._fds:
            raise OSError(errno.ENOENT, "this kernel knows none of the events")
        self._layout = struct.Struct(f"={_HEAD + len(self.events)}Q")
        # A cgroup's time enabled starts at the machine's uptime, not at 0: only differences
        # from this first reading are meaningful.
        self._last = self.raw()
        self._before: GroupReading | None = None
        self._added: tuple[int, ...] | None = None  # counts that scaling added so far

    @property
    def fd(self) -> int:
        """The leader's descriptor."""
        return self._fds[0]

    def raw(self) -> GroupReading | None:
        """Return the current reading; None while the CPU is offline."""
        data = os.read(self._fds[0], self._layout.size)
        if len(data) < self._layout.size:
            return None
        _, enabled, running, *counts = self._layout.unpack(data)
        return GroupReading(enabled, running, tuple(counts))

    def read(self) -> tuple[int, ...] | None:
        """Return the scaled counts since opening, by event; None if the events did not run."""
        now, before = self.raw(), self._last
        if now is None or before is None:
            self._last = now
            return None
        if now.running - before.running != now.enabled - before.enabled:
            steps = scaled_counts(before, now)
            if steps is None:  # the next increment starts at the last reading that ran
                return None
            counted = map(sub, now.counts, before.counts)
            missed = map(sub, steps, (each & _U64 for each in counted))
            self._added = tuple(map(add, self._added or (0,) * len(steps), missed))
        self._before, self._last = before, now
        return now.counts if self._added is None else tuple(map(add, now.counts, self._added))

    @property
    def last_increment(self) -> tuple[int, tuple[int, ...]] | None:
        """The time (ns) between the last two readings, and the scaled counts of that time."""
        if self._before is None or self._last is None:
            return None
        steps = scaled_counts(self._before, self._last)
        return None if steps is None else (self._last.enabled - self._before.enabled, steps)

    @property
    def is_offline(self) -> bool:
        """Whether the CPU was offline at the last reading."""
        return self._last is None

    def close(self) -> None:
        """Close all descriptors."""
        for fd in self._fds:
            os.close(fd)
        self._fds = []

    def _open(self, event: PerfEvent) -> int:
        leader = self._fds[0] if self._fds else -1
        return _open(event, self._pid, self.cpu, leader, self._flags)


class CgroupPerfGroup(PerfGroup):
    """Events that are counted on one CPU while a task of one cgroup runs there.

    ``cgroup_fd`` is the open directory of the cgroup, in version 2 or in version 1's perf_event
    hierarchy; it may be closed afterwards.  Open one group on each CPU to count the whole cgroup.
    Time is enabled only while the cgroup runs: a cgroup that slept reports that it counted nothing.
    """

    def __init__(self, cgroup_fd: int, cpu: int, events: Sequence[PerfEvent]) -> None:
        self._pid, self._flags = cgroup_fd, _CLOSE_ON_EXEC | _PID_CGROUP
        super().__init__(cpu, events)


def _open(event: PerfEvent, pid: int, cpu: int, leader: int, flags: int) -> int:
    number = _NUMBERS.get(os.uname().machine)
    if number is None:
        raise OSError(errno.ENOSYS, f"perf_event_open has no known number on {os.uname().machine}")
    attr = bytearray(_ATTR_SIZE)
    _ATTR.pack_into(
        attr, 0, event.kind, _ATTR_SIZE, event.config, 0, 0, _READ_FORMAT, 0,
        0, event.config1, event.config2,
    )  # fmt: skip
    buffer = (ctypes.c_char * _ATTR_SIZE).from_buffer(attr)
    fd: int = _libc().syscall(number, buffer, pid, cpu, leader, ctypes.c_ulong(flags))
    if fd < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return fd


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
