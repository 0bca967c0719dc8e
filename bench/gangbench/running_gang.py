"""A job of several ranks, each in a cgroup that is named as a unit of one template."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from reveal_cli.faults.cgroups import Cgroup

PROGRAM = Path(__file__).with_name("rank.py")


class RunningGang:
    """Ranks that run while this is entered; their logs are ``NAME-RANK.steps``."""

    def __init__(
        self, name: str, kind: str, size: int, log: Path, step_ms: tuple[int, int]
    ) -> None:
        self.name, self._kind, self.size = name, kind, size
        self._log, self._step_ms = log, step_ms
        self._stack = ExitStack()
        self.groups = [Cgroup(f"{name}@{rank}.service") for rank in range(size)]
        self.processes: list[subprocess.Popen[bytes]] = []

    @staticmethod
    def cpu(rank: int) -> int:
        """Return the CPU of a rank."""
        cpus = sorted(os.sched_getaffinity(0))
        return cpus[rank % len(cpus)]

    def steps(self, rank: int = 0) -> Path:
        """Return the log of a rank."""
        return self._log / f"{self.name}-{rank}.steps"

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="gang-"))
            for rank, group in enumerate(self.groups):
                group.create()
                stack.callback(group.remove)
                self.processes.append(self._start(rank, group, folder))
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
        self._stack.close()

    def _start(self, rank: int, group: Cgroup, folder: str) -> subprocess.Popen[bytes]:
        words = [self._kind, rank, self.size, folder, *self._step_ms]
        with self.steps(rank).open("wb") as log:
            command = [sys.executable, str(PROGRAM), *map(str, words)]
            process = in_cgroup(group, command, log.fileno())
        os.sched_setaffinity(process.pid, {self.cpu(rank)})
        return process


def in_cgroup(
    group: Cgroup, command: list[str], stdout: int = subprocess.DEVNULL
) -> subprocess.Popen[bytes]:
    """Start a command in a cgroup."""

    def join() -> None:
        for file in group.joins():
            Path(file).write_text(str(os.getpid()))

    return subprocess.Popen(command, stdout=stdout, preexec_fn=join)  # noqa: PLW1509 - no threads
