"""Source: bytes that subjects read from and write to storage, summed over their processes.

It serves hosts of cgroup version 1 whose blkio counts nothing: since Linux 6.10 blkio counts
only after the first limit on a disk is set, and shows 0 until then.  ``/proc/PID/io`` (proc(5))
counts reads when they are requested from the device, and writes when they make a page dirty.
Writeback by kernel threads therefore still counts for the writer.

In a subject of very many processes those with the most I/O are followed; the others are looked
at a few at a time.  The I/O of their children is added when a child has ended and its parent has
waited for it.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from reveal_collector.kernel_interfaces.errors import LayoutChanged, Unsupported
from reveal_collector.readers.host_constants import ticks_per_second
from reveal_collector.readers.source import Roots
from reveal_collector.readers.textfile import OpenFile, channel
from reveal_collector.subjects.cgroup_files import counts_storage, cpu_root
from reveal_collector.subjects.cgroup_walk import pids_below
from reveal_collector.subjects.process_groups import IO, GroupAccounting
from reveal_collector.subjects.process_search import ProcessSearch, ProcessUse
from reveal_collector.subjects.processes import MAX_PROCESSES, NotAProcess, parse_io, parse_stat
from reveal_collector.subjects.read_rotation import ReadRotation
from reveal_collector.subjects.tracker import CgroupSubject, SubjectTracker
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane

METRICS = ("storage.subject.read_bytes", "storage.subject.write_bytes")
_LIST_INTERVAL_S = 3  # between two searches for new processes
_MIN_PROCESSES = 8  # processes of each subject that are followed, for any number of subjects
_SEARCHED = 8  # processes of a subject that are looked at in a search for busier ones
_BUSIER = 1e5  # bytes a second that one must do more than a followed one that does nothing
_YOUNG_S = 10.0  # what a younger process did is new
_UNKNOWN: tuple[None, None] = (None, None)


class _ProcessIo:
    """I/O counters of one process; ``sample`` stays the same object while nothing changes."""

    def __init__(self, pid: int, folder: Path, group: int) -> None:
        self._file = OpenFile(folder / "io")
        self._text = b""
        self.sample = replace(parse_stat(pid, (folder / "stat").read_bytes(), 0), group=group)
        self._file.open()
        try:
            self.update()
        except BaseException:
            self.close()
            raise

    def update(self) -> None:
        """Read the counters; raises ``OSError`` if the process ended or changed its user."""
        text = self._file.read()
        if not text:
            raise ProcessLookupError(self._file.path)
        if text != self._text:
            self._text = text
            self.sample = replace(self.sample, totals=(0, 0, *parse_io(text), 0))

    def use(self, ticks_per_second: int) -> ProcessUse:
        """Return the bytes read and written since the start of the process."""
        started = self.sample.start / ticks_per_second
        return ProcessUse(started, float(sum(self.sample.totals[IO])))

    def close(self) -> None:
        self._file.close()


class SubjectStorage:
    """Bytes read and written by subject, once a second."""

    name, lane = "subject-storage", Lane.SLOW

    def __init__(self, roots: Roots, tracker: SubjectTracker) -> None:
        self.channels: tuple[Channel, ...] = ()
        self._proc, self._tracker = roots.proc, tracker
        self._tree = cpu_root(tracker.trees)
        self._tick = ticks_per_second(roots)
        self._opened = False
        self._reset()

    def _reset(self) -> None:
        self._accounting = GroupAccounting()
        self._groups: dict[CgroupSubject, int] = {}
        self._group_ids = itertools.count(-2, -1)  # negative: no process group has such a number
        self._processes: dict[CgroupSubject, dict[int, _ProcessIo]] = {}
        self._unread: set[CgroupSubject] = set()  # have processes, none of which can be read
        # processes that there is no room for, of subjects that wait for a search
        self._waiting: dict[CgroupSubject, set[int]] = {}
        self._searches: dict[CgroupSubject, ProcessSearch] = {}
        self._rotation = ReadRotation(self._tracker)
        self._subjects: tuple[CgroupSubject, ...] | None = None
        self._born_after = 0

    def open(self) -> None:
        if self._tree is None:
            raise Unsupported(
                "no cgroup hierarchy is mounted", "mount cgroup2, or set the path of its root"
            )
        if counts_storage(self._tracker.trees):
            raise Unsupported("not needed: the cgroups themselves count bytes read and written")
        self._reset()
        # A process that started earlier may have done its I/O in another cgroup.
        self._born_after = int(time.clock_gettime(time.CLOCK_BOOTTIME) * self._tick)
        self._tracker.start()
        self._opened = True
        self._update_subjects()
        for subject in self._processes:
            self._update_process_list(subject)
        self._account()

    def read(self) -> Sequence[int | None]:
        if self._tracker.current is not self._subjects:
            self._update_subjects()
            raise LayoutChanged(self.name)
        self._rotation.advance()
        for position, subject in enumerate(self._processes):
            if self._rotation.is_due(position, subject):
                list_due = (self._rotation.second + position) % _LIST_INTERVAL_S == 0
                if list_due or not self._processes[subject]:
                    self._update_process_list(subject)
                self._update_processes(subject)
        self._follow_busier()
        self._account()
        return [value for subject in self._processes for value in self._values(subject)]

    def close(self) -> None:
        if self._opened:
            self._opened = False
            self._tracker.stop()
        for subject in list(self._processes):
            self._remove(subject)
        self.channels = ()

    def _update_subjects(self) -> None:
        """Follow the current subjects and set the channels."""
        self._subjects = self._tracker.current
        for subject in [known for known in self._processes if known not in self._subjects]:
            self._remove(subject)
        for subject in self._subjects:
            if subject not in self._groups:
                self._groups[subject] = next(self._group_ids)
        self._processes = {subject: self._processes.get(subject, {}) for subject in self._subjects}
        self.channels = tuple(
            channel(metric, subject.instance) for subject in self._processes for metric in METRICS
        )

    def _remove(self, subject: CgroupSubject) -> None:
        del self._groups[subject]
        self._unread.discard(subject)
        self._waiting.pop(subject, None)
        self._searches.pop(subject, None)
        for process in self._processes.pop(subject).values():
            process.close()

    def _update_process_list(self, subject: CgroupSubject) -> None:
        """Open the new processes of a subject and close those that left it."""
        assert self._tree is not None
        here = pids_below(self._tree, subject.path)
        processes = self._processes[subject]
        for pid in processes.keys() - here:
            processes.pop(pid).close()
        share = max(_MIN_PROCESSES, MAX_PROCESSES // len(self._processes))
        waiting = here - processes.keys()
        for pid in sorted(waiting)[: max(share - len(processes), 0)]:
            if (process := self._open_process(subject, pid)) is not None:
                processes[pid] = process
        self._note_unread(subject, bool(here) and not processes)
        waiting -= processes.keys()
        if waiting and len(processes) >= share:
            self._waiting[subject] = waiting

    def _open_process(self, subject: CgroupSubject, pid: int) -> _ProcessIo | None:
        try:
            return _ProcessIo(pid, self._proc / str(pid), self._groups[subject])
        except (NotAProcess, OSError, Unsupported, ValueError):
            return None  # a kernel thread, ended, of another user, or not readable

    def _follow_busier(self) -> None:
        """In one subject, follow processes with more I/O instead of some that have less."""
        if not self._waiting:
            return
        subject = next(iter(self._waiting))
        waiting, processes = self._waiting.pop(subject), self._processes[subject]
        search = self._searches.setdefault(subject, ProcessSearch(_SEARCHED, _BUSIER))
        sampled = {
            pid: process
            for pid in search.due(waiting)
            if (process := self._open_process(subject, pid)) is not None
        }
        now = time.clock_gettime(time.CLOCK_BOOTTIME)
        replacements = search.replacements(
            {pid: process.use(self._tick) for pid, process in processes.items()},
            {pid: process.use(self._tick) for pid, process in sampled.items()},
            waiting,
            now,
        )
        for each in replacements:
            processes.pop(each.dropped).close()
            self._accounting.forget(each.dropped)
            process = processes[each.followed] = sampled.pop(each.followed)
            if process.use(self._tick).started < now - _YOUNG_S:
                self._accounting.start_from(each.followed, process.sample)
        for process in sampled.values():
            process.close()

    def _note_unread(self, subject: CgroupSubject, unread: bool) -> None:
        if unread:
            self._unread.add(subject)
        else:
            self._unread.discard(subject)

    def _update_processes(self, subject: CgroupSubject) -> None:
        processes = self._processes[subject]
        for pid, process in list(processes.items()):
            try:
                process.update()
            except (OSError, ValueError):
                processes.pop(pid).close()

    def _account(self) -> None:
        samples = {
            pid: process.sample
            for processes in self._processes.values()
            for pid, process in processes.items()
        }
        self._accounting.update(samples, self._born_after)

    def _values(self, subject: CgroupSubject) -> tuple[int | None, int | None]:
        group = self._accounting.groups.get(self._groups[subject])
        if group is None or subject in self._unread:
            return _UNKNOWN
        read, written = group.totals[IO]
        return read, written
