"""Source: process groups, the subjects where processes live in no cgroup of their own.

A group's counters are sums of what its processes used, kept monotone: a process that ends
takes nothing away, and what a parent takes over from its dead children (``cutime`` and the
like, proc(5)) counts only as far as the child was not followed while it lived.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from reveal_collector.kernel.errors import LayoutChanged, Unsupported
from reveal_collector.readers.textfile import OpenFile
from reveal_collector.subjects.process_groups import Group, Ledger, Reading, Weights, rescore, table
from reveal_collector.subjects.tracker import Choice
from reveal_contract.catalogue import find
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane

MOST_PROCESSES = 512
COSTLY_NS = 3_000_000
IDLE_PASSES, MOST_IDLE_PASSES = 5, 60
LONG_IDLE = 17  # reads, a minute of them: such a process is read half as often again
_KERNEL_THREAD = 0x0020_0000  # PF_KTHREAD, include/linux/sched.h
_INIT = 1
_FORGET_PASSES = 60
_COUNTERS = (
    "cpu.subject.usage",
    "memory.subject.major_faults",
    "storage.subject.read_bytes",
    "storage.subject.write_bytes",
)
_LEVELS = ("memory.subject.usage", "cpu.subject.tasks")


class NotAProcess(Exception):
    """A kernel thread: its time belongs to no subject."""


def parse_stat(pid: int, data: bytes, page: int) -> Reading:
    """``/proc/PID/stat`` (proc(5)); the name may hold blanks and brackets.

    Raises ``NotAProcess`` for a kernel thread and ``ValueError`` for garbled text.
    """
    head, _, tail = data.rpartition(b")")
    fields = tail.split()
    if len(fields) < 22:
        raise ValueError(f"stat of process {pid} has {len(fields)} fields after the name")
    if int(fields[6]) & _KERNEL_THREAD:
        raise NotAProcess
    own = [int(fields[at]) for at in (11, 12, 9)]
    # init reaps orphans that nobody here could have known: their life is not its own
    waited = [0, 0, 0] if pid == _INIT else [int(fields[at]) for at in (13, 14, 10)]
    return Reading(
        group=int(fields[2]),
        parent=int(fields[1]),
        start=int(fields[19]),
        name=printable(head.partition(b"(")[2]),
        totals=(own[0] + own[1] + waited[0] + waited[1], own[2] + waited[2], 0, 0),
        memory=int(fields[21]) * page,
        threads=int(fields[17]),
    )


def printable(name: bytes) -> str:
    """A command name that cannot break a label: anybody may choose theirs."""
    text = name.decode("utf-8", "replace")
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def parse_io(data: bytes) -> tuple[int, int]:
    """Bytes read from and written to storage, of ``/proc/PID/io``."""
    tokens = data.split()
    found = dict(zip(tokens[::2], tokens[1::2], strict=False))
    return int(found.get(b"read_bytes:", b"0")), int(found.get(b"write_bytes:", b"0"))


class _Process:
    """The open files of one process; a descriptor never shows another process's numbers."""

    def __init__(self, pid: int, folder: Path, page: int) -> None:
        self.pid, self.idle = pid, 0
        self._page, self._last = page, b""
        self._stat = OpenFile(folder / "stat")
        self._io: OpenFile | None = OpenFile(folder / "io")
        self._stat.open()
        try:
            self._io.open()
        except Unsupported:  # another user's, and no CAP_SYS_PTRACE
            self._io = None
        try:
            self.reading = self._read(self._stat.read())
        except BaseException:
            self.close()
            raise

    def renew(self) -> None:
        data = self._stat.read()
        if data == self._last:
            self.idle += 1
            return
        self.idle = 0
        self.reading = self._read(data)

    def close(self) -> None:
        self._stat.close()
        if self._io is not None:
            self._io.close()

    def _read(self, data: bytes) -> Reading:
        if not data:  # gone: some kernels say so by an empty file
            raise ProcessLookupError(self.pid)
        reading = parse_stat(self.pid, data, self._page)
        self._last = data
        read, written, known = 0, 0, False
        if self._io is not None and self.pid != _INIT:
            try:
                read, written = parse_io(self._io.read())
                known = True
            except PermissionError:  # it has changed its user since
                self._io.close()
                self._io = None
        return Reading(
            reading.group, reading.parent, reading.start, reading.name,
            (*reading.totals[:2], read, written), reading.memory, reading.threads, known,
        )  # fmt: skip


