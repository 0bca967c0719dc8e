"""What a source is: one reader of one kernel interface, one file each under ``sources``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol, runtime_checkable

from reveal_contract.channels import Channel
from reveal_contract.metric import Lane
from reveal_contract.subjects import Identity

_PROC = Path("/proc")
# Reads until it is asked whether devices came, where to ask costs as much as to read them.
CHECK_EVERY = 5


@dataclass(frozen=True)
class Roots:
    """Where the host's file systems are seen; a recorded tree of another host is as good."""

    proc: Path = Path("/proc")
    sys: Path = Path("/sys")
    cgroup: Path = Path("/sys/fs/cgroup")

    @cached_property
    def live(self) -> bool:
        """Whether these are this machine's own kernel (then syscalls may be asked as well).

        In a container the host's procfs is mounted elsewhere: it is procfs, of the same boot.
        """
        return self.proc == _PROC or (_is_procfs(self.proc) and _boot(self.proc) == _boot(_PROC))


def _is_procfs(folder: Path) -> bool:
    """A file system without a device whose root is inode 1 (PROC_ROOT_INO, linux/proc_fs.h)."""
    try:
        found = folder.stat()
    except OSError:
        return False
    return found.st_ino == 1 and os.major(found.st_dev) == 0


def _boot(proc: Path) -> str:
    try:
        return (proc / "sys/kernel/random/boot_id").read_text()
    except OSError:
        return ""


class Source(Protocol):
    """One kernel interface.

    ``open`` learns the layout or raises ``Unsupported``; afterwards ``channels`` names the
    columns.  ``read`` gives one integer a column (``None`` where this one cannot be read
    now), raises ``LayoutChanged`` after learning other columns, and ``OSError`` when the
    whole source cannot be read this time.  ``read`` of a fast source runs in the tick thread:
    descriptors kept open, no allocation that can be avoided, never a subprocess.
    """

    name: str
    lane: Lane
    channels: tuple[Channel, ...]

    def open(self) -> None: ...

    def read(self) -> Sequence[int | None]: ...

    def close(self) -> None: ...


@runtime_checkable
class AdaptiveSource(Protocol):
    """A source that asks less often what proves dear; ``degraded`` says what, a phrase each."""

    @property
    def degraded(self) -> Sequence[str]: ...


@runtime_checkable
class ThrottledSource(Protocol):
    """A source that looks less often at what is idle, ``thrift`` times less often than usual."""

    slowdown_factor: int


@runtime_checkable
class PausableSource(Protocol):
    """A source that can be done without: it stops its own work and its columns while ``paused``."""

    paused: bool


@runtime_checkable
class SubjectSource(Protocol):
    """A source that knows who stands behind its instances; ``trouble`` while it may not."""

    @property
    def subjects(self) -> tuple[Identity, ...]: ...

    @property
    def health_error(self) -> str: ...
