"""``/proc/interrupts``, reduced: each source summed over CPUs, each CPU summed over sources.

A host of 200 CPUs has megabytes of it, nearly all zeros: only lines that changed are parsed,
and a device's line becomes a channel when it first counts.  Lines of the architecture (``LOC``,
``TLB``) are channels from the start.  Lines come and go with drivers and columns with CPUs;
counts of one CPU are 32 bits wide and wrap, which looks like a reset.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from reveal_collector.devices.per_cpu import fold_large
from reveal_collector.kernel.errors import LayoutChanged, ParseError, Unsupported
from reveal_collector.readers.plan import Columns, FileScan, MatrixPlan, MatrixRow
from reveal_collector.readers.reference_reader import ColumnMaker
from reveal_collector.readers.source import Roots, Source
from reveal_collector.readers.textfile import ColumnSet, OpenFile, channel
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane

_LINE = re.compile(rb"\s*(\w+):((?:\s+\d+)+)(?:\s+(\S.*))?\s*\Z")
_HEADER = re.compile(rb"\s*CPU\d+[\sCPU\d]*\Z")
# sources that mean trouble, or belong to another subsystem, are metrics of their own
_OWN_METRIC = {
    "TLB": "memory.tlb_shootdowns",
    "TRM": "cpu.interrupts.thermal",
    "MCE": "cpu.interrupts.machine_check",
    "ERR": "cpu.interrupts.errors",
}
_NAME_LENGTH = 40


def sources(roots: Roots) -> list[Source]:
    return [Interrupts(OpenFile(roots.proc / "interrupts"), roots.sys)]


@dataclass
class _Row:
    """One source: its line as last read and what it counted, one number a CPU (or one only)."""

    line: bytes
    name: str
    counts: list[int]
    total: int = field(init=False)

    def __post_init__(self) -> None:
        self.total = sum(self.counts)

    def plan(self) -> MatrixRow:
        """The row as the scanner is to find it."""
        found = _LINE.match(self.line)
        if found is None:
            return MatrixRow(self.line, 0, b"", None)
        device = self.name[:1].isdigit()
        return MatrixRow(
            self.line[: found.start(2)], len(self.counts), self.line[found.end(2) :],
            self.total > 0 if device else None,
        )  # fmt: skip

    @property
    def shown(self) -> bool:
        """Whether it is a channel: it counted something, or is the architecture's."""
        return self.total > 0 or (bool(self.counts) and not self.name[:1].isdigit())


class Interrupts:
    """Sums over CPUs of the sources that count, then over sources for each CPU."""

    name, lane = "interrupts", Lane.SLOW

    def __init__(self, file: OpenFile, sys: Path) -> None:
        self.channels: tuple[Channel, ...] = ()
        self._file, self._sys = file, sys
        self._header = b""
        self._rows: list[_Row] = []
        self._by_cpu: list[int] = []
        self._plan: MatrixPlan | None = None

    def open(self) -> None:
        self._file.open()
        try:
            self._learn(self._lines())
        except OSError as error:
            self.close()
            raise Unsupported(f"{self._file.path}: {error.strerror or error}") from None

    def read(self) -> Sequence[int | None]:
        self._plan = None  # lines may have changed in a way that makes no other columns
        lines = self._lines()
        if lines[0] != self._header or len(lines) != len(self._rows) + 1:
            self._learn(lines)
            raise LayoutChanged(self.name)
        if self._update(lines):
            self._learn(lines)
            raise LayoutChanged(self.name)
        return self._maker.make([row.total for row in self._rows] + self._by_cpu)

    def scans(self) -> Sequence[FileScan]:
        if self._plan is None:
            rows = tuple(row.plan() for row in self._rows)
            self._plan = MatrixPlan(self._header, rows, len(self._cpus), self._columns)
        return [FileScan(self._plan, self._file.fd, self._length)]

    def close(self) -> None:
        self._file.close()

    def _lines(self) -> list[bytes]:
        lines = self._file.read().rstrip(b"\n").split(b"\n")
        if not _HEADER.match(lines[0]):
            raise ParseError(f"{self._file.path}: line 1 does not name the CPUs")
        return lines

    def _learn(self, lines: list[bytes]) -> None:
        self._header = lines[0]
        self._cpus = [name.decode()[3:] for name in lines[0].split()]
        self._rows = [parse(line) for line in lines[1:]]
        wide = [row.counts for row in self._rows if len(row.counts) == len(self._cpus)]
        self._by_cpu = [sum(column) for column in zip(*wide, strict=True)] or [0] * len(self._cpus)
        self._length = sum(map(len, lines)) + len(lines)
        self._show()

    def _show(self) -> None:
        """The columns: of a name that stands twice the first row only."""
        shown: dict[Channel, tuple[int, ...]] = {}
        for at, row in enumerate(self._rows):
            if row.shown:
                shown.setdefault(_channel(row.name), (at,))
        for at, cpu in enumerate(self._cpus, len(self._rows)):
            shown.setdefault(channel("cpu.interrupts", cpu), (at,))
        shape = fold_large(ColumnSet(tuple(shown), Columns(tuple(shown.values()))), self._sys, {})
        self.channels, self._columns = shape.channels, shape.columns
        self._maker = ColumnMaker(self._columns)

    def _update(self, lines: list[bytes]) -> bool:
        """Parse the lines that changed; true when they are no longer the same sources."""
        for at, (row, line) in enumerate(zip(self._rows, lines[1:], strict=True)):
            if line == row.line:
                continue
            now = parse(line)
            if now.name != row.name or len(now.counts) != len(row.counts):
                return True
            if now.shown != row.shown:
                return True
            if len(now.counts) == len(self._by_cpu):
                self._by_cpu = list(map(_moved, self._by_cpu, now.counts, row.counts))
            self._rows[at] = now
        return False


def _moved(total: int, now: int, before: int) -> int:
    return total + now - before


def parse(line: bytes) -> _Row:
    """`` 36:  0  67556  PCI-MSIX-0000:00:02.0   1-edge  virtio1-req.0`` -> its name and counts.

    A line of another form has no counts and is no channel.
    """
    found = _LINE.match(line)
    if found is None:
        return _Row(line, "", [])
    number = found[1].decode("ascii", "replace")
    name = f"{number}:{_device(found[3] or b'')}" if number.isdecimal() else number
    return _Row(line, name, list(map(int, found[2].split())))


def _device(rest: bytes) -> str:
    """What stands after chip and trigger: the driver's name, of shared interrupts the first."""
    names = rest.decode("ascii", "replace").rsplit("  ", 1)[-1].strip()
    return names.split(",")[0].replace("{", "(").replace("}", ")")[:_NAME_LENGTH]


def _channel(name: str) -> Channel:
    metric = _OWN_METRIC.get(name)
    return channel(metric) if metric else channel("cpu.interrupts.irq", name)
