"""Who uses the GPUs: processes as the driver lists them, brought under the host's subjects.

NVML names processes by the host's PIDs: seen from another PID namespace they are strangers,
and what they hold is ``UNATTRIBUTED``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reveal_collector.nvml import library
from reveal_collector.nvml.budget import SLOW_NS
from reveal_collector.nvml.library import Handle, Library
from reveal_collector.nvml.queries import Query, Values
from reveal_collector.subjects.pods.process_owner import ProcessOwner, SubjectOfPid
from reveal_collector.subjects.processes import NotAProcess, parse_stat
from reveal_contract.time_units import NS_PER_SECOND

LIST_NS = 5 * NS_PER_SECOND
UNATTRIBUTED = "unattributed"
_MOST_PERCENT = 100  # the driver's ring holds garbage for processes that just began


@dataclass(frozen=True, slots=True)
class Holder:
    """A process on a GPU; ``memory`` in bytes, none where the driver does not tell."""

    pid: int
    memory: int | None


class Holders:
    """The processes of one GPU, renewed by its queries."""

    def __init__(self) -> None:
        self.processes: tuple[Holder, ...] = ()
        self.busy: dict[int, float] = {}  # pid -> percent of the GPU's time
        self._seen_us = 0

    def queries(self) -> tuple[Query, Query]:
        return (
            Query("processes", ("gpu.processes",), LIST_NS, self._list),
            Query("process_utilization", (), SLOW_NS, self._sample),
        )

    def clear(self) -> None:
        self.processes, self.busy, self._seen_us = (), {}, 0

    def _list(self, nvml: Library, handle: Handle) -> Values:
        listed = nvml.nvmlDeviceGetComputeRunningProcesses(handle)
        try:
            listed += nvml.nvmlDeviceGetGraphicsRunningProcesses(handle)
        except nvml.NVMLError as error:
            if not library.is_absent(error.value):
                raise
        self.processes = merged(Holder(each.pid, each.usedGpuMemory) for each in listed)
        return (len({holder.pid for holder in self.processes}),)

    def _sample(self, nvml: Library, handle: Handle) -> Values:
        try:
            samples = nvml.nvmlDeviceGetProcessUtilization(handle, self._seen_us)
        except nvml.NVMLError as error:
            if error.value != library.NOT_FOUND:
                raise
            samples = []  # nobody used it since the last time
        self._seen_us = max([self._seen_us, *(each.timeStamp for each in samples)])
        self.busy = mean_use(samples)
        return ()


def merged(holders: Iterable[Holder]) -> tuple[Holder, ...]:
    """One row a process and MIG instance; who computes and draws is listed twice."""
    return tuple(dict.fromkeys(holders))


def mean_use(samples: Iterable[Any]) -> dict[int, float]:
    """Percent of the GPU's time by pid: the mean of its samples."""
    found: dict[int, list[int]] = {}
    for each in samples:
        if each.pid and each.smUtil <= _MOST_PERCENT:
            found.setdefault(each.pid, []).append(each.smUtil)
    return {pid: sum(values) / len(values) for pid, values in found.items()}


class Owners:
    """pid -> subject, remembered by (pid, start time): a number that comes again is another."""

    def __init__(self, proc: Path, subject_of_pid: SubjectOfPid | None = None) -> None:
        self._proc = proc
        self._ask = subject_of_pid or ProcessOwner(proc)
        self._known: dict[int, tuple[int, str]] = {}

    def of(self, pid: int) -> str:
        try:
            start = parse_stat(pid, (self._proc / str(pid) / "stat").read_bytes(), 1).start
        except (OSError, ValueError, NotAProcess):
            return UNATTRIBUTED
        known = self._known.get(pid)
        if known is None or known[0] != start:
            known = self._known[pid] = start, self._ask(pid) or UNATTRIBUTED
        return known[1]

    def keep(self, pids: Iterable[int]) -> None:
        """Forget all others."""
        alive = set(pids)
        self._known = {pid: known for pid, known in self._known.items() if pid in alive}


class SubjectUse:
    """What subjects hold and use, over all GPUs; one that left shows 0 for a while."""

    LINGER_NS = 60 * NS_PER_SECOND
    MOST = 64
    RENEW_NS = 60 * NS_PER_SECOND  # a pod may be listed only after its process was seen

    def __init__(self, owners: Owners) -> None:
        self._owners = owners
        self._seen_ns: dict[str, int] = {}
        self._renewed_ns = 0

    def figures(self, holders: Iterable[Holders], now_ns: int) -> dict[tuple[str, str], int | None]:
        """(metric, subject) -> bytes held, and hundredths of a percent of GPU time."""
        rows = list(holders)
        if now_ns - self._renewed_ns > self.RENEW_NS:
            self._renewed_ns = now_ns
            self._owners.keep(())
        self._owners.keep(
            pid for row in rows for pid in (*row.busy, *(each.pid for each in row.processes))
        )
        memory = self._sum((each.pid, each.memory) for row in rows for each in row.processes)
        use = self._sum(
            (pid, round(100 * share)) for row in rows for pid, share in row.busy.items()
        )
        self._seen_ns |= dict.fromkeys((*memory, *use), now_ns)
        self._seen_ns = {
            subject: seen
            for subject, seen in self._seen_ns.items()
            if now_ns - seen < self.LINGER_NS
        }
        return {
            (metric, subject): of.get(subject, 0)
            for subject in sorted(_largest(self._seen_ns, memory, self.MOST))
            for metric, of in (
                ("gpu.subject.memory_used", memory),
                ("gpu.subject.sm_utilization", use),
            )
        }

    def _sum(self, amounts: Iterable[tuple[int, int | None]]) -> dict[str, int | None]:
        """By subject; none where one of its processes' is not told."""
        total: dict[str, int | None] = {}
        for pid, amount in amounts:
            subject = self._owners.of(pid)
            before = total.get(subject, 0)
            total[subject] = None if amount is None or before is None else before + amount
        return total


def _largest(subjects: Mapping[str, int], memory: Mapping[str, int | None], most: int) -> list[str]:
    return sorted(subjects, key=lambda subject: -(memory.get(subject) or 0))[:most]
