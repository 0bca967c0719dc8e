"""The interface of a source: a reader of one kernel interface, in one file under ``sources``."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, Protocol, runtime_checkable

from reveal_contract.channels import Channel
from reveal_contract.cpu_shares import CpuShares
from reveal_contract.metric import Lane
from reveal_contract.subjects import Identity

_PROC = Path("/proc")
# Reads between two checks for new devices, where a check costs as much as a read.
CHECK_EVERY = 5
# A read that has not returned for so long counts as hung: the source is stated as unanswered.
HUNG_NS = 5_000_000_000


@dataclass(frozen=True)
class Roots:
    """Where the host's file systems are mounted; recorded trees of other hosts work as well."""

    proc: Path = Path("/proc")
    sys: Path = Path("/sys")
    cgroup: Path = Path("/sys/fs/cgroup")

    @cached_property
    def live(self) -> bool:
        """Whether these are file systems of the running kernel, so that system calls apply to it.

        In a container the host's procfs is mounted elsewhere: it is recognized by the same boot id.
        """
        return self.proc == _PROC or (_is_procfs(self.proc) and _boot(self.proc) == _boot(_PROC))


def _is_procfs(folder: Path) -> bool:
    """Return whether this is a procfs: no device, and inode 1 at the root (PROC_ROOT_INO)."""
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
    """A reader of one kernel interface.

    ``open`` learns the layout or raises ``Unsupported``; afterwards ``channels`` names the columns.
    ``read`` returns one integer for each column, or ``None`` where this column cannot be read at
    the moment.  It raises ``LayoutChanged`` after it learned other columns, and ``OSError`` when
    the whole source cannot be read this time.  ``read`` of a fast source runs in the tick thread:
    it keeps descriptors open, avoids allocations, and never starts a subprocess.

    A source whose reads take too long moves to a slower lane, unless it has an attribute
    ``keeps_lane`` that is true: its values are of no use if they are read less often.
    """

    name: str
    lane: Lane
    channels: tuple[Channel, ...]

    def open(self) -> None:
        """Learn the layout; raise ``Unsupported`` if this host does not provide the interface."""

    def read(self) -> Sequence[int | None]:
        """Return one value for each column."""

    def close(self) -> None:
        """Release all files; ``open`` may be called again."""


class Outage(NamedTuple):
    """A source that gives no values: since when (monotonic ns), and why as a part of a sentence.

    A source that a thread of its own reads returns this from a method ``outage``, and None while
    that thread gets answers.  Sources of one driver have the same attribute ``driver``, a name:
    their outage is stated once.
    """

    since_ns: int
    reason: str = "has not answered"


def time_of_day(monotonic_ns: int) -> str:
    """Return the time of day of a time on the monotonic clock, as ``12:03:05Z``."""
    wall_s = time.time() - (time.monotonic_ns() - monotonic_ns) / 1e9
    return time.strftime("%H:%M:%SZ", time.gmtime(wall_s))


@runtime_checkable
class AdaptiveSource(Protocol):
    """A source that states what it does not read, or less often than it should.

    ``degraded`` has a phrase for each: expensive queries, lines of a file in an unknown form.
    """

    @property
    def degraded(self) -> Sequence[str]:
        """One phrase for each query that is run less often, and for lines that cannot be read."""


def degraded_of(source: Source) -> Sequence[str]:
    """Return the phrases of a source; none of one that states nothing."""
    return source.degraded if isinstance(source, AdaptiveSource) else ()


@runtime_checkable
class DriverSource(Protocol):
    """A source whose values a thread of its own asks from a driver, within a limit of its own.

    The CPU budget leaves the time of that thread out: to slow other sources does not lower it.
    """

    @property
    def driver_cpu_ns(self) -> int:
        """The CPU time that the thread has used."""


@runtime_checkable
class ThrottledSource(Protocol):
    """A source that can read idle items ``slowdown_factor`` times less often than normal."""

    slowdown_factor: int


@runtime_checkable
class PausableSource(Protocol):
    """An optional source: it stops its own work, and its columns are empty, while ``paused``."""

    paused: bool


@runtime_checkable
class SubjectSource(Protocol):
    """A source that knows the subjects of its instances; ``health_error`` says why it may not."""

    @property
    def subjects(self) -> tuple[Identity, ...]:
        """The subjects that the instances of this source belong to."""

    @property
    def health_error(self) -> str:
        """One sentence while the subjects may be out of date, else empty."""


@runtime_checkable
class ShareSource(Protocol):
    """A source that knows which CPU shares the subjects of its instances are entitled to."""

    @property
    def shares(self) -> CpuShares:
        """The shares of those that are displayed."""
