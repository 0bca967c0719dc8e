"""Records each workload several times, alone beside a collector, in a cgroup of its own."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

from faultbench import host
from reveal_cli.faults import launch, sweep
from reveal_cli.faults.cgroups import Cgroup
from reveal_cli.faults.disk import no_disk
from reveal_cli.faults.ledger import Ledger, Undo
from reveal_cli.workloads import CGROUP_PREFIX

SESSION = "paper.session.json"
MARK = "bench-paper"
_STARTUP_S = 60.0
_STEP_S = 0.2
_AHEAD_S = 1.5  # the collector's own start
_SINGLE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")

Log = Callable[[str], None]


class RecordError(RuntimeError):
    """Recording cannot go on; the text says why."""


@dataclass(frozen=True)
class Run:
    """One recording: the workload, which of its runs, and the cores others used meanwhile."""

    workload: str
    number: int
    recording: str
    neighbour_cores: float


@dataclass(frozen=True)
class Plan:
    """Which workloads, how many runs of each, and how long each is recorded, in seconds."""

    workloads: tuple[str, ...]
    runs: int = 3
    seconds: float = 36.0


def record(directory: Path, scratch: Path, plan: Plan, log: Log) -> None:
    """Record the missing runs; those of all workloads take turns.

    So a host that changes over the minutes does so for all of them alike.
    """
    if os.getuid() != 0:
        raise RecordError("recording needs root: each workload gets a cgroup of its own")
    if why := no_disk(scratch):
        raise RecordError(why)
    directory.mkdir(parents=True, exist_ok=True)
    for variable in _SINGLE_THREAD:
        os.environ[variable] = "1"
    sweep()
    done = read(directory)
    for number in range(1, plan.runs + 1):
        for name in plan.workloads:
            if any((run.workload, run.number) == (name, number) for run in done):
                continue
            log(f"{name}: run {number} of {plan.runs}")
            done.append(_run(directory, scratch, (name, number), plan.seconds))
            _save(directory, done)


def read(directory: Path) -> list[Run]:
    """The runs that a directory holds."""
    path = directory / SESSION
    if not path.exists():
        return []
    return [Run(**row) for row in json.loads(path.read_text())["runs"]]


def _save(directory: Path, runs: Iterable[Run]) -> None:
    content = {"host": host.describe(), "runs": [asdict(run) for run in runs]}
    (directory / SESSION).write_text(json.dumps(content, indent=1) + "\n")


def _run(directory: Path, scratch: Path, which: tuple[str, int], seconds: float) -> Run:
    name, number = which
    path = directory / f"{name}-{number}.rvl"
    log = directory / f"{name}-{number}.job.log"
    with ExitStack() as stack:
        ledger = Ledger(MARK)
        stack.callback(ledger.close)
        files = scratch / f"reveal-{MARK}-{os.getpid()}"
        ledger.add(Undo("tree", (str(files),)))
        files.mkdir(mode=0o700)
        group = Cgroup(f"{CGROUP_PREFIX}paper-{name}")
        ledger.add(Undo("cgroup", (group.name,)))
        group.create()
        log.unlink(missing_ok=True)
        command = launch.python("paperbench.workloads", name, str(files))
        job = launch.start(command, MARK, group, log)
        stack.callback(launch.stop, job)
        _until_working(job, log)
        path.unlink(missing_ok=True)
        collector = stack.enter_context(host.collecting(path))
        meter = host.Meter([group])
        _wait(seconds + _AHEAD_S, {name: job, "the collector": collector})
        neighbours = meter.neighbours()
    return Run(name, number, path.name, round(neighbours, 3))


def _until_working(job: subprocess.Popen[bytes], log: Path) -> None:
    """Until it has logged its first piece of work."""
    end = time.monotonic() + _STARTUP_S
    while not (log.exists() and b'"event"' in log.read_bytes()):
        if job.poll() is not None or time.monotonic() > end:
            raise RecordError(f"a workload did not begin to work; {log} says why")
        time.sleep(_STEP_S)


def _wait(seconds: float, processes: dict[str, subprocess.Popen[bytes]]) -> None:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        for name, process in processes.items():
            if process.poll() is not None:
                raise RecordError(f"{name} ended by itself")
        time.sleep(min(left, _STEP_S))
