"""Run and wait times of the threads of subjects, as the scheduler counts them for each thread.

Kernel documents: scheduler/sched-stats.rst (``/proc/PID/task/TID/schedstat``: ns on a CPU, ns on a
run queue), scheduler/sched-bwc.rst (``cpu.stat``).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from reveal_collector.subjects.cgroup_files import UNIFIED
from reveal_collector.subjects.cgroup_walk import cpu_usage, pids_below

MOST_THREADS = 256  # read in one pass, at about 25 us each


class ThreadTimes(NamedTuple):
    """What the threads of a subject did between two passes, in ns, and the CPUs they may use."""

    ran: int
    waited: int
    throttled: int
    cpus: int


class SubjectTimes:
    """Follows the threads of one cgroup and of those below it."""

    def __init__(self, trees: Mapping[str, Path], proc: Path, path: str) -> None:
        self._trees, self._proc, self._path = trees, proc, path
        self._tree = trees.get("cpuacct") or trees.get("cpu") or trees.get(UNIFIED)
        self._waited: dict[int, int] = {}  # by thread
        self._used = self._throttled = 0
        self._is_new = True
        self.threads = 0  # of the last pass

    def advance(self, elapsed_ns: int) -> ThreadTimes | None:
        """Return what happened since the last pass; None in the first one, and without threads.

        A thread that is new may have come from another cgroup, with all that it ever waited.
        """
        found = dict(self._threads())
        used, throttled = cpu_usage(self._trees, self._path), self._throttled_ns()
        waited = sum(self._step(tid, ns, elapsed_ns) for tid, (ns, _) in found.items())
        is_new, self._is_new = self._is_new, False
        ran, throttled_ns = max(0, used - self._used), max(0, throttled - self._throttled)
        self._waited = {tid: ns for tid, (ns, _) in found.items()}
        self._used, self._throttled, self.threads = used, throttled, len(found)
        if is_new or not found:
            return None
        return ThreadTimes(ran, waited, throttled_ns, max(cpus for _, cpus in found.values()))

    def _step(self, tid: int, waited: int, elapsed_ns: int) -> int:
        known = self._waited.get(tid)
        return min(waited, elapsed_ns) if known is None else max(0, waited - known)

    def _threads(self) -> Iterator[tuple[int, tuple[int, int]]]:
        """Yield each thread, how long it has waited, and how many CPUs its process may use."""
        for pid in pids_below(self._tree, self._path) if self._tree else ():
            with suppress(OSError, ValueError, IndexError):
                cpus = len(os.sched_getaffinity(pid))
                for thread in (self._proc / str(pid) / "task").iterdir():
                    with suppress(OSError):
                        text = (thread / "schedstat").read_bytes()
                        yield int(thread.name), (int(text.split()[1]), cpus)

    def _throttled_ns(self) -> int:
        """Return how long the quota of the cgroup has kept its run queues from CPUs."""
        for hierarchy, key, unit_ns in (
            ("cpu", b"throttled_time", 1),
            (UNIFIED, b"throttled_usec", 1000),
        ):
            if hierarchy in self._trees:
                with suppress(OSError, ValueError):
                    text = (self._trees[hierarchy] / self._path[1:] / "cpu.stat").read_bytes()
                    return _value_of(text.splitlines(), key) * unit_ns
        return 0


def _value_of(lines: Iterable[bytes], key: bytes) -> int:
    """Return the value of a key in lines of key and value, 0 if it is not there."""
    rows = (line.split() for line in lines)
    return next((int(row[1]) for row in rows if len(row) > 1 and row[0] == key), 0)
