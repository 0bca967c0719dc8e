"""A control group for one job: version 1 (a directory in each hierarchy) or version 2.

The versions have different files for the same limits (kernel docs: ``admin-guide/cgroup-v1``,
``admin-guide/cgroup-v2.rst``); this module has one name for each.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path("/sys/fs/cgroup")
CONTROLLERS = ("cpu", "cpuacct", "memory", "blkio", "pids")  # version 1
CONTROLLERS_V2 = ("cpu", "memory", "io", "pids")
PERIOD_US = 100_000
_PATIENCE_S = 20.0  # a process may wait for a disk for long before it can end
_PAUSE_S = 0.02


def is_v2(root: Path = ROOT) -> bool:
    """Return whether the unified hierarchy is mounted here (a hybrid host counts as version 1)."""
    return (root / "cgroup.controllers").exists()


@dataclass(frozen=True)
class Cgroup:
    """A cgroup directly below the root; ``name`` is its directory in every hierarchy."""

    name: str
    root: Path = ROOT

    @property
    def path(self) -> str:
        """The path in /proc/PID/cgroup, and the name of the subject."""
        return f"/{self.name}"

    @property
    def directories(self) -> tuple[Path, ...]:
        """The directory in each hierarchy; cpu and cpuacct may share one."""
        if is_v2(self.root):
            return (self.root / self.name,)
        hierarchies = (self.root / controller for controller in CONTROLLERS)
        mounted = {path.resolve() for path in hierarchies if path.is_dir()}
        return tuple(sorted(path / self.name for path in mounted))

    def create(self) -> None:
        """Create the directories; enable the controllers for children of a version 2 root."""
        if is_v2(self.root):
            _switch(missing_controllers(self.root), "+", self.root)
        for directory in self.directories:
            directory.mkdir(exist_ok=True)

    def joins(self) -> list[str]:
        """Return the files to write a process id to, which moves the process into the cgroup."""
        return [str(directory / "cgroup.procs") for directory in self.directories]

    def processes(self) -> set[int]:
        """Return the ids of its processes."""
        found: set[int] = set()
        for file in self.joins():
            with contextlib.suppress(OSError):
                found.update(int(line) for line in Path(file).read_text().split())
        return found

    def cpu_seconds(self) -> float:
        """Return the CPU time used by its processes so far."""
        if is_v2(self.root):
            rows = (self.root / self.name / "cpu.stat").read_text().splitlines()
            return int(dict(row.split() for row in rows)["usage_usec"]) / 1e6
        return int(self._read("cpuacct.usage")) / 1e9

    def limit_cpu(self, cores: float | None) -> None:
        """Limit it to this many cores; None removes the limit."""
        quota = None if cores is None else round(cores * PERIOD_US)
        if is_v2(self.root):
            self._write("cpu.max", f"{'max' if quota is None else quota} {PERIOD_US}")
        else:
            self._write("cpu.cfs_period_us", str(PERIOD_US))
            self._write("cpu.cfs_quota_us", str(-1 if quota is None else quota))

    def limit_memory(self, size: int) -> None:
        """Limit it to ``size`` bytes."""
        name = "memory.max" if is_v2(self.root) else "memory.limit_in_bytes"
        self._write(name, str(size))

    def limit_io(self, device: str, read: int, write: int) -> None:
        """Limit it to these bytes a second on the block device ``major:minor``."""
        if is_v2(self.root):
            self._write("io.max", f"{device} rbps={read} wbps={write}")
        else:
            self._write("blkio.throttle.read_bps_device", f"{device} {read}")
            self._write("blkio.throttle.write_bps_device", f"{device} {write}")

    def remove(self) -> None:
        """Kill its processes and remove the directories, waiting until the kernel permits it."""
        deadline = time.monotonic() + _PATIENCE_S
        while left := [directory for directory in self.directories if directory.exists()]:
            for process in self.processes():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            for directory in left:
                with contextlib.suppress(OSError):
                    directory.rmdir()
            if time.monotonic() > deadline:
                raise OSError(f"cgroup {self.name} cannot be removed: it is still in use")
            time.sleep(_PAUSE_S)

    def _write(self, name: str, value: str) -> None:
        self._file(name).write_text(value)

    def _read(self, name: str) -> str:
        return self._file(name).read_text()

    def _file(self, name: str) -> Path:
        for directory in self.directories:
            if (directory / name).exists():
                return directory / name
        raise OSError(f"cgroup {self.name} has no {name} on this host")


def missing_controllers(root: Path = ROOT) -> tuple[str, ...]:
    """Return the controllers that a version 2 root has and does not enable for its children."""
    if not is_v2(root):
        return ()
    has, enabled = (
        (root / name).read_text().split()
        for name in ("cgroup.controllers", "cgroup.subtree_control")
    )
    return tuple(each for each in CONTROLLERS_V2 if each in has and each not in enabled)


def disable_controllers(controllers: Iterable[str], root: Path = ROOT) -> None:
    """Disable controllers for children of the root; one that a child passes on stays enabled."""
    _switch(controllers, "-", root)


def _switch(controllers: Iterable[str], sign: str, root: Path) -> None:
    for controller in controllers:
        with contextlib.suppress(OSError):
            (root / "cgroup.subtree_control").write_text(f"{sign}{controller}")


def leftovers(prefix: str, root: Path = ROOT) -> list[Cgroup]:
    """Return the cgroups directly below the root whose names begin with ``prefix``."""
    parents = {directory.parent for directory in Cgroup("x", root).directories}
    names = {path.name for parent in parents for path in parent.glob(f"{prefix}*")}
    return [Cgroup(name, root) for name in sorted(names)]
