"""Records training jobs of known step time beside a collector, each in a cgroup of its own."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from faultbench import host
from heartbeatbench.schedule import JobPlan, Session, episodes, hog_after
from reveal_cli.faults import launch, sweep
from reveal_cli.faults.cgroups import Cgroup
from reveal_cli.faults.disk import data_file, no_disk
from reveal_cli.faults.ledger import Ledger, Undo
from reveal_cli.workloads import CGROUP_PREFIX, Workload

RECORDING, SESSION = "heartbeat.rvl", "heartbeat.session.json"
BYSTANDERS = ("server", "loader")  # jobs without steps
_ON_FEW = ("short", "ranks", "long", "jax")  # what a host of few CPUs runs without queueing
_FEW_CPUS = 4
MARK = "bench-heartbeat"
_HOGS = 3
_TAIL_S = 12.0
_STEP_S = 0.2
_ROOT = Path(__file__).parents[1]

Log = Callable[[str], None]


class RecordError(RuntimeError):
    """Recording cannot go on; the text says why."""


def jobs(cpus: int) -> list[JobPlan]:
    """Training loops of numpy, and of JAX where it is installed, with one and two ranks.

    A host of few CPUs gets few of them: what queues for a CPU has no step time of its own.
    """
    plans = [
        JobPlan("short", 0.128),
        JobPlan("ranks", 0.45, ranks=2, passes=2),
        JobPlan("long", 1.57, passes=10),
        JobPlan("slow", 5.5, accumulate=8, passes=2),
    ]
    if importlib.util.find_spec("jax") is not None:
        plans.append(JobPlan("jax", 0.31, framework="jax", passes=4))
        plans.append(JobPlan("jaxranks", 0.7, ranks=2, framework="jax", passes=4))
    chosen = [job for job in plans if cpus >= _FEW_CPUS or job.name in _ON_FEW]
    return [replace(job, episodes=episodes(turn)) for turn, job in enumerate(chosen)]


def cgroup(job: str) -> Cgroup:
    return Cgroup(f"{CGROUP_PREFIX}beat-{job}")


def log_of(directory: Path, job: str) -> Path:
    return directory / f"steps-{job}.jsonl"


def record(directory: Path, scratch: Path, log: Log, seconds: float | None = None) -> None:
    """One session; it takes about ten minutes, or ``seconds``."""
    if os.getuid() != 0:
        raise RecordError("recording needs root: each job gets a cgroup of its own")
    if why := no_disk(scratch):
        raise RecordError(why)
    if (directory / SESSION).exists():
        raise RecordError(f"{directory} holds a session already")
    directory.mkdir(parents=True, exist_ok=True)
    sweep()
    cpus = os.cpu_count() or 1
    planned, beside = jobs(cpus), BYSTANDERS if cpus >= _FEW_CPUS else ()
    session = Session(time.time_ns(), 0, planned, hog_after(planned), list(beside))
    session.save(directory / SESSION)
    with ExitStack() as stack:
        collector = stack.enter_context(host.collecting(directory / RECORDING))
        files = _scratch(stack, scratch)
        running = [_start(stack, job, directory, files, session) for job in planned]
        for name in beside:
            stack.enter_context(Workload(name, files))
        log(f"recording {', '.join([*(job.name for job in planned), *beside])}")
        _play(session, [collector, *running], seconds)
        session.end_ns = time.time_ns()
        session.save(directory / SESSION)


def _scratch(stack: ExitStack, base: Path) -> Path:
    ledger = Ledger(MARK)
    stack.callback(ledger.close)
    path = base / f"reveal-{MARK}-{os.getpid()}"
    ledger.add(Undo("tree", (str(path),)))
    path.mkdir(mode=0o700)
    data_file(path)
    return path


def _start(
    stack: ExitStack, job: JobPlan, directory: Path, files: Path, session: Session
) -> subprocess.Popen[bytes]:
    group, mark = cgroup(job.name), f"{MARK}-{job.name}"
    ledger = Ledger(mark)
    stack.callback(ledger.close)
    ledger.add(Undo("cgroup", (group.name,)))
    group.create()
    arguments = (str(directory / SESSION), job.name, str(session.start_ns), str(data_file(files)))
    process = launch.start(
        launch.python("heartbeatbench.training_loop", *arguments),
        mark,
        group,
        log_of(directory, job.name),
    )
    stack.callback(launch.stop, process)
    return process


def _play(
    session: Session, processes: list[subprocess.Popen[bytes]], seconds: float | None
) -> None:
    """Let the schedule pass; the hogs run in their time."""
    hog = session.hog
    ends = hog.end + _TAIL_S if hog else 0.0
    until = min(ends, seconds) if seconds is not None else ends
    with ExitStack() as stack:
        hogging = False
        while (now := (time.time_ns() - session.start_ns) / 1e9) < until:
            if any(process.poll() is not None for process in processes):
                raise RecordError("a job or the collector ended by itself; its log says why")
            due = hog is not None and hog.begin <= now < hog.end
            if due and not hogging:
                for _ in range(_HOGS):
                    burning = launch.start(launch.python("heartbeatbench.cpu_hog"), MARK, None)
                    stack.callback(launch.stop, burning)
            elif hogging and not due:
                stack.close()
            hogging = due
            time.sleep(_STEP_S)
