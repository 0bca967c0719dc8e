"""The description of a fault, and its injection: bounded, self-cleaning, sweepable.

A ``Fault`` is a description with a function that injects it.  ``Fault.on(target)`` returns an
``Injection`` with ``start`` and ``stop``.  Every change is recorded in a ledger first, so that an
exception, a signal or even a kill leaves nothing behind (``ledger.sweep``).
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Self

from reveal_cli.faults import launch
from reveal_cli.faults.cgroups import Cgroup, is_v2
from reveal_cli.faults.ledger import Ledger, Undo
from reveal_cli.faults.link import VethLink
from reveal_contract.metric import Subsystem

LEDGER = "faults"
CGROUP_PREFIX = "reveal-fault-"
_EXEC_S, _CHECK_S = 1.0, 0.005  # the longest time until a launcher has executed the program
_MAX_OUTPUT = 1 << 16
LIMIT_S = 300  # no program of a fault runs longer, even if its parent is killed


class FaultError(RuntimeError):
    """The fault could not be injected; the text has the reason."""


class Culprit(StrEnum):
    """The subject that attribution should name."""

    OWN = "own"  # processes of the fault itself
    WORKLOAD = "workload"  # the workload itself is limited or stopped
    NOBODY = "nobody"  # no process causes it: a lossy link, reserved pages


@dataclass(frozen=True)
class FaultTarget:
    """What a fault is injected into.

    ``workload`` is the cgroup of the steady job, ``process_group`` its process group where it has
    no cgroup, ``link`` its network path, ``scratch`` a directory on a real disk.
    """

    workload: Cgroup | None = None
    process_group: int = 0
    link: VethLink | None = None
    scratch: Path = field(default_factory=lambda: Path(tempfile.gettempdir()))


@dataclass(frozen=True)
class Needs:
    """What the host must provide."""

    root: bool = False
    binaries: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    controllers: tuple[str, ...] = ()
    workload: bool = False
    check: Callable[[FaultTarget], str] = lambda _: ""


@dataclass(frozen=True)
class Fault:
    """One fault of the menu.

    ``kind`` groups the strengths of one fault.  ``subsystems`` are those that a finding may
    correctly name (blocked I/O is Storage, softirqs are Network).  ``weak`` marks a version of
    reduced strength.  ``host_wide`` says what it does to programs that have nothing to do with it.
    """

    name: str
    kind: str
    subsystems: frozenset[Subsystem]
    about: str
    inject: Callable[[Injection], None]
    weak: bool = False
    needs: Needs = Needs()
    culprit: Culprit = Culprit.OWN
    prepare: Callable[[FaultTarget], object] = lambda _: (
        None
    )  # slow preparations, well before the injection
    host_wide: str = ""

    def unsupported_reason(self, target: FaultTarget) -> str:
        """Return why this host cannot have the fault, as a sentence; "" if it can."""
        needs = self.needs
        if needs.root and os.getuid() != 0:
            return "needs root"
        if missing := [name for name in needs.binaries if shutil.which(name) is None]:
            return f"needs {', '.join(missing)} (see bench/install-tools)"
        if missing := [name for name in needs.files if not Path(name).exists()]:
            return f"this kernel has no {missing[0]}"
        if missing := [name for name in needs.controllers if not _has_controller(name)]:
            return f"needs the cgroup controller {missing[0]}"
        if needs.workload and target.workload is None and not target.process_group:
            return "needs a workload to act on"
        return needs.check(target)

    def on(self, target: FaultTarget) -> Injection:
        """Return an injection into this target."""
        return Injection(self, target)


def _has_controller(name: str) -> bool:
    root = Path("/sys/fs/cgroup")
    if is_v2(root):
        controller = {"blkio": "io", "cpuacct": "cpu"}.get(name, name)
        return controller in (root / "cgroup.controllers").read_text().split()
    return (root / name).is_dir()


class Injection:
    """One injection, also as a context manager.  ``start`` it once; ``stop`` may be repeated."""

    def __init__(self, fault: Fault, target: FaultTarget) -> None:
        self.fault, self.target = fault, target
        self.subject: str | None = None
        self._ledger: Ledger | None = None
        self._group: Cgroup | None = None
        self._processes: list[subprocess.Popen[bytes]] = []
        self._output = -1  # an in-memory file with the output of the programs

    def start(self) -> None:
        """Inject the fault; raises ``FaultError``, after undoing all changes, if that fails."""
        if why := self.fault.unsupported_reason(self.target):
            raise FaultError(f"{self.fault.name}: {why}")
        try:
            self._ledger = Ledger(LEDGER)
            self._output = os.memfd_create(LEDGER)
            self.fault.inject(self)
            self.subject = self._name_subject()
        except (OSError, RuntimeError, subprocess.SubprocessError) as error:
            self.stop()
            raise FaultError(f"{self.fault.name}: {error}") from error
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Stop the fault's processes and undo its changes."""
        while self._processes:
            launch.stop(self._processes.pop())
        output, self._output = self._output, -1
        if output >= 0:
            os.close(output)
        ledger, self._ledger = self._ledger, None
        if ledger is not None:
            ledger.close()

    def failure(self) -> str:
        """Return which program of the fault ended with an error, and its last line; "" if none."""
        for process in self._processes:
            if process.poll():
                printed = os.pread(self._output, _MAX_OUTPUT, 0).decode(errors="replace")
                last_line = printed.strip().rpartition("\n")[2] or "no output"
                status = f"one of its programs ended with status {process.poll()}"
                return f"{self.fault.name}: {status}: {last_line}"
        return ""

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

    @property
    def ledger(self) -> Ledger:
        """The ledger of this injection."""
        if self._ledger is None:
            raise FaultError(f"{self.fault.name} is not being injected")
        return self._ledger

    @property
    def group(self) -> Cgroup | None:
        """The fault's own cgroup, created at the first access; None without root."""
        if self._group is None and os.getuid() == 0:
            group = Cgroup(CGROUP_PREFIX + self.fault.name)
            self.ledger.create(group)
            self._group = group
        return self._group

    def run(self, *command: str) -> subprocess.Popen[bytes]:
        """Start a program of the fault in its cgroup, as leader of its own process group."""
        process = launch.start(command, LEDGER, self.group, self._output)
        self._processes.append(process)
        return process

    def helper(self, *command: str) -> subprocess.Popen[bytes]:
        """Start a program that the fault needs but that does not cause it (a receiving peer)."""
        process = launch.start(command, LEDGER, None, self._output)
        self._processes.append(process)
        return process

    def program(self, name: str, *arguments: object) -> subprocess.Popen[bytes]:
        """Start one of ``reveal_cli.faults.programs``."""
        words = [str(argument) for argument in arguments]
        return self.run(*launch.python("reveal_cli.faults.programs", name, *words))

    def write(self, path: str, value: object) -> None:
        """Change a kernel setting; the ledger restores the old value."""
        self.ledger.add(Undo("write", (path, Path(path).read_text().strip())))
        Path(path).write_text(str(value))

    def directory(self) -> Path:
        """Return a directory for files of the fault, which the ledger removes."""
        path = self.target.scratch / f"reveal-fault-{secrets.token_hex(4)}"
        self.ledger.add(Undo("tree", (str(path),)))
        path.mkdir(mode=0o700)
        return path

    def _name_subject(self) -> str | None:
        if self.fault.culprit is Culprit.NOBODY:
            return None
        if self.fault.culprit is Culprit.WORKLOAD:
            group, leader = self.target.workload, self.target.process_group
        else:
            group = self._group
            leader = self._processes[0].pid if self._processes else 0
        if group is not None:
            return group.path
        return process_group_subject(leader) if leader else None


def process_group_subject(leader: int) -> str:
    """Return the subject name of a process group that has no cgroup of its own."""
    deadline = time.monotonic() + _EXEC_S
    while (name := Path(f"/proc/{leader}/comm").read_text().strip()) in launch.LAUNCHERS:
        if time.monotonic() > deadline:
            break
        time.sleep(_CHECK_S)
    return f"pgrp:{name}[{leader}]"


def program(name: str, *arguments: object) -> Callable[[Injection], None]:
    """Return an injection that runs one of ``reveal_cli.faults.programs``."""

    def inject(injection: Injection) -> None:
        injection.program(name, *arguments)

    return inject


def stress(*arguments: str) -> Callable[[Injection], None]:
    """Return an injection that runs stress-ng."""

    def inject(injection: Injection) -> None:
        injection.run("stress-ng", "--quiet", "--timeout", str(LIMIT_S), *arguments)

    return inject
