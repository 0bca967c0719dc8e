"""Source: process groups, the subjects of hosts whose processes have no cgroups of their own.

The counters of a group are sums over its processes and never decrease.  A process that ends takes
nothing away.  A parent that waits for a child takes over its use (``cutime`` and others, proc(5));
this counts only if the child was not sampled while it was alive.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence, Set
from pathlib import Path

from reveal_collector.kernel_interfaces.errors import LayoutChanged, Unsupported
from reveal_collector.readers.host_constants import host_constants
from reveal_collector.readers.source import Roots
from reveal_collector.readers.textfile import OpenFile
from reveal_collector.subjects.process_groups import (
    GroupAccounting,
    GroupSelection,
    ProcessGroup,
    ProcessSample,
    ScoreWeights,
    update_scores,
)
from reveal_collector.subjects.process_search import ProcessSearch
from reveal_collector.subjects.tracker import SubjectSelection
from reveal_contract.catalogue import find
from reveal_contract.channels import Channel
from reveal_contract.foreign_names import printable
from reveal_contract.metric import Lane

log = logging.getLogger(__name__)

MAX_PROCESSES = 512
# where there are more: how often busier ones are searched, among how many, and by how much of a
# CPU (or share of the memory) a process must be busier than one that does nothing
_SEARCH_PASSES, _SEARCHED, _BUSIER = 5, 40, 0.005
COSTLY_NS = 3_000_000
IDLE_PASSES, MAX_IDLE_PASSES = 5, 60  # read period of an idle process, in passes
LONG_IDLE = 17  # unchanged reads (about a minute) after which the read period doubles
_KERNEL_THREAD = 0x0020_0000  # PF_KTHREAD, include/linux/sched.h
_INIT = 1
_KERNEL_THREADS_PASSES = 60
_COUNTERS = (
    "cpu.subject.usage",
    "memory.subject.major_faults",
    "storage.subject.read_bytes",
    "storage.subject.write_bytes",
    "memory.subject.page_faults",
)
_LEVELS = ("memory.subject.usage", "cpu.subject.tasks")


class NotAProcess(Exception):
    """The pid is a kernel thread: its time belongs to no subject."""


def parse_stat(pid: int, data: bytes, page: int) -> ProcessSample:
    """Parse ``/proc/PID/stat`` (proc(5)), where the name may contain blanks and brackets.

    Raises ``NotAProcess`` for a kernel thread and ``ValueError`` for text that does not parse.
    """
    head, _, tail = data.rpartition(b")")
    fields = tail.split()
    if len(fields) < 22:
        raise ValueError(f"stat of process {pid} has {len(fields)} fields after the name")
    if int(fields[6]) & _KERNEL_THREAD:
        raise NotAProcess
    own = [int(fields[index]) for index in (11, 12, 9, 7)]
    # Init waits for orphans of all groups: what they used is not its own use.
    waited = [0, 0, 0, 0] if pid == _INIT else [int(fields[index]) for index in (13, 14, 10, 8)]
    major, minor = own[2] + waited[2], own[3] + waited[3]
    return ProcessSample(
        group=int(fields[2]),
        parent=int(fields[1]),
        start=int(fields[19]),
        name=printable(os.fsdecode(head.partition(b"(")[2])),
        totals=(own[0] + own[1] + waited[0] + waited[1], major, 0, 0, major + minor),
        memory=int(fields[21]) * page,
        threads=int(fields[17]),
        waited=waited[0] + waited[1],
    )


def parse_io(data: bytes) -> tuple[int, int]:
    """Return the bytes read from and written to storage in ``/proc/PID/io``.

    Raises ``ValueError`` for a text without them: nobody knows whether they are 0.
    """
    tokens = data.split()
    found = dict(zip(tokens[::2], tokens[1::2], strict=False))
    try:
        return int(found[b"read_bytes:"]), int(found[b"write_bytes:"])
    except KeyError as error:
        raise ValueError(f"io of a process has no {error}") from None


class _ProcessFiles:
    """Open files of one process; a descriptor never shows a later process of the same pid."""

    def __init__(self, pid: int, folder: Path, page: int) -> None:
        self.pid, self.idle = pid, 0
        self._page, self._last_stat = page, b""
        self._stat = OpenFile(folder / "stat")
        self._io: OpenFile | None = OpenFile(folder / "io")
        self._stat.open()
        try:
            self._io.open()
        except Unsupported:  # a process of another user, and no CAP_SYS_PTRACE
            self._io = None
        try:
            self.sample = self._read(self._stat.read())
        except BaseException:
            self.close()
            raise

    def update(self) -> None:
        """Read the process again; an unchanged text counts as one idle read."""
        data = self._stat.read()
        if data == self._last_stat:
            self.idle += 1
            return
        self.idle = 0
        self.sample = self._read(data)

    def close(self) -> None:
        self._stat.close()
        if self._io is not None:
            self._io.close()

    def _read(self, data: bytes) -> ProcessSample:
        if not data:  # ended: some kernels then return an empty file
            raise ProcessLookupError(self.pid)
        sample = parse_stat(self.pid, data, self._page)
        self._last_stat = data
        read, written, known = 0, 0, False
        if self._io is not None and self.pid != _INIT:
            try:
                read, written = parse_io(self._io.read())
                known = True
            except (PermissionError, ValueError):  # it changed its user, or has no numbers
                self._io.close()
                self._io = None
        return ProcessSample(
            sample.group, sample.parent, sample.start, sample.name,
            (*sample.totals[:2], read, written, sample.totals[4]),
            sample.memory, sample.threads, known, sample.waited,
        )  # fmt: skip


class ProcessGroups:
    """CPU, memory, faults and storage of the largest process groups, once a second.

    The processes are those in the root cgroup of the CPU hierarchy, or all without a hierarchy.
    If there are more than ``MAX_PROCESSES``, the busiest are followed; the others are looked at
    a few at a time, new ones first.
    Idle ones are read every few passes only, and less often if a pass costs over ``COSTLY_NS``.
    """

    name, lane = "process-groups", Lane.SLOW

    def __init__(
        self,
        roots: Roots,
        cpu_tree: Path | None,
        selection: SubjectSelection,
        subject_of: Callable[[int, Path], str | None] | None = None,
    ) -> None:
        self.channels: tuple[Channel, ...] = ()
        # the subject that contains a group in other hierarchies than that of the CPU, by instance
        self.outer: Mapping[str, str] = {}
        self._subject_of = subject_of
        self._roots, self._proc, self._selection = roots, roots.proc, selection
        self._list = cpu_tree / "cgroup.procs" if cpu_tree else None
        self._reset()

    def _reset(self) -> None:
        constants = host_constants(self._roots)
        self._tick, self._page = constants.ticks_per_second, constants.page
        self._weights = ScoreWeights(self._tick, constants.memory)
        self._processes: dict[int, _ProcessFiles] = {}
        self._kernel_threads: set[bytes] = set()
        self._accounting = GroupAccounting()
        self._search = ProcessSearch(_SEARCHED, _BUSIER)
        self._group_selection = GroupSelection()
        self._selected: list[ProcessGroup] = []
        self._idle_passes = IDLE_PASSES
        self._last_pass_s = 0.0
        self._has_unread_pass = False

    def open(self) -> None:
        self._reset()
        if not self._listed() and not self._proc.is_dir():
            raise Unsupported(f"{self._proc} does not exist")
        self._read_all()
        self._select()

    def read(self) -> Sequence[int | None]:
        if self._has_unread_pass:  # the columns changed: return the last pass in the new ones
            self._has_unread_pass = False
            return self._values()
        before = time.monotonic_ns()
        self._read_all()
        self._adapt_idle_passes(time.monotonic_ns() - before)
        if self._select():
            self._has_unread_pass = True
            raise LayoutChanged(self.name)
        return self._values()

    def close(self) -> None:
        for process in self._processes.values():
            process.close()
        self._processes = {}

    def instance_of(self, group: int) -> str | None:
        """Return the instance of a process group by its number; None if it is not followed."""
        known = self._accounting.groups.get(group)
        return known.instance if known is not None else None

    def _pids(self) -> list[int]:
        listed = self._listed()
        if not listed:
            with os.scandir(self._proc) as entries:
                listed = [os.fsencode(entry.name) for entry in entries]
        # Skip known kernel threads: a large host has thousands.
        pids = {int(name) for name in set(listed) - self._kernel_threads if name.isdigit()}
        return sorted(pids - {0})  # 0: a process outside of this PID namespace

    def _listed(self) -> list[bytes]:
        """Return the pids of the root cgroup; none where there is no such list.

        The file is opened each time: cgroup v1 makes the list at the first read of a descriptor,
        and keeps it while it is read again within a second (kernel/cgroup/cgroup-v1.c,
        ``CGROUP_PIDLIST_DESTROY_DELAY``).
        """
        if self._list is None:
            return []
        try:
            return self._list.read_bytes().split()
        except OSError:
            return []

    def _read_all(self) -> None:
        if self._accounting.passes % _KERNEL_THREADS_PASSES == 0:
            self._kernel_threads = set()  # the kernel may have reused their pids
        pids = self._pids()
        for pid in self._processes.keys() - set(pids):
            self._processes.pop(pid).close()
        for pid in pids:
            self._read_process(pid)
        is_full = len(pids) > len(self._processes) >= MAX_PROCESSES
        if is_full and self._accounting.passes % _SEARCH_PASSES == 0:
            self._follow_busier(set(pids) - self._processes.keys())
        now = time.clock_gettime(time.CLOCK_BOOTTIME)
        samples = {pid: process.sample for pid, process in self._processes.items()}
        self._accounting.update(samples, int(self._last_pass_s * self._tick) - 1)
        update_scores(self._accounting.groups.values(), self._weights, now - self._last_pass_s)
        self._last_pass_s = now

    def _read_process(self, pid: int) -> None:
        process = self._processes.get(pid)
        try:
            if process is None:
                if len(self._processes) < MAX_PROCESSES:
                    self._processes[pid] = _ProcessFiles(pid, self._proc / str(pid), self._page)
            elif self._is_due(process):
                process.update()
        except NotAProcess:
            self._kernel_threads.add(b"%d" % pid)
        except (OSError, Unsupported, ValueError):  # ended, or not readable
            if process is not None:
                self._processes.pop(pid).close()

    def _follow_busier(self, waiting: Set[int]) -> None:
        """Follow processes that there is no room for instead of those that are less busy."""
        weights = self._weights
        replacements = self._search.replacements(
            {pid: weights.process_use(each.sample) for pid, each in self._processes.items()},
            {
                pid: weights.process_use(sample)
                for pid in self._search.due(waiting)
                if (sample := self._sample_of(pid)) is not None
            },
            waiting,
            time.clock_gettime(time.CLOCK_BOOTTIME),
        )
        for each in replacements:
            self._processes.pop(each.dropped).close()
            self._accounting.forget(each.dropped)
            self._read_process(each.followed)

    def _sample_of(self, pid: int) -> ProcessSample | None:
        """Return a sample of a process that is not followed, without its I/O."""
        try:
            return parse_stat(pid, (self._proc / str(pid) / "stat").read_bytes(), self._page)
        except NotAProcess:
            self._kernel_threads.add(b"%d" % pid)
        except (OSError, ValueError):
            log.debug("cannot sample process %d", pid)
        return None

    def _is_due(self, process: _ProcessFiles) -> bool:
        if process.idle < IDLE_PASSES:
            return True
        # The pid spreads the idle processes over the passes.
        every = self._idle_passes * (2 if process.idle >= LONG_IDLE else 1)
        return (self._accounting.passes + process.pid) % every == 0

    def _adapt_idle_passes(self, cost_ns: int) -> None:
        if cost_ns > COSTLY_NS:
            self._idle_passes = min(2 * self._idle_passes, MAX_IDLE_PASSES)
        elif cost_ns < COSTLY_NS // 2:
            self._idle_passes = max(IDLE_PASSES, self._idle_passes // 2)

    def _select(self) -> bool:
        """Choose the groups to show; return whether they changed."""
        allowed = [
            group
            for group in self._accounting.groups.values()
            if self._selection.accepts(group.instance)
        ]
        selected = self._group_selection.choose(self._accounting, allowed, self._last_pass_s)
        if selected == self._selected:
            return False
        self.outer = self._found_outer(selected)
        self._selected = selected
        self.channels = tuple(
            self._channel(metric, group) for group in selected for metric in (*_COUNTERS, *_LEVELS)
        )
        return True

    def _found_outer(self, selected: Sequence[ProcessGroup]) -> Mapping[str, str]:
        """Return the subjects around these groups; only those of new groups are looked up."""
        if self._subject_of is None:
            return {}
        outer = {g.instance: self.outer[g.instance] for g in selected if g.instance in self.outer}
        pids = {process.sample.group: pid for pid, process in self._processes.items()}
        for group in set(selected).difference(self._selected):
            try:
                subject = self._subject_of(pids[group.id], self._proc) if group.id in pids else None
            except (OSError, ValueError):  # it has just ended
                continue
            if subject is not None:
                outer[group.instance] = subject
        return self.outer if outer == self.outer else outer

    def _channel(self, metric: str, group: ProcessGroup) -> Channel:
        scale = 1e9 / self._tick if metric == "cpu.subject.usage" else 1.0
        return Channel(metric, group.instance, find(metric).kind, scale, Lane.SLOW)

    def _values(self) -> list[int | None]:
        row: list[int | None] = []
        for group in self._selected:
            if group.last_pass != self._accounting.passes:
                row.extend([None] * (len(_COUNTERS) + len(_LEVELS)))
                continue
            cpu, major, read, written, faults = group.totals
            row.extend((cpu, major))
            row.extend((read, written) if group.has_io else (None, None))
            row.extend((faults, group.memory, group.threads))
        return row
