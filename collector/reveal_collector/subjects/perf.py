"""Source: perf events by subject, on request: what the tasks of a subject do on the CPUs.

It opens one group of events for each subject and CPU.  The kernel reprograms the counters at
every switch between cgroups.  This slows the workload, so the source is off by default.  If
perf_event is mounted as a version 1 hierarchy, the kernel takes the cgroup's directory there,
else the one of version 2.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from reveal_collector.devices.cpu_topology import online
from reveal_collector.kernel_interfaces.errors import LayoutChanged, Unsupported
from reveal_collector.kernel_interfaces.perf_event import CgroupPerfGroup, PerfEvent
from reveal_collector.readers.perf_groups import refusal
from reveal_collector.readers.source import Roots
from reveal_collector.readers.textfile import channel
from reveal_collector.subjects.cgroup_files import UNIFIED
from reveal_collector.subjects.stable_selection import CpuRates, StableSelection
from reveal_collector.subjects.tracker import CgroupSubject, SubjectTracker
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane

MAX_SUBJECTS = 16
_CHOOSE_READS = 10  # between two choices: opening the events of a subject costs much
_MARGIN = 0.02  # CPUs that a subject must use more than another to replace it
_MAX_READS_WITHOUT = 10  # reads (seconds) for which a group without a counter keeps its counts
_HARDWARE, _SOFTWARE = 0, 1  # perf_event_attr.type
# perf_event_open(2): generalized events, which every CPU maps to its own
EVENTS = {
    "cpu.subject.context_switches": PerfEvent(_SOFTWARE, 3),
    "cpu.subject.task_clock": PerfEvent(_SOFTWARE, 1),
    "cpu.subject.instructions": PerfEvent(_HARDWARE, 1),
    "cpu.subject.cycles": PerfEvent(_HARDWARE, 0),
    "cpu.subject.llc_misses": PerfEvent(_HARDWARE, 3),
}


class _CgroupCounters:
    """The event groups of one cgroup, one on each CPU."""

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
        self._last_counts: list[Sequence[int]] = [[0] * len(self.metrics) for _ in self._groups]
        self._reads_without: list[int] = [0] * len(self._groups)  # since each group ran last

    def read(self) -> list[int | None]:
        """Return the counts over all CPUs; ``None`` where a group has not run for long.

        A group that gets no hardware counter for a moment keeps its last counts: its next ones
        contain that time.
        """
        for index, group in enumerate(self._groups):
            counts = group.read()
            if counts is not None:
                self._last_counts[index] = counts
            ran = counts is not None or group.is_offline  # nothing runs on a CPU that is offline
            self._reads_without[index] = 0 if ran else self._reads_without[index] + 1
        if max(self._reads_without, default=0) > _MAX_READS_WITHOUT:
            return [None] * len(self.metrics)
        return [sum(column) for column in zip(*self._last_counts, strict=True)]

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
        self._subjects: tuple[CgroupSubject, ...] = ()
        self._counters: dict[CgroupSubject, _CgroupCounters] = {}
        self._rates: CpuRates[CgroupSubject] = CpuRates()
        self._selection: StableSelection[CgroupSubject] = StableSelection(
            MAX_SUBJECTS, _MARGIN, name=lambda subject: subject.path
        )
        self._reads = 0
        self._opened = False

    def open(self) -> None:
        if not self._roots.live:
            raise Unsupported("events can be counted only on the running machine itself")
        self._tracker.start()
        self._opened = True
        try:
            self._update_subjects()
        except OSError as error:
            self.close()
            raise refusal(error, self._roots) from None

    def read(self) -> Sequence[int | None]:
        self._reads += 1
        is_due = self._tracker.current is not self._subjects or self._reads >= _CHOOSE_READS
        if is_due and self._update_subjects():
            raise LayoutChanged(self.name)
        return [value for counters in self._counters.values() for value in counters.read()]

    def close(self) -> None:
        if self._opened:
            self._opened = False
            self._tracker.stop()
        for counters in self._counters.values():
            counters.close()
        self._counters, self._subjects, self.channels = {}, (), ()

    def _update_subjects(self) -> bool:
        """Count the events of the busiest subjects; return whether the columns changed."""
        self._subjects, self._reads = self._tracker.current, 0
        now = time.monotonic()
        rates = self._rates.update(self._tracker.clocks.copy(), now)
        uses = {subject: rates.get(subject, 0.0) for subject in self._subjects}
        busiest = self._selection.update(uses, now)
        for subject in self._counters.keys() - busiest:
            self._counters.pop(subject).close()
        if missing := busiest - self._counters.keys():
            self._open_counters(missing)
        self._counters = dict(sorted(self._counters.items(), key=lambda item: item[0].path))
        channels = tuple(
            channel(metric, subject.instance)
            for subject, counters in self._counters.items()
            for metric in counters.metrics
        )
        changed, self.channels = channels != self.channels, channels
        return changed

    def _open_counters(self, subjects: Iterable[CgroupSubject]) -> None:
        cpus = online(self._roots.sys)
        for subject in subjects:
            try:
                self._counters[subject] = _CgroupCounters(self._folder(subject), cpus)
            except OSError as error:
                if error.errno not in (errno.ENOENT, errno.ENODEV):  # ended meanwhile
                    raise

    def _folder(self, subject: CgroupSubject) -> Path:
        own = self._roots.cgroup / "perf_event"
        trees = self._tracker.trees
        tree = own if (own / "cgroup.procs").exists() else trees.get(UNIFIED, own)
        return tree / subject.path[1:]
