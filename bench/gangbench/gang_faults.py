"""What delays one rank of a job: each is undone when its context ends."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from gangbench.running_gang import RunningGang, in_cgroup
from reveal_cli.faults.cgroups import Cgroup

Fault = Callable[[RunningGang, int], AbstractContextManager[None]]
_HOG = Cgroup("hog.service")
_SPIN = "while True: sum(range(10000))"
_HALF = """import time
while True:
    ends = time.time() + 0.05
    while time.time() < ends: pass
    time.sleep(0.05)"""


@contextmanager
def quota(gang: RunningGang, rank: int) -> Iterator[None]:
    """A CPU quota of 30 % of a CPU."""
    gang.groups[rank].limit_cpu(0.3)
    try:
        yield
    finally:
        gang.groups[rank].limit_cpu(None)


@contextmanager
def stopped(gang: RunningGang, rank: int) -> Iterator[None]:
    """It is stopped for 0.3 s every 3 s."""
    over, process = threading.Event(), gang.processes[rank].pid

    def stop() -> None:
        while not over.wait(2.7):
            os.kill(process, signal.SIGSTOP)
            over.wait(0.3)
            os.kill(process, signal.SIGCONT)

    thread = threading.Thread(target=stop)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        os.kill(process, signal.SIGCONT)


@contextmanager
def hog(gang: RunningGang, rank: int, script: str = _SPIN) -> Iterator[None]:
    """It shares its CPU with a process that spins."""
    _HOG.create()
    started = in_cgroup(_HOG, [sys.executable, "-c", script])
    try:
        os.sched_setaffinity(started.pid, {gang.cpu(rank)})
        yield
    finally:
        started.kill()
        started.wait()
        _HOG.remove()


@contextmanager
def half_hog(gang: RunningGang, rank: int) -> Iterator[None]:
    """It shares its CPU with a process that spins for half of the time."""
    with hog(gang, rank, _HALF):
        yield


@contextmanager
def slower(gang: RunningGang, rank: int) -> Iterator[None]:
    """It works half as long again for each step, and loses no time to others."""
    process = gang.processes[rank]
    process.send_signal(signal.SIGUSR1)
    try:
        yield
    finally:
        process.send_signal(signal.SIGUSR1)


@contextmanager
def nothing(gang: RunningGang, rank: int) -> Iterator[None]:
    """Nothing."""
    yield


FAULTS: dict[str, Fault] = {
    "quota": quota, "stopped": stopped, "hog": hog, "half-hog": half_hog, "slower": slower,
    "healthy": nothing,
}  # fmt: skip
