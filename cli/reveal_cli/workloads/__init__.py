"""Steady real workloads to inject faults into: training jobs, a request server, a data loader.

    with Workload("train", scratch) as job:
        target = job.target           # what a fault is injected into
        job.subject                   # the name of its cgroup or process group

As root, a workload runs in a cgroup of its own (``/reveal-work-train``) and the server's clients
in a network namespace behind a veth pair.  Otherwise it runs in a process group, over loopback.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
from pathlib import Path

from reveal_cli.faults import launch
from reveal_cli.faults.base import FaultTarget, process_group_subject
from reveal_cli.faults.cgroups import Cgroup
from reveal_cli.faults.cuda import no_gpu
from reveal_cli.faults.ledger import Ledger, Undo
from reveal_cli.faults.link import WORKLOAD
from reveal_cli.workloads.pace import READY
from reveal_cli.workloads.running_job import RunningJob, WorkloadError

__all__ = ["CGROUP_PREFIX", "NAMES", "Workload", "WorkloadError"]

NAMES = ("train", "server", "loader", "gpu")
CGROUP_PREFIX = "reveal-work-"
_READY_S = 120.0  # until a job on a GPU has its pace
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def _no_gpu_job() -> str:
    """Return why this host cannot train on a GPU; "" if it can."""
    return no_gpu() or ("" if importlib.util.find_spec("torch") else "PyTorch is not installed")


class Workload(RunningJob):
    """One running workload.  Its files are in ``scratch``, its JSON log is ``log``.

    ``threads`` limits its linear algebra: several threads would compete for a small host's CPUs.
    """

    def __init__(self, name: str, scratch: Path, log: Path | None = None, threads: int = 1) -> None:
        if name not in NAMES:
            raise WorkloadError(f"no workload is called {name!r}; there are {', '.join(NAMES)}")
        if name == "gpu" and (why := _no_gpu_job()):
            raise WorkloadError(f"gpu: {why}")
        super().__init__(name, scratch, f"workload-{name}")
        self.log = log
        self._threads = threads
        self._group: Cgroup | None = None

    def stop(self) -> None:
        """Stop it and remove its files; a second call does nothing."""
        self._group = None
        super().stop()

    @property
    def target(self) -> FaultTarget:
        """The target for faults while it runs."""
        return FaultTarget(
            workload=self._group,
            process_group=0 if self._group else self._leader.pid,
            link=WORKLOAD if self._group and self.name == "server" else None,
            scratch=self.scratch,
        )

    @property
    def subject(self) -> str:
        """The name of its cgroup or process group among the subjects."""
        return self._group.path if self._group else process_group_subject(self._leader.pid)

    @property
    def _leader(self) -> subprocess.Popen[bytes]:
        if not self._processes:
            raise WorkloadError(f"{self.name} is not running")
        return self._processes[0]

    def _begin(self, ledger: Ledger) -> None:
        for variable in _THREADS:
            os.environ[variable] = str(self._threads)
        files = self.scratch / f"reveal-work-{self.name}"
        ledger.add(Undo("tree", (str(files),)))
        files.mkdir(mode=0o700, exist_ok=True)
        if os.getuid() == 0:
            self._group = Cgroup(CGROUP_PREFIX + self.name)
            ledger.create(self._group)
        if self.name == "server":
            self._serve(ledger)
        else:
            self._run(*launch.python(f"reveal_cli.workloads.{self.name}", str(files)))
        if self.name == "gpu":
            # to load its packages takes many seconds of the CPU
            problem = "it does not train; its log says why"
            self._wait_until((files / READY).exists, _READY_S, problem)

    def _serve(self, ledger: Ledger) -> None:
        server, client = (
            launch.python(f"reveal_cli.workloads.{module}") for module in ("server", "client")
        )
        if self._group is None:
            self._run(*server, "127.0.0.1")
            self._run(*client, "127.0.0.1")
        else:
            WORKLOAD.create(ledger)
            self._run(*server, WORKLOAD.near_address)
            self._run(*WORKLOAD.inside(*client, WORKLOAD.near_address))

    def _run(self, *command: str) -> None:
        self._launch(command, self._group, self.log)
