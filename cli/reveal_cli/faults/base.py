"""What a fault is, and one injection of it: bounded, self-cleaning, sweepable.

A ``Fault`` is a description with a function that injects it.  ``Fault.on(stage)`` gives an
``Injection`` with ``start`` and ``stop``; whatever it changes is in a ledger first, so that an
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
from reveal_cli.faults.link import Link
from reveal_contract.metric import Subsystem

LEDGER = "faults"
CGROUP_PREFIX = "reveal-fault-"
_EXEC_S, _LOOK_S = 1.0, 0.005  # how long a launcher may take to become the program, at most
_MOST_PRINTED = 1 << 16
LIMIT_S = 300  # no program of a fault runs longer than this, whatever happens to its parent


class FaultError(RuntimeError):
    """The fault could not be injected; the text says why."""


class Culprit(StrEnum):
    """Whose the fault is: the subject that attribution should name."""

    OWN = "own"  # processes of the fault itself
    WORKLOAD = "workload"  # something done to the workload
    NOBODY = "nobody"  # no process is at fault: a lossy link, reserved pages


@dataclass(frozen=True)
class Stage:
    """What a fault is injected into.

    ``workload`` is the cgroup of the steady job, ``processes`` its process group where it has
    no cgroup, ``link`` its network path, ``scratch`` a directory on a real disk.
    """

    workload: Cgroup | None = None
    process_group: int = 0
    link: Link | None = None
    scratch: Path = field(default_factory=lambda: Path(tempfile.gettempdir()))


@dataclass(frozen=True)
class Needs:
    """What the host must give."""

    root: bool = False
    binaries: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    controllers: tuple[str, ...] = ()
    workload: bool = False
    check: Callable[[Stage], str] = lambda _: ""


@dataclass(frozen=True)
class Fault:
    """One entry of the menu.

    ``kind`` groups the strengths of one fault, ``subsystems`` are those a finding may rightly
    name (blocked I/O is Storage, softirqs are Network), ``weak`` marks a version of half,
    quarter or least strength.
    """

    name: str
    kind: str
    subsystems: frozenset[Subsystem]
    about: str
    inject: Callable[[Injection], None]
    weak: bool = False
    needs: Needs = Needs()
    culprit: Culprit = Culprit.OWN
    prepare: Callable[[Stage], object] = lambda _: None  # slow preparations, well before onset

    def why_not(self, stage: Stage) -> str:
        """Why this host cannot have the fault, as a sentence; "" when it can."""
        needs = self.needs
        if needs.root and os.getuid() != 0:
            return "needs root"
        if missing := [name for name in needs.binaries if shutil.which(name) is None]:
            return f"needs {', '.join(missing)} (see bench/install-tools)"
        if missing := [name for name in needs.files if not Path(name).exists()]:
            return f"this kernel has no {missing[0]}"
        if missing := [name for name in needs.controllers if not _has_controller(name)]:
            return f"needs the cgroup controller {missing[0]}"
        if needs.workload and stage.workload is None and not stage.process_group:
            return "needs a workload to act on"
        return needs.check(stage)

    def on(self, stage: Stage) -> Injection:
        return Injection(self, stage)


def _has_controller(name: str) -> bool:
    root = Path("/sys/fs/cgroup")
    if is_v2(root):
        wanted = {"blkio": "io", "cpuacct": "cpu"}.get(name, name)
        return wanted in (root / "cgroup.controllers").read_text().split()
    return (root / name).is_dir()


class Injection:
    """One injection.  ``start`` once, ``stop`` as often as you like; also a context manager."""

    def __init__(self, fault: Fault, stage: Stage) -> None:
        self.fault, self.stage = fault, stage
        self.subject: str | None = None
        self._ledger: Ledger | None = None
        self._group: Cgroup | None = None
        self._processes: list[subprocess.Popen[bytes]] = []
        self._said = -1  # what the programs print, in memory

    def start(self) -> None:
        """Inject; raises ``FaultError`` (and undoes what was done) when it cannot be."""
        if why := self.fault.why_not(self.stage):
            raise FaultError(f"{self.fault.name}: {why}")
        try:
            self._ledger = Ledger(LEDGER)
            self._said = os.memfd_create(LEDGER)
            self.fault.inject(self)
            self.subject = self._name_subject()
        except (OSError, RuntimeError, subprocess.SubprocessError) as error:
            self.stop()
            raise FaultError(f"{self.fault.name}: {error}") from error
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End the fault's processes and undo what was changed."""
        while self._processes:
            launch.stop(self._processes.pop())
        said, self._said = self._said, -1
        if said >= 0:
            os.close(said)
        ledger, self._ledger = self._ledger, None
        if ledger is not None:
            ledger.close()

    def failure(self) -> str:
        """Which program of the fault ended by itself in an error, and its last words; or ""."""
        for process in self._processes:
            if process.poll():
                printed = os.pread(self._said, _MOST_PRINTED, 0).decode(errors="replace")
                words = printed.strip().rpartition("\n")[2] or "without a word"
                return f"{self.fault.name}: a program of it ended, status {process.poll()}: {words}"
        return ""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def ledger(self) -> Ledger:
        if self._ledger is None:
            raise FaultError(f"{self.fault.name} is not being injected")
        return self._ledger

    @property
    def group(self) -> Cgroup | None:
        """The fault's own cgroup, made when first asked for; None without root."""
        if self._group is None and os.getuid() == 0:
            group = Cgroup(CGROUP_PREFIX + self.fault.name)
            self.ledger.add(Undo("cgroup", (group.name,)))
            group.create()
            self._group = group
        return self._group

    def run(self, *command: str) -> subprocess.Popen[bytes]:
        """Start a program of the fault in its cgroup, as leader of its own process group."""
        process = launch.start(command, LEDGER, self.group, self._said)
        self._processes.append(process)
        return process

    def helper(self, *command: str) -> subprocess.Popen[bytes]:
        """Start a program the fault needs but that is not at fault (a peer that receives)."""
        process = launch.start(command, LEDGER, None, self._said)
        self._processes.append(process)
        return process

    def program(self, name: str, *arguments: object) -> subprocess.Popen[bytes]:
        """Start one of ``reveal_cli.faults.programs``."""
        words = [str(argument) for argument in arguments]
        return self.run(*launch.python("reveal_cli.faults.programs", name, *words))

    def write(self, path: str, value: object) -> None:
        """Set a kernel setting; the old value comes back."""
        self.ledger.add(Undo("write", (path, Path(path).read_text().strip())))
        Path(path).write_text(str(value))

    def directory(self) -> Path:
        """A directory for files of the fault, removed afterwards."""
        path = self.stage.scratch / f"reveal-fault-{secrets.token_hex(4)}"
        self.ledger.add(Undo("tree", (str(path),)))
        path.mkdir(mode=0o700)
        return path

    def _name_subject(self) -> str | None:
        if self.fault.culprit is Culprit.NOBODY:
            return None
        if self.fault.culprit is Culprit.WORKLOAD:
            group, leader = self.stage.workload, self.stage.process_group
        else:
            group = self._group
            leader = self._processes[0].pid if self._processes else 0
        if group is not None:
            return group.path
        return process_group_subject(leader) if leader else None


def process_group_subject(leader: int) -> str:
    """How a process group without a cgroup of its own is named among the subjects."""
    deadline = time.monotonic() + _EXEC_S
    while (name := Path(f"/proc/{leader}/comm").read_text().strip()) in launch.LAUNCHERS:
        if time.monotonic() > deadline:
            break
        time.sleep(_LOOK_S)
    return f"pgrp:{name}[{leader}]"


def program(name: str, *arguments: object) -> Callable[[Injection], None]:
    """An injection that runs one of ``reveal_cli.faults.programs``."""

    def inject(injection: Injection) -> None:
        injection.program(name, *arguments)

    return inject


def stress(*arguments: str) -> Callable[[Injection], None]:
    """An injection that runs stress-ng."""

    def inject(injection: Injection) -> None:
        injection.run("stress-ng", "--quiet", "--timeout", str(LIMIT_S), *arguments)

    return inject
