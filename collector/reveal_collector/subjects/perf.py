"""Source: perf events by subject, on request: what each one's tasks did on the CPUs.

A group of events a subject and CPU; the kernel reprograms the counters at each switch between
cgroups, which is what this costs the workload and why it is off by default.  A kernel that has
perf_event as a version 1 hierarchy wants the cgroup's folder there; else that of version 2.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from reveal_collector.devices.cpu_topology import online
from reveal_collector.kernel.errors import LayoutChanged, Unsupported
from reveal_collector.kernel.perf_event import CgroupPerfGroup, PerfEvent
from reveal_collector.readers.perf_groups import refusal
from reveal_collector.readers.source import Roots
from reveal_collector.readers.textfile import channel
from reveal_collector.subjects.cgroup_files import UNIFIED
from reveal_collector.subjects.tracker import Subject, SubjectTracker
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane

MOST = 16
_HARDWARE, _SOFTWARE = 0, 1  # perf_event_attr.type
# perf_event_open(2): generalised events, whatever the CPU
EVENTS = {
    "cpu.subject.context_switches": PerfEvent(_SOFTWARE, 3),
    "cpu.subject.task_clock": PerfEvent(_SOFTWARE, 1),
    "cpu.subject.instructions": PerfEvent(_HARDWARE, 1),
    "cpu.subject.cycles": PerfEvent(_HARDWARE, 0),
    "cpu.subject.llc_misses": PerfEvent(_HARDWARE, 3),
}


class _Counters:
    """The groups of one cgroup, one on each CPU."""

    def __init__(self, folder: Path, cpus: Iterable[int]) -> None:
        self._groups: list[CgroupPerfGroup] = []
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for cpu in cpus:
                self._groups.append(CgroupPerfGroup(descriptor, cpu, list(EVENTS.values())))
        except OSError:
            self.close()
            raise
        finally:
            os.close(descriptor)
        events = self._groups[0].events if self._groups else []
        self.metrics = [name for name, event in EVENTS.items() if event in events]
        self._last: list[Sequence[int]] = [[0] * len(self.metrics) for _ in self._groups]

    def read(self) -> list[int | None]:
        """Counts over all CPUs; where it did not run since the last time, as before."""
        for place, group in enumerate(self._groups):
            counts = group.read()
            if counts is not None:
                self._last[place] = counts
        return [sum(column) for column in zip(*self._last, strict=True)]

    def close(self) -> None:
        for group in self._groups:
            group.close()
        self._groups = []


class SubjectEvents:
    """Context switches, task clock and, with a PMU, instructions, cycles and cache misses."""

    name, lane = "subject-perf", Lane.SLOW

    def __init__(self, roots: Roots, tracker: SubjectTracker) -> None:
        self.channels: tuple[Channel, ...] = ()
        self._roots, self._tracker = roots, tracker
        self._seen: tuple[Subject, ...] = ()
        self._with: dict[Subject, _Counters] = {}
        self._opened = False

    def open(self) -> None:
        if not self._roots.live:
            raise Unsupported("events can be counted on the machine itself only")
        self._tracker.start()
        self._opened = True
        try:
            self._follow()
        except OSError as error:
            self.close()
            raise refusal(error, self._roots) from None

    def read(self) -> Sequence[int | None]:
        if self._tracker.current is not self._seen:
            self._follow()
            raise LayoutChanged(self.name)
        return [value for counters in self._with.values() for value in counters.read()]

    def close(self) -> None:
        if self._opened:
            self._opened = False
            self._tracker.stop()
        for counters in self._with.values():
            counters.close()
        self._with, self._seen, self.channels = {}, (), ()

    def _follow(self) -> None:
        self._seen = self._tracker.current
        clocks = self._tracker.clocks
        wanted = sorted(self._seen, key=lambda one: -clocks.get(one, 0))[:MOST]
        for subject in [one for one in self._with if one not in wanted]:
            self._with.pop(subject).close()
        cpus = online(self._roots.sys)
        for subject in wanted:
            if subject in self._with:
                continue
            try:
                self._with[subject] = _Counters(self._folder(subject), cpus)
            except OSError as error:
                if error.errno not in (errno.ENOENT, errno.ENODEV):  # gone meanwhile
                    raise
        self.channels = tuple(
            channel(metric, subject.instance)
            for subject, counters in self._with.items()
            for metric in counters.metrics
        )

    def _folder(self, subject: Subject) -> Path:
        own = self._roots.cgroup / "perf_event"
        trees = self._tracker.trees
        tree = own if (own / "cgroup.procs").exists() else trees.get(UNIFIED, own)
        return tree / subject.path[1:]
