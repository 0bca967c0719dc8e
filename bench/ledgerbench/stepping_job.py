"""A job that writes down its steps, in a cgroup of its own, beside the neighbours of a host state.

Names are ``JOB-STATE``, such as ``train1-saturated``.
"""

from __future__ import annotations

import sys
from pathlib import Path

from ledgerbench.host_states import STATES, commands
from reveal_cli.faults import FaultTarget, Ledger, Undo
from reveal_cli.faults.cgroups import Cgroup
from reveal_cli.workloads import CGROUP_PREFIX
from reveal_cli.workloads.running_job import RunningJob

PROGRAM = Path(__file__).with_name("jobs.py")
JOBS = ("train1", "train4", "loader", "server")
COMPANIONS = {"server": "clients"}  # who asks for the work of a job, in a cgroup of its own
_MARK = "bench-lost-time"
_FIRST_STEP_S = 60.0


def session_name(job: str, state: str) -> str:
    return f"{job}-{state}"


def parts_of(name: str) -> tuple[str, str]:
    """Return job and host state of a session."""
    job, _, state = name.partition("-")
    return job, state


def log_path(directory: Path, name: str) -> Path:
    """Return the log of the steps of all sessions of this name."""
    return directory / f"{name}.steps"


class SteppingJob(RunningJob):
    """One running job with its neighbours; its log is continued where it exists."""

    def __init__(self, name: str, scratch: Path, log: Path) -> None:
        super().__init__(name, scratch, _MARK)
        self.log = log
        self._group = Cgroup(CGROUP_PREFIX + name)

    @property
    def target(self) -> FaultTarget:
        """The target for faults while it runs."""
        return FaultTarget(workload=self._group, scratch=self.scratch)

    def _begin(self, ledger: Ledger) -> None:
        job, state = parts_of(self.name)
        files = self.scratch / f"reveal-work-{self.name}"
        ledger.add(Undo("tree", (str(files),)))
        files.mkdir(mode=0o700)
        ledger.create(self._group)
        before = self._log_size()
        self._launch([sys.executable, str(PROGRAM), job, str(files)], self._group, self.log)
        if job in COMPANIONS:
            group = Cgroup(CGROUP_PREFIX + COMPANIONS[job])
            ledger.create(group)
            companion = [sys.executable, str(PROGRAM), COMPANIONS[job], str(files)]
            self._launch(companion, group, self.log)
        # until it works: a session is to have nothing of its start
        problem = f"it makes no steps; {self.log} may say why"
        self._wait_until(lambda: self._log_size() > before, _FIRST_STEP_S, problem)
        for neighbour in STATES[state]:
            group = Cgroup(CGROUP_PREFIX + neighbour)
            ledger.create(group)
            for command in commands(neighbour, files):
                self._launch(command, group, None)

    def _log_size(self) -> int:
        return self.log.stat().st_size if self.log.exists() else 0
