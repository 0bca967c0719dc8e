"""What the rows of one plan mean, and what is done to them before they go on."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from reveal_collector.native.scanner import NativeSlice
from reveal_collector.readers.plan import FileScan
from reveal_collector.readers.raw_slice import MISSING, gather
from reveal_collector.sampling.feed import Feed, RareFeed, Values
from reveal_contract.channels import Channel, ChannelTable

Channels = tuple[Channel, ...]


@dataclass(frozen=True)
class SourceColumns:
    """A source's columns in the rows of one plan; ``owner`` -1: read by Python."""

    feed: Feed
    shown: Channels
    column: int
    owner: int = -1


@dataclass(frozen=True)
class PlanView:
    """What the rows of one plan mean."""

    table: ChannelTable
    parts: tuple[SourceColumns, ...]  # fast ones, then slow ones
    fast: int  # how many of them are fast
    rare: tuple[tuple[RareFeed, Channels, int], ...]
    scans: dict[Feed, Sequence[FileScan] | None]
    hidden: dict[Feed, tuple[int, ...]]  # columns of a feed that show 0
    slowdown_factor: int
    broken: frozenset[Feed]

    @cached_property
    def asked(self) -> tuple[SourceColumns, ...]:
        """Those that something must be asked of though all went well."""
        return tuple(
            part for part in self.parts
            if part.feed.stale or (part.owner < 0 and not part.shown)
        )  # fmt: skip

    @cached_property
    def watched(self) -> tuple[tuple[SourceColumns, bool], ...]:
        """Those whose sources want to know what was read of them; and whether they are fast."""
        return tuple(
            (part, place < self.fast) for place, part in enumerate(self.parts)
            if part.feed.watching is not None
        )  # fmt: skip

    @cached_property
    def read_here(self) -> tuple[SourceColumns, ...]:
        """The slow ones that have no plan."""
        return tuple(part for part in self.parts[self.fast :] if part.shown and part.owner < 0)


def note_spent(view: PlanView, taken: NativeSlice) -> None:
    """What each source's files took; where a source failed the time means nothing."""
    owners = len(taken.flags)
    for place, part in enumerate(view.parts):
        if part.owner >= 0 and not taken.flags[part.owner]:
            spent = [ns for ns in taken.spent[part.owner :: owners].tolist() if ns]
            if place >= view.fast and spent:  # a slow source's files may be ticks apart
                spent = [sum(spent)]
            part.feed.note(spent)


def latest(rows: memoryview[int], newest: memoryview[int], columns: slice) -> list[int]:
    """Of some columns the newest values that are one."""
    row, width = newest[columns].tolist(), len(newest)
    for at, value in enumerate(row if MISSING in row else ()):
        if value == MISSING:
            older = reversed(rows[columns.start + at :: width].tolist())
            row[at] = next((value for value in older if value != MISSING), MISSING)
    return row


def hide(view: PlanView, taken: NativeSlice) -> None:
    """What a source hides of itself reads 0."""
    width = len(view.table.fast)
    for part, fast in view.watched:
        for at in view.hidden.get(part.feed, ()):
            if fast:
                taken.fast[part.column + at :: width] = array("q", bytes(8 * len(taken.lateness)))
            else:
                taken.slow[part.column + at] = 0


def put(row: memoryview[int], column: int, values: Values) -> None:
    cells = array("q")
    gather(cells, values)
    row[column : column + len(cells)] = cells
