"""A job that writes down its steps, in a cgroup of its own, beside the neighbours of a host state.

Names are ``JOB-STATE``, such as ``train1-saturated``.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from ledgerbench.host_states import STATES, commands
from reveal_cli.faults import FaultTarget, Ledger, Undo, launch
from reveal_cli.faults.cgroups import Cgroup
from reveal_cli.workloads import CGROUP_PREFIX, WorkloadError

PROGRAM = Path(__file__).with_name("jobs.py")
JOBS = ("train1", "train4", "loader", "server")
COMPANIONS = {"server": "clients"}  # who asks for the work of a job, in a cgroup of its own
_MARK = "bench-lost-time"
_FIRST_STEP_S, _CHECK_S = 60.0, 0.1


def session_name(job: str, state: str) -> str:
    return f"{job}-{state}"


def parts_of(name: str) -> tuple[str, str]:
    """Return job and host state of a session."""
    job, _, state = name.partition("-")
    return job, state


def log_path(directory: Path, name: str) -> Path:
    """Return the log of the steps of all sessions of this name."""
    return directory / f"{name}.steps"


class SteppingJob:
    """One running job with its neighbours; its log is continued where it exists."""

    def __init__(self, name: str, scratch: Path, log: Path) -> None:
        self.name, self.scratch, self.log = name, scratch, log
        self._group = Cgroup(CGROUP_PREFIX + name)
        self._ledger: Ledger | None = None
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Start it; raises ``WorkloadError``, and cleans up, if that fails."""
        try:
            self._ledger = Ledger(_MARK)
            self._begin(self._ledger)
        except (OSError, RuntimeError, subprocess.SubprocessError) as error:
            self.stop()
            raise WorkloadError(f"{self.name}: {error}") from error
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop it and its neighbours and remove their files; a second call does nothing."""
        while self._processes:
            launch.stop(self._processes.pop())
        ledger, self._ledger = self._ledger, None
        if ledger is not None:
            ledger.close()

    @property
    def target(self) -> FaultTarget:
        """The target for faults while it runs."""
        return FaultTarget(workload=self._group, scratch=self.scratch)

    @property
    def alive(self) -> bool:
        """Whether all processes that were started run."""
        return bool(self._processes) and all(each.poll() is None for each in self._processes)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def _begin(self, ledger: Ledger) -> None:
        job, state = parts_of(self.name)
        files = self.scratch / f"reveal-work-{self.name}"
        ledger.add(Undo("tree", (str(files),)))
        files.mkdir(mode=0o700)
        ledger.create(self._group)
        before = self._log_size()
        self._run([sys.executable, str(PROGRAM), job, str(files)], self._group, self.log)
        if job in COMPANIONS:
            group = Cgroup(CGROUP_PREFIX + COMPANIONS[job])
            ledger.create(group)
            self._run([sys.executable, str(PROGRAM), COMPANIONS[job], str(files)], group, self.log)
        self._wait_for_steps(before)
        for neighbour in STATES[state]:
            group = Cgroup(CGROUP_PREFIX + neighbour)
            ledger.create(group)
            for command in commands(neighbour, files):
                self._run(command, group, None)

    def _run(self, command: list[str], group: Cgroup, output: Path | None) -> None:
        self._processes.append(launch.start(command, _MARK, group, output))

    def _wait_for_steps(self, before: int) -> None:
        """Wait until it works: a session is to have nothing of its start."""
        deadline = time.monotonic() + _FIRST_STEP_S
        while self._log_size() <= before:
            if not self.alive or time.monotonic() > deadline:
                raise WorkloadError(f"it makes no steps; {self.log} may say why")
            time.sleep(_CHECK_S)

    def _log_size(self) -> int:
        return self.log.stat().st_size if self.log.exists() else 0
