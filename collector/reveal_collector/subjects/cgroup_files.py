"""Files of a cgroup: where versions 1 and 2 keep what, and how each file reads.

Kernel documents: admin-guide/cgroup-v2.rst, cgroup-v1/{cpuacct,memory,blkio-controller}.rst,
scheduler/sched-bwc.rst.  Version 1 counts nanoseconds where version 2 counts microseconds; of
memory.stat the ``total_`` rows of version 1 mean what version 2 shows: the whole subtree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from reveal_collector.kernel.errors import Unsupported
from reveal_collector.readers.plan import (
    PLAIN,
    Columns,
    Mismatch,
    SumPlan,
    TextForm,
    TokenPlan,
    numbers,
    sum_row,
)
from reveal_collector.readers.source import Roots
from reveal_collector.readers.textfile import OpenFile
from reveal_contract.metric import Lane

UNIFIED = "unified"
_VERSION_1 = ("cpu", "cpuacct", "memory", "blkio", "pids")

Plan = TokenPlan | SumPlan


class Parser(Protocol):
    """How the text of a file reads; ``ValueError`` where it does not."""

    def __call__(self, data: bytes) -> Sequence[int | None]: ...

    def plan(self, data: bytes, columns: Sequence[int]) -> Plan:
        """How the scanner reads these columns of a text like this one."""


@dataclass(frozen=True)
class CgroupFile:
    """One file of a cgroup: the metrics it gives, a scale to base units, and how to read it."""

    hierarchy: str  # a controller of version 1, or ``UNIFIED``
    names: tuple[str, ...]  # the first of these that exists
    metrics: tuple[str, ...]
    parse: Parser
    scales: tuple[float, ...] = ()
    lane: Lane = Lane.SLOW

    def scale(self, column: int) -> float:
        return self.scales[column] if self.scales else 1.0

    def columns(self, text: bytes, columns: Sequence[int]) -> list[int | None]:
        """Some columns of a text; none has a value where the text does not read."""
        try:
            parsed = self.parse(text)
            return [parsed[at] for at in columns]
        except (ValueError, IndexError):
            return [None] * len(columns)

    def opened(self, folder: Path) -> OpenFile | None:
        """The file of a cgroup, if it has one."""
        for name in self.names:
            file = OpenFile(folder / name)
            try:
                file.open()
            except Unsupported:
                continue
            return file
        return None


class Number:
    """A file that is one number; "max" is none."""

    def __call__(self, data: bytes) -> Sequence[int | None]:
        try:
            return numbers([data.strip()])
        except Mismatch:
            return (None,)

    def plan(self, data: bytes, columns: Sequence[int]) -> TokenPlan:
        return TokenPlan(1, (), (0,))


@dataclass(frozen=True)
class Keyed:
    """Lines ``key value``: each column the sum of those of its keys that are there."""

    columns: tuple[tuple[bytes, ...], ...]

    def __call__(self, data: bytes) -> Sequence[int | None]:
        tokens = data.split()
        found = dict(zip(tokens[::2], tokens[1::2], strict=False))
        return [_total(found, column) for column in self.columns]

    def plan(self, data: bytes, columns: Sequence[int]) -> TokenPlan:
        """Where the keys of these columns stand in this text."""
        tokens = data.split()
        places = dict(zip(tokens[::2], range(0, len(tokens) - 1, 2), strict=False))
        groups = [[key for key in self.columns[at] if key in places] for at in columns]
        keys = list(dict.fromkeys(key for group in groups for key in group))
        sums = tuple(tuple(keys.index(key) for key in group) for group in groups)
        return TokenPlan(
            len(tokens), tuple((places[key], key) for key in keys),
            tuple(places[key] + 1 for key in keys), columns=Columns(sums),
        )  # fmt: skip


def keyed(*columns: tuple[str, ...]) -> Keyed:
    return Keyed(tuple(tuple(key.encode() for key in column) for column in columns))


def _total(found: Mapping[bytes, bytes], keys: Sequence[bytes]) -> int | None:
    values = [int(found[key]) for key in keys if key in found]
    return sum(values) if values else None


class StallTotal:
    """``some ... total=N`` of a pressure file, microseconds."""

    _KEY, _FORM = b"total", TextForm(blanks=b"=")

    def __call__(self, data: bytes) -> Sequence[int | None]:
        _, found, rest = data.partition(self._KEY + b"=")
        digits = rest.split(maxsplit=1)
        return (int(digits[0]) if found and digits else None,)

    def plan(self, data: bytes, columns: Sequence[int]) -> TokenPlan:
        tokens = self._FORM.shape(data).split()
        place = tokens.index(self._KEY) if self._KEY in tokens else 0  # else it fits no text
        count = max(len(tokens), place + 2)
        return TokenPlan(count, ((place, self._KEY),), (place + 1,), self._FORM)


@dataclass(frozen=True)
class DeviceSums:
    """Lines of devices: each column the sum over all of them of what follows its key.

    A device has no line before its first I/O; no line at all means nothing was done yet.
    """

    keys: tuple[bytes, ...]
    form: TextForm = PLAIN

    def __call__(self, data: bytes) -> Sequence[int | None]:
        return sum_row(SumPlan(self.keys, self.form), data)

    def plan(self, data: bytes, columns: Sequence[int]) -> SumPlan:
        return SumPlan(tuple(self.keys[at] for at in columns), self.form)


number, stall_total = Number(), StallTotal()
# blkio of version 1: ``8:0 Read 5``; io.stat: ``8:0 rbytes=1 wbytes=2``
device_lines = DeviceSums((b"Read", b"Write"))
device_pairs = DeviceSums((b"rbytes", b"wbytes", b"rios", b"wios"), TextForm(blanks=b"="))


_USEC = 1000.0
_PAGE_FAULTS = ("memory.subject.page_faults", "memory.subject.major_faults")
_REFAULTS = ("workingset_refault_anon", "workingset_refault_file")
_THROTTLED = ("cpu.subject.throttled_periods", "cpu.subject.throttled_time")
_BYTES = ("storage.subject.read_bytes", "storage.subject.write_bytes")
_REQUESTS = ("storage.subject.reads", "storage.subject.writes")
_MEMORY_STAT = (
    "memory.subject.anon", "memory.subject.file", *_PAGE_FAULTS, "memory.subject.refaults",
    "memory.subject.scanned",
)  # fmt: skip

# In this order: what version 1 gives is not taken from version 2 as well (hybrid hosts).
FILES: tuple[CgroupFile, ...] = (
    CgroupFile("cpuacct", ("cpuacct.usage",), ("cpu.subject.usage",), number, lane=Lane.FAST),
    CgroupFile(
        "cpu", ("cpu.stat",), _THROTTLED,
        keyed(("nr_throttled",), ("throttled_time",)), lane=Lane.FAST,
    ),
    CgroupFile("memory", ("memory.usage_in_bytes",), ("memory.subject.usage",), number),
    CgroupFile(
        "memory", ("memory.stat",), _MEMORY_STAT,
        keyed(
            ("total_rss",), ("total_cache",), ("total_pgfault",), ("total_pgmajfault",),
            tuple(f"total_{key}" for key in _REFAULTS), ("total_pgscan",),
        ),
    ),
    CgroupFile("memory", ("memory.oom_control",), ("memory.subject.oom_kills",),
               keyed(("oom_kill",))),
    CgroupFile("memory", ("memory.failcnt",), ("memory.subject.limit_hits",), number),
    CgroupFile(
        "blkio", ("blkio.throttle.io_service_bytes_recursive", "blkio.throttle.io_service_bytes"),
        _BYTES, device_lines,
    ),
    CgroupFile(
        "blkio", ("blkio.throttle.io_serviced_recursive", "blkio.throttle.io_serviced"),
        _REQUESTS, device_lines,
    ),
    CgroupFile("pids", ("pids.current",), ("cpu.subject.tasks",), number),
    CgroupFile(
        UNIFIED, ("cpu.stat",), ("cpu.subject.usage", *_THROTTLED),
        keyed(("usage_usec",), ("nr_throttled",), ("throttled_usec",)),
        (_USEC, 1.0, _USEC), Lane.FAST,
    ),
    CgroupFile(UNIFIED, ("memory.current",), ("memory.subject.usage",), number),
    CgroupFile(
        UNIFIED, ("memory.stat",), _MEMORY_STAT,
        keyed(
            ("anon",), ("file",), ("pgfault",), ("pgmajfault",),
            (*_REFAULTS, "workingset_refault"), ("pgscan",),
        ),
    ),
    CgroupFile(
        UNIFIED, ("memory.events",), ("memory.subject.oom_kills", "memory.subject.limit_hits"),
        keyed(("oom_kill",), ("max",)),
    ),
    CgroupFile(UNIFIED, ("io.stat",), (*_BYTES, *_REQUESTS), device_pairs),
    CgroupFile(UNIFIED, ("pids.current",), ("cpu.subject.tasks",), number),
    CgroupFile(UNIFIED, ("cpu.pressure",), ("cpu.subject.pressure",), stall_total, (_USEC,)),
    CgroupFile(UNIFIED, ("memory.pressure",), ("memory.subject.pressure",), stall_total, (_USEC,)),
    CgroupFile(UNIFIED, ("io.pressure",), ("storage.subject.pressure",), stall_total, (_USEC,)),
)  # fmt: skip


def hierarchies(root: Path) -> dict[str, Path]:
    """Where each controller's tree begins: version 1 by controller, version 2 as ``UNIFIED``.

    A blkio that counts nothing is left out.
    """
    found = {name: root / name for name in _VERSION_1 if (root / name / "cgroup.procs").exists()}
    if "blkio" in found and not _counts(found["blkio"]):
        del found["blkio"]
    for place in (root, root / "unified"):
        if (place / "cgroup.controllers").exists():
            return {**found, UNIFIED: place}
    return found


def _counts(blkio: Path) -> bool:
    """Whether block I/O is counted: since Linux 6.10 only once a limit was set on some disk.

    Any disk that is has a line in the root cgroup, which all I/O of the host passes.
    """
    for name in ("blkio.throttle.io_service_bytes_recursive", "blkio.throttle.io_service_bytes"):
        try:
            return b":" in (blkio / name).read_bytes()
        except OSError:
            continue
    return True


def counts_storage(trees: Mapping[str, Path]) -> bool:
    """Whether cgroups themselves say what was read from and written to storage."""
    if "blkio" in trees:
        return True
    try:
        return b"io" in (trees[UNIFIED] / "cgroup.controllers").read_bytes().split()
    except (KeyError, OSError):
        return False


def nested(roots: Roots) -> Path | None:
    """The root cgroup, in version 2, of a node that is a container; ``None`` of any other host.

    The machine's own root has no ``cgroup.type``.  Where the files are our own and not a node's
    that is mounted elsewhere, it is only us who are in a container.
    """
    if roots.cgroup == Roots().cgroup:
        return None
    for place in (roots.cgroup, roots.cgroup / "unified"):
        if (place / "cgroup.type").exists():
            return place
    return None


def cpu_root(trees: Mapping[str, Path]) -> Path | None:
    """The tree that says which cgroup a process's CPU time goes to."""
    for name in ("cpuacct", "cpu", UNIFIED):
        if name in trees:
            return trees[name]
    return None
