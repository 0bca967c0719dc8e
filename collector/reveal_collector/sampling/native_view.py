"""What the rows of one native plan mean, and the changes made to them before delivery."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from reveal_collector.native.scanner import NativeSlice
from reveal_collector.readers.plan import FileScan
from reveal_collector.readers.raw_slice import MISSING, gather
from reveal_collector.sampling.feed import Feed, Values
from reveal_collector.sampling.rare_feed import RareFeed
from reveal_contract.channels import Channel, ChannelTable

Channels = tuple[Channel, ...]
Scans = dict[Feed, Sequence[FileScan] | None]


@dataclass(frozen=True)
class SourceColumns:
    """The columns of a source in the rows of one plan, from index ``column`` on.

    ``owner`` is the number of the source in the plan; -1 means that Python reads the source.
    """

    feed: Feed
    channels: Channels
    column: int
    owner: int = -1


@dataclass(frozen=True)
class PlanView:
    """What the rows of one plan mean."""

    table: ChannelTable
    parts: tuple[SourceColumns, ...]  # fast ones, then slow ones
    fast: int  # how many of them are fast
    rare: tuple[tuple[RareFeed, Channels, int], ...]
    scans: Scans
    hidden: dict[Feed, tuple[int, ...]]  # columns of a feed that are reported as 0
    slowdown_factor: int
    broken: frozenset[Feed]

    @cached_property
    def polled(self) -> tuple[SourceColumns, ...]:
        """Sources to check after every slice, even if all their files were read."""
        return tuple(
            part for part in self.parts
            if part.feed.checks_layout or (part.owner < 0 and not part.channels)
        )  # fmt: skip

    @cached_property
    def observed(self) -> tuple[tuple[SourceColumns, bool], ...]:
        """Sources that observe their own values, each with whether it is fast."""
        return tuple(
            (part, index < self.fast) for index, part in enumerate(self.parts)
            if part.feed.observer is not None
        )  # fmt: skip

    @cached_property
    def read_by_python(self) -> tuple[SourceColumns, ...]:
        """Slow sources without a plan."""
        return tuple(part for part in self.parts[self.fast :] if part.channels and part.owner < 0)


def record_reads(view: PlanView, taken: NativeSlice) -> None:
    """Record how long the files of each source took to read; skip sources with an error."""
    owners = len(taken.flags)
    for index, part in enumerate(view.parts):
        if part.owner >= 0 and not taken.flags[part.owner]:
            spent = [ns for ns in taken.spent[part.owner :: owners].tolist() if ns]
            if index >= view.fast and spent:  # files of a slow source may be ticks apart
                spent = [sum(spent)]
            part.feed.record_reads(spent)


def latest(rows: memoryview[int], newest: memoryview[int], columns: slice) -> list[int]:
    """Return the newest value of each column that is not missing in this slice."""
    row, width = newest[columns].tolist(), len(newest)
    for index, value in enumerate(row if MISSING in row else ()):
        if value == MISSING:
            older = reversed(rows[columns.start + index :: width].tolist())
            row[index] = next((value for value in older if value != MISSING), MISSING)
    return row


def hide(view: PlanView, taken: NativeSlice) -> None:
    """Set the columns that a source hides to 0."""
    width = len(view.table.fast)
    for part, fast in view.observed:
        for index in view.hidden.get(part.feed, ()):
            column = part.column + index
            if fast:
                taken.fast[column::width] = array("q", bytes(8 * len(taken.lateness)))
            else:
                taken.slow[column] = 0


def put(row: memoryview[int], column: int, values: Values) -> None:
    """Write values into a row from this column on."""
    cells = array("q")
    gather(cells, values)
    row[column : column + len(cells)] = cells
