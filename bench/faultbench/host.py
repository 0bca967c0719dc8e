"""The machine a session was recorded on, who uses its CPUs, and the collector beside a job."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from reveal_cli.faults.cgroups import Cgroup, is_v2

NODE = "bench"
_STOP_S = 5.0


def describe() -> dict[str, Any]:
    """What figures depend on; nothing that names the host."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {
        "cpus": os.cpu_count(),
        "memory_bytes": memory,
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cgroups": "v2" if is_v2() else "v1",
        "python": platform.python_version(),
    }


class Meter:
    """Cores used by nobody we know: the host's CPU time without these cgroups'.

    The collector's own use counts as a neighbour's.
    """

    def __init__(self, known: Iterable[Cgroup]) -> None:
        self._known = list(known)
        self._start, self._used = time.monotonic(), self._others()

    def neighbours(self, fault_seconds: float = 0.0) -> float:
        """Average since the beginning; ``fault_seconds`` is what a fault's cgroup used."""
        used = self._others() - self._used - fault_seconds
        return max(used / (time.monotonic() - self._start), 0.0)

    def _others(self) -> float:
        return Cgroup(".").cpu_seconds() - sum(group.cpu_seconds() for group in self._known)


@contextmanager
def collecting(recording: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A collector that records, in a process of its own; what it says is kept beside the file."""
    command = [sys.executable, "-m", "reveal_collector", "--node", NODE, "--die-with-parent"]
    with recording.with_suffix(".log").open("wb") as log:
        process = subprocess.Popen([*command, "--record", str(recording)], stdout=log, stderr=log)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
