"""A file of changes to undo, so that even a killed run leaves nothing behind.

Code that changes the host (faults, workloads) records how to undo a change *before* it makes it.
At the end the ledger is unwound, newest change first.  ``sweep`` unwinds a ledger whose owner was
killed.  Processes have the ledger's name in their environment.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import signal
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from reveal_cli.faults.cgroups import (
    Cgroup,
    disable_controllers,
    leftovers,
    missing_controllers,
)

MARK = "REVEAL_LEDGER"  # environment variable of every process started for a ledger
CGROUP_PREFIXES = ("reveal-fault-", "reveal-work-")
_PATIENCE_S = 3.0
_PAUSE_S = 0.02
_COMMAND_S = 10
_ROOT = 0
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


class LedgerError(RuntimeError):
    """The ledger cannot be used; the text has the reason."""


@dataclass(frozen=True)
class Undo:
    """One change to undo; undoing a change that is gone already is no error.

    ``how`` is ``write`` (a value to a file), ``command``, ``tree`` or ``cgroup`` (remove it),
    ``loop`` (detach the devices of an image), ``unlimit`` (a cgroup's CPU), ``disable``
    (controllers of cgroups, version 2) or ``resume`` (stopped processes).
    """

    how: str
    what: tuple[str, ...]

    def run(self) -> None:
        """Undo the change."""
        match self.how, self.what:
            case "write", (path, value):
                with contextlib.suppress(FileNotFoundError):
                    Path(path).write_text(value)
            case "command", argv:
                subprocess.run(argv, capture_output=True, timeout=_COMMAND_S, check=False)
            case "tree", (path,):
                shutil.rmtree(path, ignore_errors=True)
            case "cgroup", (name,):
                Cgroup(name).remove()
            case "disable", controllers:
                disable_controllers(controllers)
            case "loop", (image,):
                _detach_loops(image)
            case "unlimit", (name,):
                with contextlib.suppress(OSError):  # the cgroup may have ended meanwhile
                    Cgroup(name).limit_cpu(None)
            case "resume", pids:
                for pid in pids:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(int(pid), signal.SIGCONT)
            case _:
                raise LedgerError(f"ledger: {self.how} {self.what} is not a known way to undo")


def state_directory() -> Path:
    """Return the directory of ledgers: in /run for root, a private directory for other users."""
    uid = os.getuid()
    path = Path("/run/reveal") if uid == _ROOT else Path(tempfile.gettempdir()) / f"reveal-{uid}"
    with contextlib.suppress(FileExistsError):
        path.mkdir(mode=0o700)
    found = path.lstat()  # a link may lead to files that are no ledgers
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != uid or found.st_mode & _OTHERS_WRITE:
        raise LedgerError(f"{path} is not a directory that you alone can write to; remove it")
    return path


class Ledger:
    """The undo stack of one owner.  The constructor locks it and unwinds what a killed run left."""

    def __init__(self, name: str, directory: Path | None = None) -> None:
        self.name = name
        base = directory or state_directory()
        self._path, self._lock_path = base / f"{name}.json", base / f"{name}.lock"
        self._lock = _lock(self._lock_path)
        if self._lock < 0:
            raise LedgerError(f"another run ({name}) is active on this host; wait until it ends")
        self._stack = _read(self._path)
        self.close_leftovers()

    def close_leftovers(self) -> None:
        """Undo what the last owner of this ledger did not undo."""
        kill_marked(self.name)
        self.unwind()

    @property
    def depth(self) -> int:
        """The number of changes to undo."""
        return len(self._stack)

    def add(self, undo: Undo) -> None:
        """Record ``undo`` durably; call this before the change."""
        self._stack.append(undo)
        self._save()

    def create(self, group: Cgroup) -> None:
        """Create a cgroup, which is removed at the end, with the controllers it needs."""
        if missing := missing_controllers(group.root):
            self.add(Undo("disable", missing))
        self.add(Undo("cgroup", (group.name,)))
        group.create()

    def unwind(self, depth: int = 0) -> None:
        """Undo all but the oldest ``depth`` changes, newest first; continue after an error."""
        failed: list[str] = []
        while len(self._stack) > depth:
            try:
                self._stack[-1].run()
            except (OSError, subprocess.SubprocessError, LedgerError) as error:
                failed.append(str(error))
            self._stack.pop()
            self._save()
        if failed:
            raise LedgerError("not everything could be undone: " + "; ".join(failed))

    def close(self) -> None:
        """Undo everything and release the lock; a second call does nothing.

        A signal may interrupt the start of a process before it is recorded; such processes are
        killed.
        """
        if self._lock < 0:
            return
        try:
            self.close_leftovers()
        finally:
            for path in (self._path, self._lock_path):
                with contextlib.suppress(OSError):  # gone, or the disk is read-only by now
                    path.unlink()
            os.close(self._lock)
            self._lock = -1

    def _save(self) -> None:
        fresh = self._path.with_suffix(".new")
        fresh.write_text(json.dumps([asdict(undo) for undo in self._stack]))
        fresh.replace(self._path)


def sweep(directory: Path | None = None) -> None:
    """Undo what killed runs left: every ledger without an owner, then cgroups by their prefix."""
    base = directory or state_directory()
    busy = False
    # newest first: faults change workloads, workloads use the files of a bench
    for path in sorted(base.glob("*.json"), key=lambda each: each.stat().st_mtime, reverse=True):
        try:
            Ledger(path.stem, base).close()
        except LedgerError:
            busy = True
    # the ledgers of another directory do not show who owns the cgroups of this host
    if os.getuid() == 0 and not busy and directory is None:
        for group in (group for prefix in CGROUP_PREFIXES for group in leftovers(prefix)):
            group.remove()


def kill_marked(name: str) -> None:
    """Kill every process of this user that was started for the ledger ``name``, and wait for it."""
    marker = f"{MARK}={name}".encode()
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        left = 0
        for process in _own_processes():
            with contextlib.suppress(OSError):  # it ended meanwhile
                environment = environment_of(process)
                if environment is not None and marker in environment:
                    os.kill(int(process.name), signal.SIGKILL)
                left += environment is None or marker in environment
        if not left:
            return
        time.sleep(_PAUSE_S)


def _own_processes() -> Iterator[Path]:
    """Yield ``/proc/PID`` of this user's processes; another user may use the same ledger name."""
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):  # it ended meanwhile
            own = entry.name.isdigit() and entry.stat().st_uid == os.getuid()
            if own and int(entry.name) != os.getpid():
                yield entry


