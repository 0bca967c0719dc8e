"""Processes on the GPUs, as the driver lists them, and the subjects they belong to.

NVML gives the PIDs of the host.  In another PID namespace they cannot be resolved; what these
processes use then counts for ``UNATTRIBUTED``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from reveal_collector.nvml import library
from reveal_collector.nvml.library import Handle, Library
from reveal_collector.nvml.metric_queries import Query, Values
from reveal_collector.subjects.pods.process_owner import ProcessOwner, SubjectOfPid
from reveal_collector.subjects.processes import NotAProcess, parse_stat
from reveal_collector.subjects.stable_selection import StableSelection
from reveal_contract.time_units import NS_PER_SECOND

LIST_NS, SAMPLE_NS = 2 * NS_PER_SECOND, 5 * NS_PER_SECOND
UNATTRIBUTED = "unattributed"
_MARGIN_BYTES = 64 << 20  # that a subject must use more than another to replace it
_ALL = 100_00  # the whole time of a GPU, in hundredths of a percent
_MAX_PERCENT = 100  # samples of processes that just started may hold garbage


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """A process on a GPU; ``memory`` is in bytes, ``None`` if the driver does not report it."""

    pid: int
    memory: int | None


class GpuProcesses:
    """The processes of one GPU, updated by its queries.

    ``is_listed`` and ``is_sampled`` are False after a query that failed: what the processes use is
    then unknown.
    """

    def __init__(self) -> None:
        self.processes: tuple[GpuProcess, ...] = ()
        self.busy: dict[int, float] = {}  # pid -> percent of the time of the GPU
        self.is_listed = self.is_sampled = True
        self.has_samples = False  # whether this card says what each process uses of its time
        self._last_sample_us = 0

    def queries(self) -> tuple[Query, Query]:
        """Return the queries that update the processes."""
        return (
            Query("processes", ("gpu.processes",), LIST_NS, self._list),
            # it takes 3 ms on an H100; the driver keeps the samples since the last call
            Query("process_utilization", (), SAMPLE_NS, self._sample),
        )

    def clear(self) -> None:
        """Remove all processes: the GPU is lost, so that nothing uses it."""
        self.is_listed = self.is_sampled = True
        self.processes, self.busy, self._last_sample_us = (), {}, 0

    def _list(self, nvml: Library, handle: Handle) -> Values:
        self.is_listed = False
        listed = nvml.nvmlDeviceGetComputeRunningProcesses(handle)
        try:
            listed += nvml.nvmlDeviceGetGraphicsRunningProcesses(handle)
        except nvml.NVMLError as error:
            if not library.is_unsupported(error.value):
                raise
        self.is_listed = True
        self.processes = deduplicated(GpuProcess(each.pid, each.usedGpuMemory) for each in listed)
        return (len({process.pid for process in self.processes}),)

    def _sample(self, nvml: Library, handle: Handle) -> Values:
        self.is_sampled = False
        try:
            samples = nvml.nvmlDeviceGetProcessUtilization(handle, self._last_sample_us)
        except nvml.NVMLError as error:
            if error.value != library.NOT_FOUND:
                raise
            samples = []  # no process used the GPU since the last sample
        self._last_sample_us = max([self._last_sample_us, *(each.timeStamp for each in samples)])
        self.is_sampled = self.has_samples = True
        self.busy = mean_utilization(samples)
        return ()


def deduplicated(processes: Iterable[GpuProcess]) -> tuple[GpuProcess, ...]:
    """Return each process once per MIG instance: one that computes and draws is listed twice."""
    return tuple(dict.fromkeys(processes))


def mean_utilization(samples: Iterable[Any]) -> dict[int, float]:
    """Return the mean percentage of the time of the GPU by pid."""
    found: dict[int, list[int]] = {}
    for each in samples:
        if each.pid and each.smUtil <= _MAX_PERCENT:
            found.setdefault(each.pid, []).append(each.smUtil)
    return {pid: sum(values) / len(values) for pid, values in found.items()}


def contention(shares: Iterable[int]) -> int:
    """Return for how much of its time a GPU is wanted by several subjects, of what each uses.

    All are hundredths of a percent.  What all but the one with the most use is used in turns, as
    far as no time is left.
    """
    used = sorted(shares)
    left = max(0, _ALL - sum(used))
    return max(0, min(_ALL, sum(used[:-1])) - left)


class SubjectCache:
    """Subjects by process, cached with the start time: a reused pid is another process.

    A process that ended since the driver listed it keeps its subject.
    """

    def __init__(self, proc: Path, subject_of_pid: SubjectOfPid | None = None) -> None:
        self._proc = proc
        self._find_subject = subject_of_pid or ProcessOwner(proc)
        self._known: dict[int, tuple[int | None, str]] = {}

    def subject_of(self, pid: int) -> str:
        """Return the subject of a process, ``UNATTRIBUTED`` if it cannot be found."""
        known = self._known.get(pid)
        try:
            start = parse_stat(pid, (self._proc / str(pid) / "stat").read_bytes(), 1).start
        except (OSError, ValueError, NotAProcess):
            return known[1] if known else UNATTRIBUTED
        if known is None or known[0] != start:
            known = self._known[pid] = start, self._find_subject(pid) or UNATTRIBUTED
        return known[1]

    def renew(self) -> None:
        """Have the subjects of living processes found again."""
        self._known = {pid: (None, subject) for pid, (_, subject) in self._known.items()}

    def retain(self, pids: Iterable[int]) -> None:
        """Remove all other processes."""
        listed = set(pids)
        self._known = {pid: known for pid, known in self._known.items() if pid in listed}


class SubjectGpuUsage:
    """Memory and time that subjects use on all GPUs; a subject that left shows 0 for a while."""

    LINGER_NS = 60 * NS_PER_SECOND
    MAX_SUBJECTS = 64
    RENEW_NS = 60 * NS_PER_SECOND  # the pod of a process may be listed later than the process

    def __init__(self, cache: SubjectCache) -> None:
        self._cache = cache
        self._last_use_ns: dict[str, int] = {}
        self._selection: StableSelection[str] = StableSelection(
            self.MAX_SUBJECTS, _MARGIN_BYTES, name=str
        )
        self._renewed_ns = 0

    def values(
        self, gpus: Iterable[GpuProcesses], now_ns: int
    ) -> dict[tuple[str, str], int | None]:
        """Return bytes and hundredths of a percent of GPU time, by metric and subject."""
        gpus = list(gpus)
        if now_ns - self._renewed_ns > self.RENEW_NS:
            self._renewed_ns = now_ns
            self._cache.renew()
        self._cache.retain(
            pid for gpu in gpus for pid in (*gpu.busy, *(each.pid for each in gpu.processes))
        )
        memory = self._sum((each.pid, each.memory) for gpu in gpus for each in gpu.processes)
        utilization = self._sum(
            (pid, round(100 * share)) for gpu in gpus for pid, share in gpu.busy.items()
        )
        self._last_use_ns |= dict.fromkeys((*memory, *utilization), now_ns)
        self._last_use_ns = {
            subject: last
            for subject, last in self._last_use_ns.items()
            if now_ns - last < self.LINGER_NS
        }
        # a GPU whose processes are not known may be used by any subject
        is_listed = all(gpu.is_listed for gpu in gpus)
        is_sampled = all(gpu.is_sampled for gpu in gpus)
        return {
            (metric, subject): totals.get(subject, 0) if is_known else None
            for subject in sorted(self._choose(memory, now_ns))
            for metric, totals, is_known in (
                ("gpu.subject.memory_used", memory, is_listed),
                ("gpu.subject.sm_utilization", utilization, is_sampled),
            )
        }

    def contention(self, gpu: GpuProcesses) -> int | None:
        """Return how much subjects wait for each other on a GPU, in hundredths of a percent."""
        if not gpu.is_sampled:
            return None
        shares = self._sum((pid, round(100 * share)) for pid, share in gpu.busy.items())
        return contention([share or 0 for share in shares.values()])

    def _choose(self, memory: Mapping[str, int | None], now_ns: int) -> frozenset[str]:
        """Return the subjects to show: those with the most memory."""
        last_use_ns = self._last_use_ns
        return self._selection.update(
            {subject: memory.get(subject) or 0 for subject in last_use_ns},
            now_ns / NS_PER_SECOND,
            ended={subject for subject, last in last_use_ns.items() if last != now_ns},
        )

    def _sum(self, amounts: Iterable[tuple[int, int | None]]) -> dict[str, int | None]:
        """Return the sums by subject; ``None`` if the amount of one of its processes is unknown."""
        totals: dict[str, int | None] = {}
        for pid, amount in amounts:
            subject = self._cache.subject_of(pid)
            total = totals.get(subject, 0)
            totals[subject] = None if amount is None or total is None else total + amount
        return totals
