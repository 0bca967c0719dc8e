"""``/proc/interrupts``, reduced: each source summed over CPUs, each CPU summed over sources.

On a host of 200 CPUs the file has megabytes, nearly all zeros.  Only changed lines are parsed,
and a device's line becomes a channel with its first interrupt.  Lines of the architecture
(``LOC``, ``TLB``) are channels from the start.  Drivers add and remove lines, CPUs add and remove
columns.  The counts of one CPU have 32 bits and wrap, which looks like a reset.

On s390 a line can be the sum of others, which name it in brackets (``[EXT] Clock Comparator``).  It
is a channel of its own, but adds nothing to the sums of the CPUs.  On POWER two lines are named
``LOC`` (two kinds of timer interrupts): they are one channel.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from reveal_collector.devices.per_cpu import fold_large
from reveal_collector.kernel_interfaces.errors import LayoutChanged, ParseError, Unsupported
from reveal_collector.readers.plan import Columns, FileScan, MatrixPlan, MatrixRow
from reveal_collector.readers.reference_reader import ColumnMaker
from reveal_collector.readers.source import Roots, Source
from reveal_collector.readers.sums import grouped, identified_sums
from reveal_collector.readers.textfile import ColumnSet, OpenFile, channel, unfit_lines
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane

# The counts have a width.  Where it is used up, the first one follows the colon without a blank:
# ``IPI0:2768808080 2844211768`` on Arm.  A name has no blank and no colon: ``I/O`` on s390.
_LINE = re.compile(rb"\s*([^\s:]+):(\s*\d+(?:\s+\d+)*)(?:\s+(\S.*))?\s*\Z")
_COUNT = re.compile(rb"(?<!\S)\d+(?!\S)")
_HEADER = re.compile(rb"\s*CPU\d+[\sCPU\d]*\Z")
# Sources that mean errors, or belong to another subsystem, have a metric of their own.
_OWN_METRIC = {
    "TLB": "memory.tlb_shootdowns",
    "TRM": "cpu.interrupts.thermal",
    "MCE": "cpu.interrupts.machine_check",
    "ERR": "cpu.interrupts.errors",
}
_PART_OF = re.compile(rb"\[([^]\s]+)\]\s")  # before the description of a line
_NAME_LENGTH = 40


def sources(roots: Roots) -> list[Source]:
    return [Interrupts(OpenFile(roots.proc / "interrupts"), roots.sys)]


@dataclass
class InterruptRow:
    """One source: its line as last read, and one count per CPU (or a single count)."""

    line: bytes
    name: str
    counts: list[int]
    part_of: str = ""  # the name of the line that includes these counts
    total: int = field(init=False)

    def __post_init__(self) -> None:
        self.total = sum(self.counts)

    def plan(self, repeats: bool) -> MatrixRow:
        """Return the row as the scanner must find it; ``repeats`` other rows or not."""
        found = _LINE.match(self.line)
        if found is None:
            return MatrixRow(self.line, 0, b"", None)
        device = self.name[:1].isdigit()
        return MatrixRow(
            self.line[: found.start(2)], len(self.counts), self.line[found.end(2) :],
            self.total > 0 if device else None, repeats,
        )  # fmt: skip

    @property
    def is_unfit(self) -> bool:
        """Whether the line has a count that was not understood; a name alone has none (``FIQ``)."""
        return not self.counts and bool(_COUNT.search(self.line))

    @property
    def is_channel(self) -> bool:
        """Whether it is a channel: it counted something, or belongs to the architecture."""
        return self.total > 0 or (bool(self.counts) and not self.name[:1].isdigit())


class Interrupts:
    """Sums over CPUs of the sources that count, then sums over sources for each CPU."""

    name, lane = "interrupts", Lane.SLOW

    def __init__(self, file: OpenFile, sys: Path) -> None:
        self.channels: tuple[Channel, ...] = ()
        self._file, self._sys = file, sys
        self._header = b""
        self._rows: list[InterruptRow] = []
        self._sums: frozenset[str] = frozenset()  # names of the rows that are sums of others
        self._by_cpu: list[int] = []
        self._plan: MatrixPlan | None = None
        self._unfit: list[str] = []

    def open(self) -> None:
        self._file.open()
        try:
            self._parse_all(self._lines())
        except OSError as error:
            self.close()
            raise Unsupported(f"{self._file.path}: {error.strerror or error}") from None

    def read(self) -> Sequence[int | None]:
        self._plan = None  # a changed line may keep the columns but not the plan
        lines = self._lines()
        if lines[0] != self._header or len(lines) != len(self._rows) + 1:
            self._parse_all(lines)
            raise LayoutChanged(self.name)
        if self._update(lines):
            self._parse_all(lines)
            raise LayoutChanged(self.name)
        return self._maker.make([row.total for row in self._rows] + self._by_cpu)

    @property
    def degraded(self) -> Sequence[str]:
        """One phrase while lines with counts have another form than known."""
        return unfit_lines(self.name, self._file.path, self._unfit)

    def scans(self) -> Sequence[FileScan]:
        if self._plan is None:
            rows = tuple(row.plan(row.name in self._sums) for row in self._rows)
            self._plan = MatrixPlan(self._header, rows, len(self._cpus), self._columns)
        return [FileScan(self._plan, self._file.fd, self._length)]

    def close(self) -> None:
        self._file.close()

    def _lines(self) -> list[bytes]:
        lines = self._file.read().rstrip(b"\n").split(b"\n")
        if not _HEADER.match(lines[0]):
            raise ParseError(f"{self._file.path}: line 1 does not name the CPUs")
        return lines

    def _parse_all(self, lines: list[bytes]) -> None:
        self._header = lines[0]
        self._cpus = [name.decode()[3:] for name in lines[0].split()]
        self._rows = [parse(line) for line in lines[1:]]
        self._unfit = [row.line.decode("ascii", "replace") for row in self._rows if row.is_unfit]
        self._sums = frozenset(
            row.part_of for row in self._rows if row.part_of not in ("", row.name)
        )
        counts = [row.counts for row in self._rows if self._adds_to_cpus(row)]
        self._by_cpu = list(map(sum, zip(*counts, strict=True))) or [0] * len(self._cpus)
        self._length = sum(map(len, lines)) + len(lines)
        self._update_channels()

    def _update_channels(self) -> None:
        """Set the columns: rows with the same name are added."""
        columns = grouped(
            (_channel(row.name), index) for index, row in enumerate(self._rows) if row.is_channel
        ) | {
            channel("cpu.interrupts", cpu): (index,)
            for index, cpu in enumerate(self._cpus, len(self._rows))
        }
        shape = fold_large(
            ColumnSet(tuple(columns), Columns(tuple(columns.values()))), self._sys, {}
        )
        self.channels = identified_sums(shape.channels, shape.columns, self._inputs())
        self._columns, self._maker = shape.columns, ColumnMaker(shape.columns)

    def _inputs(self) -> Sequence[Hashable]:
        """Return what identifies each value: a row has all CPUs, a CPU has the rows it adds."""
        cpus = hash(tuple(self._cpus))
        rows = hash(tuple(row.name for row in self._rows if self._adds_to_cpus(row)))
        return [(row.name, cpus) for row in self._rows] + [(cpu, rows) for cpu in self._cpus]

    def _adds_to_cpus(self, row: InterruptRow) -> bool:
        return len(row.counts) == len(self._cpus) and row.name not in self._sums

    def _update(self, lines: list[bytes]) -> bool:
        """Parse the lines that changed; return whether the channels changed."""
        for index, (row, line) in enumerate(zip(self._rows, lines[1:], strict=True)):
            if line == row.line:
                continue
            new = parse(line)
            if (new.name, new.part_of) != (row.name, row.part_of):
                return True
            if len(new.counts) != len(row.counts):
                return True
            if new.is_channel != row.is_channel:  # a device interrupted for the first time
                return True
            if self._adds_to_cpus(new):
                self._by_cpu = list(map(_updated_total, self._by_cpu, new.counts, row.counts))
            self._rows[index] = new
        return False


def _updated_total(total: int, count: int, previous: int) -> int:
    return total + count - previous


def parse(line: bytes) -> InterruptRow:
    """Return name and counts of ``36:  0  67556  PCI-MSIX-0000:00:02.0   1-edge  virtio1-req.0``.

    A line of another form has no counts and is not a channel.
    """
    found = _LINE.match(line)
    if found is None:
        return InterruptRow(line, "", [])
    number = found[1].decode("ascii", "surrogateescape").replace("{", "(").replace("}", ")")
    rest = found[3] or b""
    name = f"{number}:{_device_name(rest)}" if number.isdecimal() else number
    whole = _PART_OF.match(rest)
    part_of = whole[1].decode("ascii", "surrogateescape") if whole else ""
    return InterruptRow(line, name, list(map(int, found[2].split())), part_of)


def _device_name(rest: bytes) -> str:
    """Return the driver after chip and trigger; of a shared interrupt, the first driver."""
    names = rest.decode("ascii", "surrogateescape").rsplit("  ", 1)[-1].strip()
    return names.split(",")[0].replace("{", "(").replace("}", ")")[:_NAME_LENGTH]


def _channel(name: str) -> Channel:
    metric = _OWN_METRIC.get(name)
    return channel(metric) if metric else channel("cpu.interrupts.irq", name)