def environment_of(process: Path) -> list[bytes] | None:
    """Return the variables of a process, or None while it starts its program.

    ``fork`` and ``exec`` return to the parent before the kernel shows the new environment and
    command; until then both are empty.  Kernel threads and zombies have no program.
    """
    command = (process / "cmdline").read_bytes()
    environment = (process / "environ").read_bytes()
    if command or environment or not _has_program(process):
        return environment.split(b"\0")
    return None


def _has_program(process: Path) -> bool:
    try:
        return bool((process / "exe").readlink().name)
    except OSError:
        return False


def _detach_loops(image: str) -> None:
    """Detach the loop devices of an image; the kernel also reports the names of deleted images."""
    for file in Path("/sys/block").glob("loop*/loop/backing_file"):
        with contextlib.suppress(OSError):  # detached meanwhile
            if file.read_text().strip().removesuffix(" (deleted)") == image:
                device = f"/dev/{file.parts[3]}"
                subprocess.run(["losetup", "--detach", device], timeout=_COMMAND_S, check=False)


def _lock(path: Path) -> int:
    """Return a descriptor that holds the lock, or -1 if another process holds it."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return -1
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_ino == os.fstat(descriptor).st_ino:
                return descriptor
        os.close(descriptor)  # the previous holder removed the file: this descriptor locks nothing


def _read(path: Path) -> list[Undo]:
    try:
        rows: Any = json.loads(path.read_text())
        return [Undo(row["how"], tuple(row["what"])) for row in rows]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, KeyError, TypeError):
        path.unlink(missing_ok=True)  # malformed: ``sweep`` finds the cgroups by their prefix
        return []
