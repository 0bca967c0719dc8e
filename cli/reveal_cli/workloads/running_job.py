"""A job that runs: its processes, and the ledger that undoes what it changed."""

from __future__ import annotations

import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from reveal_cli.faults import launch
from reveal_cli.faults.cgroups import Cgroup
from reveal_cli.faults.ledger import Ledger

_CHECK_S = 0.05


class WorkloadError(RuntimeError):
    """The workload could not be started; the text has the reason."""


class RunningJob(ABC):
    """One running job, also as a context manager.  Its files are in ``scratch``.

    ``mark`` names its ledger and is in the environment of its processes.
    """

    def __init__(self, name: str, scratch: Path, mark: str) -> None:
        self.name, self.scratch = name, scratch
        self._mark = mark
        self._ledger: Ledger | None = None
        self._processes: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        """Start it; raises ``WorkloadError`` and cleans up if that fails."""
        try:
            self._ledger = Ledger(self._mark)
            self._begin(self._ledger)
        except (OSError, RuntimeError, subprocess.SubprocessError) as error:
            self.stop()
            raise WorkloadError(f"{self.name}: {error}") from error
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop it and remove its files; a second call does nothing."""
        while self._processes:
            launch.stop(self._processes.pop())
        ledger, self._ledger = self._ledger, None
        if ledger is not None:
            ledger.close()

    @property
    def alive(self) -> bool:
        """Whether all its processes run."""
        return bool(self._processes) and all(each.poll() is None for each in self._processes)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    @abstractmethod
    def _begin(self, ledger: Ledger) -> None:
        """Start its processes; what it changes goes into the ledger first."""

    def _launch(self, command: Sequence[str], group: Cgroup | None, output: Path | None) -> None:
        self._processes.append(launch.start(command, self._mark, group, output))

    def _wait_until(self, is_ready: Callable[[], bool], seconds: float, problem: str) -> None:
        """Wait while it runs; raises ``WorkloadError`` with the problem."""
        deadline = time.monotonic() + seconds
        while not is_ready():
            if not self.alive or time.monotonic() > deadline:
                raise WorkloadError(problem)
            time.sleep(_CHECK_S)
