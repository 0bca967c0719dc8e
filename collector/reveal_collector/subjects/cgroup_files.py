"""Files of a cgroup: which metrics versions 1 and 2 keep where, and how each file parses.

Kernel documents: admin-guide/cgroup-v2.rst, cgroup-v1/{cpuacct,memory,blkio-controller}.rst,
scheduler/sched-bwc.rst.  Version 1 counts nanoseconds where version 2 counts microseconds.  The
``total_`` rows of memory.stat in version 1 cover the whole subtree, as all rows of version 2 do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from reveal_collector.kernel_interfaces.errors import Unsupported
from reveal_collector.readers.plan import Columns, SumPlan, TextForm, TokenPlan
from reveal_collector.readers.reference_reader import Mismatch, numbers
from reveal_collector.readers.source import Roots
from reveal_collector.readers.textfile import OpenFile
from reveal_collector.subjects.device_totals import DeviceTotals, IsRepeated
from reveal_contract.metric import Lane

UNIFIED = "unified"
_VERSION_1 = ("cpu", "cpuacct", "memory", "blkio", "pids")

CgroupFilePlan = TokenPlan | SumPlan


class CgroupFileParser(Protocol):
    """Parser of one file's texts; raises ``ValueError`` for text that does not parse."""

    def __call__(self, data: bytes) -> Sequence[int | None]: ...

    def plan(self, data: bytes, columns: Sequence[int]) -> CgroupFilePlan:
        """Return the scanner's plan for these columns of a text like this one."""


@dataclass(frozen=True)
class CgroupFile:
    """One file of a cgroup: its metrics, their scales to base units, and its content."""

    hierarchy: str  # a controller of version 1, or ``UNIFIED``
    names: tuple[str, ...]  # alternatives: the first one that exists counts
    metrics: tuple[str, ...]
    content: CgroupFileParser | SumPlan
    scales: tuple[float, ...] = ()
    lane: Lane = Lane.SLOW

    def scale(self, column: int) -> float:
        return self.scales[column] if self.scales else 1.0

    def parser(self, is_repeated: IsRepeated) -> CgroupFileParser:
        """Return the parser for one cgroup; sums over its devices depend on earlier texts."""
        if isinstance(self.content, SumPlan):
            return DeviceTotals(self.content, is_repeated)
        return self.content

    def open_in(self, folder: Path) -> OpenFile | None:
        """Open the file in a cgroup's directory; return ``None`` if it does not exist."""
        for name in self.names:
            file = OpenFile(folder / name)
            try:
                file.open()
            except Unsupported:
                continue
            return file
        return None


class SingleNumber:
    """A file that holds one number; "max" counts as no value."""

    def __call__(self, data: bytes) -> Sequence[int | None]:
        try:
            return numbers([data.strip()])
        except Mismatch:
            return (None,)

    def plan(self, data: bytes, columns: Sequence[int]) -> TokenPlan:
        return TokenPlan(1, (), (0,))


@dataclass(frozen=True)
class KeyedLines:
    """Lines of ``key value``; each column is the sum over those of its keys that exist."""

    columns: tuple[tuple[bytes, ...], ...]

    def __call__(self, data: bytes) -> Sequence[int | None]:
        tokens = data.split()
        found = dict(zip(tokens[::2], tokens[1::2], strict=False))
        return [_sum_of(found, column) for column in self.columns]

    def plan(self, data: bytes, columns: Sequence[int]) -> TokenPlan:
        """Return a plan with the positions of the keys in this text."""
        tokens = data.split()
        positions = dict(zip(tokens[::2], range(0, len(tokens) - 1, 2), strict=False))
        groups = [[key for key in self.columns[column] if key in positions] for column in columns]
        keys = list(dict.fromkeys(key for group in groups for key in group))
        sums = tuple(tuple(keys.index(key) for key in group) for group in groups)
        return TokenPlan(
            len(tokens), tuple((positions[key], key) for key in keys),
            tuple(positions[key] + 1 for key in keys), columns=Columns(sums),
        )  # fmt: skip


