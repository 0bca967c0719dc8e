"""``/proc/interrupts``, reduced: each source summed over CPUs, each CPU summed over sources.

A host of 200 CPUs has megabytes of it, nearly all zeros: only lines that changed are parsed,
and a device's line becomes a channel when it first counts.  Lines of the architecture (``LOC``,
``TLB``) are channels from the start.  Lines come and go with drivers and columns with CPUs;
counts of one CPU are 32 bits wide and wrap, which looks like a reset.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from reveal_collector.source import LayoutChanged, ParseError, Roots, Source, Unsupported
from reveal_collector.textfile import KeptFile, channel
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
    return [Interrupts(KeptFile(roots.proc / "interrupts"))]


@dataclass
class _Row:
    """One source: its line as last read and what it counted, one number a CPU (or one only)."""

    line: bytes
    name: str
    counts: list[int]

    @property
    def shown(self) -> bool:
        """Whether it is a channel: it counted something, or is the architecture's."""
        return any(self.counts) or not self.name[:1].isdigit()


class Interrupts:
    """Sums over CPUs of the sources that count, then over sources for each CPU."""

    name, lane = "interrupts", Lane.SLOW

    def __init__(self, file: KeptFile) -> None:
        self.channels: tuple[Channel, ...] = ()
        self._file = file
        self._header = b""
        self._rows: list[_Row] = []

    def open(self) -> None:
        self._file.open()
        try:
            self._learn(self._lines())
        except OSError as error:
            self.close()
            raise Unsupported(f"{self._file.path}: {error.strerror or error}") from None

    def read(self) -> Sequence[int | None]:
        lines = self._lines()
        if lines[0] != self._header or len(lines) != len(self._rows) + 1:
            self._learn(lines)
            raise LayoutChanged(self.name)
        if self._update(lines):
            self._learn(lines)
            raise LayoutChanged(self.name)
        return self._values()

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
        shown = [row for row in self._rows if row.shown and row.counts]
        by_source = [_channel(row.name) for row in shown]
        by_cpu = [channel("cpu.interrupts", cpu) for cpu in self._cpus]
        self.channels = tuple(dict.fromkeys(chain(by_source, by_cpu)))

    def _update(self, lines: list[bytes]) -> bool:
        """Parse the lines that changed; true when they are no longer the same sources."""
        for row, line in zip(self._rows, lines[1:], strict=True):
            if line != row.line:
                now = parse(line)
                if now.name != row.name or len(now.counts) != len(row.counts):
                    return True
                if now.shown and not row.shown:
                    return True
                row.line, row.counts = line, now.counts
        return False

    def _values(self) -> list[int | None]:
        sums: dict[str, int] = {}
        for row in self._rows:
            if row.shown and row.counts:
                sums.setdefault(row.name, sum(row.counts))
        width = len(self._cpus)
        wide = [row.counts for row in self._rows if len(row.counts) == width]
        by_cpu = [sum(column) for column in zip(*wide, strict=True)] or [0] * width
        return [*sums.values(), *by_cpu]


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
