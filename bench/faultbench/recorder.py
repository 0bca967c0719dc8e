"""Records sessions: a steady workload, the collector beside it, faults one after the other."""

from __future__ import annotations

import os
import random
import subprocess
import time
from collections.abc import Callable, Container, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from faultbench import host
from faultbench.recording_index import CaseRow, Index, read_index
from reveal_cli.faults import Fault, FaultError, FaultTarget, Injection, Ledger, Undo, sweep
from reveal_cli.faults.base import CGROUP_PREFIX
from reveal_cli.faults.cgroups import Cgroup
from reveal_cli.faults.disk import data_file, no_disk
from reveal_cli.workloads import CGROUP_PREFIX as WORK_PREFIX
from reveal_cli.workloads import Workload

MIXED = "mixed"
# a cycle of jobs that come and go: (job, from, to) in seconds
CYCLE_S = 300.0
SCHEDULE = (("train", 0.0, 210.0), ("server", 90.0, 300.0), ("loader", 150.0, 240.0))
_STEP_S = 0.2
_FIRST_SLICE_S, _LEAST_BYTES = 120.0, 1 << 12  # a recording with a slice is larger

Log = Callable[[str], None]


class Job(Protocol):
    """A job that faults are injected into while it runs."""

    @property
    def target(self) -> FaultTarget: ...

    @property
    def alive(self) -> bool: ...

    def stop(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...


MakeJob = Callable[[str, Path], Job]


class RecordError(RuntimeError):
    """Recording cannot go on; the text says why."""


@dataclass(frozen=True)
class Timing:
    """Seconds of each part; the quiet lead and the rest belong to the case."""

    warmup: float = 75.0
    lead: float = 8.0
    fault: float = 14.0
    rest: float = 12.0


@dataclass
class _Running:
    """A session under way."""

    index: Index
    jobs: dict[str, Job]
    collector: subprocess.Popen[bytes]
    scratch: Path

    def groups(self) -> list[Cgroup]:
        return [Cgroup(WORK_PREFIX + name) for name in self.jobs]

    def wait_for_slices(self, recording: Path) -> None:
        """Wait until the collector records, which takes long where other work uses all CPUs."""
        deadline = time.monotonic() + _FIRST_SLICE_S
        while not recording.exists() or recording.stat().st_size < _LEAST_BYTES:
            if time.monotonic() > deadline:
                raise RecordError(
                    f"{recording} has no slice after {_FIRST_SLICE_S:.0f} s: "
                    "other work starves the collector"
                )
            self.wait(_STEP_S)

    def wait(self, seconds: float) -> None:
        """Let time pass, unless something that must run has ended."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(left, _STEP_S))
            if self.collector.poll() is not None:
                raise RecordError(f"the collector ended by itself; {self.index.recording} says why")
            for name, job in self.jobs.items():
                if not job.alive:
                    raise RecordError(f"the workload {name} ended by itself")


class Recorder:
    """Writes sessions into a directory; what is there already is not recorded again.

    ``job`` makes the workloads that faults are injected into.
    """

    def __init__(
        self, directory: Path, scratch: Path, timing: Timing, log: Log, job: MakeJob = Workload
    ) -> None:
        if os.getuid() != 0:
            raise RecordError("recording needs root: workloads and faults get cgroups of their own")
        if why := no_disk(scratch):
            raise RecordError(why)
        directory.mkdir(parents=True, exist_ok=True)
        self.directory, self.timing, self._base, self._log = directory, timing, scratch, log
        self._job = job

    def faults(self, workload: str, faults: Sequence[Fault], *, last: Container[str] = ()) -> None:
        """Record those of ``faults`` that the directory does not have for this workload.

        Faults of the names in ``last`` come after the others.
        """
        done = {
            name
            for index in self._indexes(workload)
            for name in (*index.skipped, *(case.fault for case in index.cases))
        }
        pending = [fault for fault in faults if fault.name not in done]
        random.Random(workload).shuffle(pending)  # areas mixed, the same way each time
        pending.sort(key=lambda fault: fault.name in last)
        if not pending:
            self._log(f"{workload}: nothing left to record")
            return
        with ExitStack() as stack:
            running = self._begin(stack, workload, workload)
            for number, fault in enumerate(pending, 1):
                self._log(f"{workload}: {number} of {len(pending)}: {fault.name}")
                self._case(running, fault)
                running.index.save(self.directory)

    def healthy(self, minutes: float) -> None:
        """Record ``minutes`` of jobs that start, stop and change phase, and nothing else."""
        recorded = sum(index.clock(index.end_ns) for index in self._indexes(MIXED))
        left = minutes * 60 - recorded
        if left <= 0:
            self._log("healthy: nothing left to record")
            return
        with ExitStack() as stack:
            running = self._begin(stack, MIXED, "train")
            index = running.index
            while index.clock(time.time_ns()) < left:
                self._follow(stack, running, due(index.clock(time.time_ns())))
                running.wait(_STEP_S)
                index.end_ns = time.time_ns()
                index.save(self.directory)

    def _begin(self, stack: ExitStack, name: str, job: str) -> _Running:
        """Scratch directory, job, collector and warm-up; all of it undone by ``stack``."""
        sweep()
        ledger = Ledger("bench")
        stack.callback(ledger.close)
        scratch = self._base / f"reveal-bench-{os.getpid()}"
        ledger.add(Undo("tree", (str(scratch),)))
        scratch.mkdir(mode=0o700)
        data_file(scratch)
        jobs = {job: stack.enter_context(self._job(job, scratch))}
        number = 1 + len(self._indexes(name))
        recording = self.directory / f"{name}-{number}.rvl"
        index = Index(name, recording.name, time.time_ns(), host.describe())
        collector = stack.enter_context(host.collecting(recording))
        running = _Running(index, jobs, collector, scratch)
        running.wait_for_slices(recording)
        self._log(f"{name}: warm-up of {self.timing.warmup:.0f} s")
        meter = host.Meter(running.groups())
        running.wait(self.timing.warmup)
        index.warm_ns, index.neighbour_cores = time.time_ns(), meter.neighbours()
        index.end_ns = index.warm_ns
        index.save(self.directory)
        return running

    def _case(self, running: _Running, fault: Fault) -> None:
        """Quiet lead, fault, rest; the times and the neighbours' load go to the index."""
        (job,) = running.jobs.values()
        index = running.index
        if why := fault.unsupported_reason(job.target):
            index.skipped[fault.name] = why
            self._log(f"  skipped: {why}")
            return
        fault.prepare(job.target)
        begin, meter = time.time_ns(), host.Meter(running.groups())
        running.wait(self.timing.lead)
        onset = time.time_ns()
        injection = fault.on(job.target)
        try:
            injection.start()
            running.wait(self.timing.fault)
            if why := injection.failure():
                raise FaultError(why)
            neighbours = meter.neighbours(_own_seconds(injection))
        except FaultError as error:
            index.skipped[fault.name] = str(error)
            self._log(f"  skipped: {error}")
            return
        finally:
            offset = time.time_ns()
            injection.stop()
        running.wait(self.timing.rest)
        index.end_ns = time.time_ns()
        index.cases.append(
            CaseRow(
                fault.name, fault.kind, fault.weak, sorted(fault.subsystems), injection.subject,
                round(neighbours, 3), begin, onset, offset, index.end_ns,
            )
        )  # fmt: skip

    def _follow(self, stack: ExitStack, running: _Running, expected: set[str]) -> None:
        """Start and stop jobs until those that are due run."""
        for name in running.jobs.keys() - expected:
            self._log(f"healthy: {name} stops")
            running.jobs.pop(name).stop()
        for name in expected - running.jobs.keys():
            self._log(f"healthy: {name} starts")
            running.jobs[name] = stack.enter_context(self._job(name, running.scratch))

    def _indexes(self, workload: str) -> list[Index]:
        paths = sorted(self.directory.glob(f"{workload}-*.session.json"))
        return [read_index(path) for path in paths]


def due(clock: float, schedule: Iterable[tuple[str, float, float]] = SCHEDULE) -> set[str]:
    """The jobs that run at this time of a healthy session, in seconds since it began."""
    return {job for job, start, end in schedule if start <= clock % CYCLE_S < end}


def _own_seconds(injection: Injection) -> float:
    """CPU time used by a fault's own cgroup, 0 where it has none."""
    group = Cgroup(CGROUP_PREFIX + injection.fault.name)
    return group.cpu_seconds() if injection.subject == group.path else 0.0