class ProcessGroups:
    """CPU, memory, faults and storage of the largest process groups, once a second.

    Processes are those in the root cgroup of the CPU hierarchy, or all where there is none.
    Idle ones are read every few passes only, fewer still when a pass costs over ``COSTLY_NS``.
    """

    name, lane = "process-groups", Lane.SLOW

    def __init__(self, proc: Path, cpu_tree: Path | None, choice: Choice) -> None:
        self.channels: tuple[Channel, ...] = ()
        self._proc, self._choice = proc, choice
        self._list = OpenFile(cpu_tree / "cgroup.procs") if cpu_tree else None
        self._tick = os.sysconf("SC_CLK_TCK")
        self._page = os.sysconf("SC_PAGE_SIZE")
        self._weights = Weights(self._tick, self._page * os.sysconf("SC_PHYS_PAGES"))
        self._reset()

    def _reset(self) -> None:
        self._processes: dict[int, _Process] = {}
        self._kernel: set[bytes] = set()
        self._ledger = Ledger()
        self._shown: list[Group] = []
        self._idle_passes = IDLE_PASSES
        self._passed_at = 0.0
        self._renewed = False

    def open(self) -> None:
        self._reset()
        if self._list is not None:
            try:
                self._list.open()
            except Unsupported:
                self._list = None
        if self._list is None and not self._proc.is_dir():
            raise Unsupported(f"{self._proc} is not there")
        self._pass()
        self._show()

    def read(self) -> Sequence[int | None]:
        if self._renewed:  # the same pass, asked for again under the new columns
            self._renewed = False
            return self._values()
        before = time.monotonic_ns()
        self._pass()
        self._adapt(time.monotonic_ns() - before)
        if self._show():
            self._renewed = True
            raise LayoutChanged(self.name)
        return self._values()

    def close(self) -> None:
        for process in self._processes.values():
            process.close()
        self._processes = {}
        if self._list is not None:
            self._list.close()

    def _pids(self) -> list[int]:
        listed = self._list.read().split() if self._list is not None else []
        if not listed:
            with os.scandir(self._proc) as entries:
                listed = [os.fsencode(entry.name) for entry in entries]
        # of thousands of kernel threads no number is looked at
        pids = {int(name) for name in set(listed) - self._kernel if name.isdigit()}
        return sorted(pids - {0})  # 0: a process outside of this PID namespace

    def _pass(self) -> None:
        if self._ledger.passes % _FORGET_PASSES == 0:
            self._kernel = set()  # their numbers may be others' by now
        pids = self._pids()
        for pid in self._processes.keys() - set(pids):
            self._processes.pop(pid).close()
        for pid in pids:
            self._visit(pid)
        now = time.clock_gettime(time.CLOCK_BOOTTIME)
        readings = {pid: process.reading for pid, process in self._processes.items()}
        self._ledger.update(readings, int(self._passed_at * self._tick) - 1)
        rescore(self._ledger.groups.values(), self._weights, now - self._passed_at)
        self._passed_at = now

    def _visit(self, pid: int) -> None:
        process = self._processes.get(pid)
        try:
            if process is None:
                if len(self._processes) < MOST_PROCESSES:
                    self._processes[pid] = _Process(pid, self._proc / str(pid), self._page)
            elif self._is_due(process):
                process.renew()
        except NotAProcess:
            self._kernel.add(b"%d" % pid)
        except (OSError, Unsupported, ValueError):  # ended, or garbled: as if ended
            if process is not None:
                self._processes.pop(pid).close()

    def _is_due(self, process: _Process) -> bool:
        if process.idle < IDLE_PASSES:
            return True
        every = self._idle_passes * (2 if process.idle >= LONG_IDLE else 1)
        return (self._ledger.passes + process.pid) % every == 0

    def _adapt(self, cost_ns: int) -> None:
        if cost_ns > COSTLY_NS:
            self._idle_passes = min(2 * self._idle_passes, MOST_IDLE_PASSES)
        elif cost_ns < COSTLY_NS // 2:
            self._idle_passes = max(IDLE_PASSES, self._idle_passes // 2)

    def _show(self) -> bool:
        """Choose the groups to show; whether they are others than before."""
        takes = [
            group for group in self._ledger.groups.values() if self._choice.takes(group.instance)
        ]
        shown = table(self._shown, self._ledger, takes)
        if [id(one) for one in shown] == [id(one) for one in self._shown]:
            return False
        self._shown = shown
        self.channels = tuple(
            self._channel(metric, group) for group in shown for metric in (*_COUNTERS, *_LEVELS)
        )
        return True

    def _channel(self, metric: str, group: Group) -> Channel:
        scale = 1e9 / self._tick if metric == "cpu.subject.usage" else 1.0
        return Channel(metric, group.instance, find(metric).kind, scale, Lane.SLOW)

    def _values(self) -> list[int | None]:
        row: list[int | None] = []
        for group in self._shown:
            if group.last_pass != self._ledger.passes:
                row.extend([None] * (len(_COUNTERS) + len(_LEVELS)))
                continue
            cpu, faults, read, written = group.totals
            row.extend((cpu, faults))
            row.extend((read, written) if group.has_io else (None, None))
            row.extend((group.memory, group.threads))
        return row
