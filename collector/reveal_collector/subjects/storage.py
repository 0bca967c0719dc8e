"""Source: what subjects read from and wrote to storage, by their processes.

For hosts of cgroup version 1 whose blkio counts nothing: since Linux 6.10 it begins with the
first limit that somebody sets on a disk, and says 0 until then.  A process's own count
(``/proc/PID/io``, proc(5)) takes reads when they are asked of the device and writes when they
make a page dirty, so that writeback by the kernel's threads is still its writer's.

Of a subject of very many processes the oldest are followed: what they started is theirs once it
has ended and they have waited for it.
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from reveal_collector.kernel.errors import LayoutChanged, Unsupported
from reveal_collector.readers.source import Roots
from reveal_collector.readers.textfile import OpenFile, channel
from reveal_collector.subjects.cgroup_files import counts_storage, cpu_root
from reveal_collector.subjects.cgroup_walk import within
from reveal_collector.subjects.process_groups import Ledger
from reveal_collector.subjects.processes import MOST_PROCESSES, NotAProcess, parse_io, parse_stat
from reveal_collector.subjects.read_rotation import Turns
from reveal_collector.subjects.tracker import Subject, SubjectTracker
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane

METRICS = ("storage.subject.read_bytes", "storage.subject.write_bytes")
_LIST_SECONDS = 3  # between two looks for processes that came
_LEAST = 8  # processes of a subject that are followed however many subjects there are
_UNKNOWN: tuple[None, None] = (None, None)


class _Process:
    """The count of one process; the same ``reading`` as long as it says the same."""

    def __init__(self, pid: int, folder: Path, group: int) -> None:
        self._file = OpenFile(folder / "io")
        self._text = b""
        self.reading = replace(parse_stat(pid, (folder / "stat").read_bytes(), 0), group=group)
        self._file.open()
        try:
            self.renew()
        except BaseException:
            self.close()
            raise

    def renew(self) -> None:
        """Raises ``OSError`` where the process is gone or is another user's now."""
        text = self._file.read()
        if not text:
            raise ProcessLookupError(self._file.path)
        if text != self._text:
            self._text = text
            self.reading = replace(self.reading, totals=(0, 0, *parse_io(text)))

    def close(self) -> None:
        self._file.close()


class SubjectStorage:
    """Bytes read and written by subject, once a second."""

    name, lane = "subject-storage", Lane.SLOW

    def __init__(self, roots: Roots, tracker: SubjectTracker) -> None:
        self.channels: tuple[Channel, ...] = ()
        self._proc, self._tracker = roots.proc, tracker
        self._tree = cpu_root(tracker.trees)
        self._tick = os.sysconf("SC_CLK_TCK")
        self._opened = False
        self._reset()

    def _reset(self) -> None:
        self._ledger = Ledger()
        self._groups: dict[Subject, int] = {}
        self._numbers = itertools.count(-2, -1)  # below 0: a process leads none of them
        self._processes: dict[Subject, dict[int, _Process]] = {}
        self._turns = Turns(self._tracker)
        self._seen: tuple[Subject, ...] | None = None
        self._born_after = 0

    def open(self) -> None:
        if self._tree is None:
            raise Unsupported("no cgroup hierarchy is mounted", "mount cgroup2, or pass its root")
        if counts_storage(self._tracker.trees):
            raise Unsupported("cgroups count what is read and written themselves: not needed")
        self._reset()
        # who began before may have read in another cgroup, or before we looked
        self._born_after = int(time.clock_gettime(time.CLOCK_BOOTTIME) * self._tick)
        self._tracker.start()
        self._opened = True
        self._follow()
        for subject in self._processes:
            self._list(subject)
        self._add_up()

    def read(self) -> Sequence[int | None]:
        if self._tracker.current is not self._seen:
            self._follow()
            raise LayoutChanged(self.name)
        self._turns.begin()
        for place, subject in enumerate(self._processes):
            if self._turns.due(place, subject):
                listed = (self._turns.second + place) % _LIST_SECONDS == 0
                if listed or not self._processes[subject]:
                    self._list(subject)
                self._renew(subject)
        self._add_up()
        return [value for subject in self._processes for value in self._values(subject)]

    def close(self) -> None:
        if self._opened:
            self._opened = False
            self._tracker.stop()
        for subject in list(self._processes):
            self._drop(subject)
        self.channels = ()

    def _follow(self) -> None:
        """Take over the subjects that there are now."""
        self._seen = self._tracker.current
        for subject in [one for one in self._processes if one not in self._seen]:
            self._drop(subject)
        for subject in self._seen:
            if subject not in self._groups:
                self._groups[subject], self._processes[subject] = next(self._numbers), {}
        self.channels = tuple(
            channel(metric, subject.instance) for subject in self._processes for metric in METRICS
        )

    def _drop(self, subject: Subject) -> None:
        del self._groups[subject]
        for process in self._processes.pop(subject).values():
            process.close()

    def _list(self, subject: Subject) -> None:
        """Begin with the processes that came to a subject, and end with those that left it."""
        here = self._pids(subject)
        followed = self._processes[subject]
        for pid in followed.keys() - here:
            followed.pop(pid).close()
        share = max(_LEAST, MOST_PROCESSES // len(self._processes))
        for pid in sorted(here - followed.keys())[: max(share - len(followed), 0)]:
            try:
                folder = self._proc / str(pid)
                followed[pid] = _Process(pid, folder, self._groups[subject])
            except (NotAProcess, OSError, Unsupported, ValueError):
                continue  # the kernel's, ended, another user's, or garbled

    def _renew(self, subject: Subject) -> None:
        followed = self._processes[subject]
        for pid, process in list(followed.items()):
            try:
                process.renew()
            except (OSError, ValueError):
                followed.pop(pid).close()

    def _pids(self, subject: Subject) -> set[int]:
        """The processes of a subject's cgroup and of those below it."""
        assert self._tree is not None
        found: set[int] = set()
        for cgroup in within(self._tree, subject.path):
            try:
                found.update(map(int, (cgroup / "cgroup.procs").read_bytes().split()))
            except (OSError, ValueError):
                continue
        return found - {0}  # 0: a process outside of this PID namespace

    def _add_up(self) -> None:
        readings = {
            pid: process.reading
            for followed in self._processes.values()
            for pid, process in followed.items()
        }
        self._ledger.update(readings, self._born_after)

    def _values(self, subject: Subject) -> tuple[int | None, int | None]:
        group = self._ledger.groups.get(self._groups[subject])
        return _UNKNOWN if group is None else (group.totals[2], group.totals[3])
