"""Reader of one cgroup's files: its columns, and their values after creation and after the end."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from pathlib import Path

from reveal_collector.readers.plan import QUIET, FileScan, Gated, MemoryPlan
from reveal_collector.readers.raw_slice import MISSING, gather
from reveal_collector.readers.textfile import OpenFile
from reveal_collector.subjects.cgroup_files import (
    FILES,
    CgroupFile,
    CgroupFileParser,
    parsed_columns,
)
from reveal_collector.subjects.device_totals import DeviceTotals, IsRepeated
from reveal_collector.subjects.tracker import CgroupSubject
from reveal_contract.catalogue import find
from reveal_contract.channels import Channel
from reveal_contract.metric import Kind, Lane

# New columns appear in the next slice, so up to so many rows may be read before.
_ROWS_PER_SLICE = {Lane.FAST: 10, Lane.SLOW: 1}
_UNSENT_ROWS = {Lane.FAST: 12, Lane.SLOW: 2}


class CgroupReader:
    """The open files of one cgroup in one lane, and their last values.

    A column starts with the slice after the one in which its cgroup was found, and a cgroup may
    end between two reads.  No use is lost in either case.  The counters of a *newborn* cgroup
    show 0 until its columns are sent, then increase in one step to the real value.  The counters
    of a cgroup that *ended* keep their last value for as long.
    """

    def __init__(
        self, subject: CgroupSubject, trees: Mapping[str, Path], lane: Lane, is_repeated: IsRepeated
    ) -> None:
        self.subject = subject
        self.channels: list[Channel] = []
        self.values: list[int | None] = []
        self.quiet = 0  # reads since the CPU clock last changed
        self.is_scanned = False  # the scanner in C shows the rows
        self._newborn_rows = _UNSENT_ROWS[lane] if subject.newborn else 0  # rows still to show 0
        self._ended_rows = 0  # rows shown since the end; 0 while the cgroup exists
        self._unsent_rows, self._rows_per_slice = _UNSENT_ROWS[lane], _ROWS_PER_SLICE[lane]
        self._leads_gate = lane is Lane.FAST
        self._files: list[tuple[OpenFile, CgroupFileParser, list[int]]] = []
        self._texts: list[bytes] = []
        self._parsed: list[list[int | None]] = []  # columns of the last texts
        self._unchanged: list[int] = []  # reads of each file without a change
        self._skipped: list[int] = []  # rows since the last read of each file
        self._scans: list[FileScan] | None = None
        self._memory_plan: MemoryPlan | None = None
        self._last_clock = b""
        self._is_repeated = is_repeated
        taken: set[str] = set()
        for file in FILES:
            if file.hierarchy in trees and not taken.issuperset(file.metrics):
                self._add(file, trees[file.hierarchy] / subject.path[1:], taken, lane)

    def _add(self, file: CgroupFile, folder: Path, taken: set[str], lane: Lane) -> None:
        opened = file.open_in(folder)
        if opened is None:
            return
        parser = file.parser(self._is_repeated)
        try:
            data = opened.read()
            parsed = parser(data)
        except (OSError, ValueError):
            parsed = ()
        columns = [
            column
            for column, (metric, value) in enumerate(zip(file.metrics, parsed, strict=False))
            if value is not None and metric not in taken
        ]
        # Also for a file of the other lane: both lanes must agree on which file gives a metric.
        taken.update(file.metrics[column] for column in columns)
        if not columns or file.lane is not lane:
            opened.close()
            return
        self._files.append((opened, parser, columns))
        self._texts.append(data)
        self._parsed.append([parsed[column] for column in columns])
        self._unchanged.append(0)
        self._skipped.append(0)
        self.channels += [
            Channel(metric, self.subject.instance, find(metric).kind, file.scale(column), lane)
            for column in columns
            for metric in (file.metrics[column],)
        ]

    @property
    def unfit(self) -> dict[Path, tuple[str, ...]]:
        """Lines in an unknown form, by file."""
        return {
            opened.path: parser.unfit
            for opened, parser, _ in self._files
            if isinstance(parser, DeviceTotals) and parser.unfit
        }

    @property
    def clock_ns(self) -> int | None:
        """The CPU clock of a reader of the fast lane, as last read."""
        value = self.values[0] if self.values else None
        return None if value is None else int(value * self.channels[0].scale)

    def row(self) -> Sequence[int | None]:
        """Return the values of one row."""
        values = self._current_values()
        return values if self.is_scanned else self._count_row(values)

    def _count_row(self, values: Sequence[int | None]) -> Sequence[int | None]:
        """Count one more row shown: it ends the newborn state, then the ended state."""
        if self._newborn_rows:
            self._newborn_rows -= 1
        elif self._ended_rows:
            self._ended_rows += 1
            if self._ended_rows > self._unsent_rows + 1:
                self.values = [None] * len(self.channels)
                return self.values
        return values

    def _current_values(self) -> Sequence[int | None]:
        if not self._newborn_rows:
            return self.values
        return [
            0 if channel.kind is Kind.COUNTER and value is not None else value
            for channel, value in zip(self.channels, self.values, strict=True)
        ]

    def read(self, clock: bytes | None = None, back_off: int = 1) -> None:
        """Update ``values``; ``clock`` is the text of the first file if it was read already.

        A file that has not changed for long is read only every ``back_off`` rows.
        """
        values: list[int | None] = []
        self._scans = None
        for index, (opened, _, _) in enumerate(self._files):
            try:
                if clock is not None or self._is_due(index, back_off):
                    self._parse(index, opened.read() if clock is None else clock)
            except OSError:  # ENODEV: the cgroup was removed
                self._end()
                return
            values.extend(self._parsed[index])
            clock = None
        self.values = values

    def _is_due(self, index: int, back_off: int) -> bool:
        self._skipped[index] += 1
        return self._unchanged[index] < QUIET or self._skipped[index] >= back_off

    def _parse(self, index: int, text: bytes) -> None:
        self._skipped[index] = 0
        if text == self._texts[index]:  # most files rarely change
            self._unchanged[index] += 1
            return
        _, parser, columns = self._files[index]
        self._texts[index], self._unchanged[index] = text, 0
        self._parsed[index] = parsed_columns(parser, text, columns)

    def read_clock(self, back_off: int = 1) -> bool:
        """Read the CPU clock, and the other files only if it changed; return whether it did."""
        if not self._files:
            return False
        try:
            data = self._files[0][0].read()
        except OSError:
            self._end()
            return False
        if data == self._last_clock:
            return False
        self._last_clock = data
        self.read(data, back_off)
        return True

    def scans(self) -> Sequence[FileScan]:
        """Return the scanner's plans for the files; after the end, for the values to show."""
        self.is_scanned = True
        if self._ended_rows:
            return [FileScan(self._hold())]
        if self._scans is None:
            self._scans = []
            for (opened, parser, columns), text in zip(self._files, self._texts, strict=True):
                plan = parser.plan(text, columns)
                gate = Gated(self.subject.instance, self._leads_gate and not self._scans)
                self._scans.append(FileScan(plan, opened.fd, len(text), gate))
        return self._scans

    def _hold(self) -> MemoryPlan:
        """Put the values to show into the buffer that the scanner reads."""
        values = array("q")
        gather(values, self._current_values())
        if self._memory_plan is None:
            self._memory_plan = MemoryPlan(values)
        self._memory_plan.values[:] = values
        return self._memory_plan

    def observe(self, values: Sequence[int]) -> bool:
        """Keep the values that the scanner read last; return whether it read all of them.

        The columns are sent by then, so a newborn cgroup now shows its real values.
        """
        for _ in range(self._rows_per_slice if self._ended_rows else 0):
            self._count_row(())
        self._newborn_rows = 0
        if self._memory_plan is not None:
            self._hold()
        was_read = not self._ended_rows and MISSING not in values
        if was_read:
            self.values = list(values)
        return was_read

    @property
    def is_newborn(self) -> bool:
        """Whether its counters show 0 for now."""
        return bool(self._newborn_rows)

    @property
    def needs_plan(self) -> bool:
        """Whether it ended and the scanner still has the plans of its files."""
        return bool(self._ended_rows) and self._memory_plan is None

    def _end(self) -> None:
        """Keep the last values of the counters; levels have no value after the end."""
        self._ended_rows = self._ended_rows or 1
        last = self.values or [None] * len(self.channels)
        self.values = [
            value if channel.kind is Kind.COUNTER else None
            for channel, value in zip(self.channels, last, strict=True)
        ]

    def close(self) -> None:
        for opened, _, _ in self._files:
            opened.close()