def keyed_lines(*columns: tuple[str, ...]) -> KeyedLines:
    return KeyedLines(tuple(tuple(key.encode() for key in column) for column in columns))


def _sum_of(found: Mapping[bytes, bytes], keys: Sequence[bytes]) -> int | None:
    values = [int(found[key]) for key in keys if key in found]
    return sum(values) if values else None


class PressureTotal:
    """``some ... total=N`` of a pressure file, in microseconds."""

    _KEY, _FORM = b"total", TextForm(blanks=b"=")

    def __call__(self, data: bytes) -> Sequence[int | None]:
        _, found, rest = data.partition(self._KEY + b"=")
        digits = rest.split(maxsplit=1)
        return (int(digits[0]) if found and digits else None,)

    def plan(self, data: bytes, columns: Sequence[int]) -> TokenPlan:
        tokens = self._FORM.apply(data).split()
        # Without the key, the plan requires it at token 0, so it matches no text.
        position = tokens.index(self._KEY) if self._KEY in tokens else 0
        count = max(len(tokens), position + 2)
        return TokenPlan(count, ((position, self._KEY),), (position + 1,), self._FORM)


def parsed_columns(
    parser: CgroupFileParser, text: bytes, columns: Sequence[int]
) -> list[int | None]:
    """Return some columns of a text; all are ``None`` if the text does not parse."""
    try:
        parsed = parser(text)
        return [parsed[column] for column in columns]
    except (ValueError, IndexError):
        return [None] * len(columns)


single_number, pressure = SingleNumber(), PressureTotal()
# blkio of version 1: ``8:0 Read 5``; io.stat: ``8:0 rbytes=1 wbytes=2``.  A device has no line
# before its first I/O, so a file without lines means no I/O yet.
device_lines = SumPlan((b"Read", b"Write"))
device_pairs = SumPlan((b"rbytes", b"wbytes", b"rios", b"wios"), TextForm(blanks=b"="))


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

# On a hybrid host the first file that gives a metric counts: version 1 before version 2.
FILES: tuple[CgroupFile, ...] = (
    CgroupFile(
        "cpuacct", ("cpuacct.usage",), ("cpu.subject.usage",), single_number, lane=Lane.FAST
    ),
    CgroupFile(
        "cpu", ("cpu.stat",), _THROTTLED,
        keyed_lines(("nr_throttled",), ("throttled_time",)), lane=Lane.FAST,
    ),
    CgroupFile("memory", ("memory.usage_in_bytes",), ("memory.subject.usage",), single_number),
    CgroupFile(
        "memory", ("memory.stat",), _MEMORY_STAT,
        keyed_lines(
            ("total_rss",), ("total_cache",), ("total_pgfault",), ("total_pgmajfault",),
            tuple(f"total_{key}" for key in _REFAULTS), ("total_pgscan",),
        ),
    ),
    CgroupFile("memory", ("memory.oom_control",), ("memory.subject.oom_kills",),
               keyed_lines(("oom_kill",))),
    CgroupFile("memory", ("memory.failcnt",), ("memory.subject.limit_hits",), single_number),
    CgroupFile(
        "blkio", ("blkio.throttle.io_service_bytes_recursive", "blkio.throttle.io_service_bytes"),
        _BYTES, device_lines,
    ),
    CgroupFile(
        "blkio", ("blkio.throttle.io_serviced_recursive", "blkio.throttle.io_serviced"),
        _REQUESTS, device_lines,
    ),
    CgroupFile("pids", ("pids.current",), ("cpu.subject.tasks",), single_number),
    CgroupFile(
        UNIFIED, ("cpu.stat",), ("cpu.subject.usage", *_THROTTLED),
        keyed_lines(("usage_usec",), ("nr_throttled",), ("throttled_usec",)),
        (_USEC, 1.0, _USEC), Lane.FAST,
    ),
    CgroupFile(UNIFIED, ("memory.current",), ("memory.subject.usage",), single_number),
    CgroupFile(
        UNIFIED, ("memory.stat",), _MEMORY_STAT,
        keyed_lines(
            ("anon",), ("file",), ("pgfault",), ("pgmajfault",),
            (*_REFAULTS, "workingset_refault"), ("pgscan",),
        ),
    ),
    CgroupFile(
        UNIFIED, ("memory.events",), ("memory.subject.oom_kills", "memory.subject.limit_hits"),
        keyed_lines(("oom_kill",), ("max",)),
    ),
    CgroupFile(UNIFIED, ("io.stat",), (*_BYTES, *_REQUESTS), device_pairs),
    CgroupFile(UNIFIED, ("pids.current",), ("cpu.subject.tasks",), single_number),
    CgroupFile(UNIFIED, ("cpu.pressure",), ("cpu.subject.pressure",), pressure, (_USEC,)),
    CgroupFile(UNIFIED, ("memory.pressure",), ("memory.subject.pressure",), pressure, (_USEC,)),
    CgroupFile(UNIFIED, ("io.pressure",), ("storage.subject.pressure",), pressure, (_USEC,)),
)  # fmt: skip


def hierarchies(root: Path) -> dict[str, Path]:
    """Return the root directory of each hierarchy: version 1 by controller, and ``UNIFIED``.

    A blkio hierarchy that counts nothing is left out.
    """
    found = {name: root / name for name in _VERSION_1 if (root / name / "cgroup.procs").exists()}
    if "blkio" in found and not _blkio_counts(found["blkio"]):
        del found["blkio"]
    for folder in (root, root / "unified"):
        if (folder / "cgroup.controllers").exists():
            return {**found, UNIFIED: folder}
    return found


def requests_root(root: Path) -> Path | None:
    """Return the root of the hierarchy whose cgroups requests to disks belong to.

    They belong to a cgroup of blkio also where it counts nothing.
    """
    if (root / "blkio/cgroup.procs").exists():
        return root / "blkio"
    unified = (folder for folder in (root, root / "unified") if _controls_storage(folder))
    return next(unified, None)


def _blkio_counts(blkio: Path) -> bool:
    """Return whether blkio counts: since Linux 6.10 only after a limit was set on some disk.

    In the root cgroup, which all I/O of the host passes, every disk then has a line.
    """
    for name in ("blkio.throttle.io_service_bytes_recursive", "blkio.throttle.io_service_bytes"):
        try:
            return b":" in (blkio / name).read_bytes()
        except OSError:
            continue
    return True


def counts_storage(trees: Mapping[str, Path]) -> bool:
    """Return whether the cgroups count bytes read from and written to storage."""
    return "blkio" in trees or (UNIFIED in trees and _controls_storage(trees[UNIFIED]))


def _controls_storage(unified: Path) -> bool:
    """Return whether a hierarchy of version 2 has the controller of storage."""
    try:
        return b"io" in (unified / "cgroup.controllers").read_bytes().split()
    except OSError:
        return False


def node_container_root(roots: Roots) -> Path | None:
    """Return the version 2 root cgroup of a node that is a container, else ``None``.

    The root cgroup of a machine has no ``cgroup.type``.  The default root is not checked: it is a
    container's own root if the collector itself runs in one, but its node is the machine.
    """
    if roots.cgroup == Roots().cgroup:
        return None
    for folder in (roots.cgroup, roots.cgroup / "unified"):
        if (folder / "cgroup.type").exists():
            return folder
    return None


def cpu_root(trees: Mapping[str, Path]) -> Path | None:
    """Return the tree whose cgroups count the CPU time of processes."""
    for name in ("cpuacct", "cpu", UNIFIED):
        if name in trees:
            return trees[name]
    return None
