"""Builds the plans of the native scanner from the feeds of a sampler."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from reveal_collector.native.scanner import EVERY_TICK, NativePlan, RowLayout, ScanEntry
from reveal_collector.readers.plan import BACK_OFF, QUIET, FileScan
from reveal_collector.sampling.feed import Feed
from reveal_collector.sampling.native_view import PlanView, Scans, SourceColumns
from reveal_collector.sampling.rare_feed import RareFeed
from reveal_contract.channels import ChannelTable

_MAX_ROOM = 1 << 12
_GATES_PER_TICK = 16  # reading their files takes about 0.4 ms


class NativePlanner:
    """Plans for the feeds in these lists, which the sampler changes in place."""

    def __init__(
        self, fast: list[Feed], slow: list[Feed], rare: list[RareFeed], ticks: int
    ) -> None:
        self._fast, self._slow, self._rare, self._ticks = fast, slow, rare, ticks
        self._room: dict[Feed, int] = {}

    def grow(self, feed: Feed) -> None:
        """Provide more room for the texts of a source whose files have grown."""
        self._room[feed] = min(4 * self._room.get(feed, 1), _MAX_ROOM)

    def scans(self) -> Scans:
        """Return the scans of every source, or None where the source is broken or has none."""
        return {feed: _table_scans(feed) for feed in (*self._fast, *self._slow)}

    def plan(
        self,
        table: ChannelTable,
        hidden: dict[Feed, tuple[int, ...]],
        slowdown_factor: int,
        broken: frozenset[Feed],
    ) -> tuple[NativePlan, PlanView]:
        """Return the plan for a table, and the view that describes its rows."""
        scans = self.scans()
        entries: list[ScanEntry] = []
        parts = self._lay_out(self._fast, scans, entries)
        fast = len(parts)
        parts += self._lay_out(self._slow, scans, entries)
        column = sum(len(part.channels) for part in parts[fast:])
        rare = []
        for feed in self._rare:
            rare.append((feed, feed.table_columns, column))
            column += len(feed.table_columns)
        view = PlanView(
            table, tuple(parts), fast, tuple(rare), scans, hidden, slowdown_factor, broken
        )
        owners = 1 + max((part.owner for part in parts), default=-1)
        layout = RowLayout(
            len(table.fast), len(table.slow), owners, QUIET, BACK_OFF * slowdown_factor
        )
        return NativePlan(sorted(entries, key=lambda entry: entry.slot), layout), view

    def _lay_out(
        self, feeds: Sequence[Feed], scans: Scans, entries: list[ScanEntry]
    ) -> list[SourceColumns]:
        """Return the columns of one lane by source; append what the thread reads to ``entries``."""
        parts, column = [], 0
        owners = 1 + max((entry.owner for entry in entries), default=-1)
        for index, feed in enumerate(feeds):
            owner, found = -1, scans[feed]
            if found is not None:
                owner, owners = owners, owners + 1
                entry = ScanEntry(owner, found, column, EVERY_TICK, self._room.get(feed, 1))
                slot = index * self._ticks // max(1, len(self._slow))
                entries += [entry] if feeds is self._fast else self._spread(entry, slot)
            parts.append(SourceColumns(feed, feed.table_columns, column, owner))
            column += len(feed.table_columns)
        return parts

    def _spread(self, entry: ScanEntry, slot: int) -> Iterator[ScanEntry]:
        """Spread the files of a slow source over several ticks, by groups of cgroups.

        Files of one gate stay together: the kernel aggregates the counters of a tree for the
        first reader, and the next ones find them fresh.  One cgroup a tick would cost more.
        """
        column = entry.column
        groups = groupby(entry.scans, lambda scan: scan.gate and scan.gate.key)
        for number, (_, group) in enumerate(groups):
            scans = list(group)
            tick = (slot + number // _GATES_PER_TICK) % self._ticks
            yield replace(entry, scans=scans, column=column, slot=tick)
            column += sum(scan.plan.width for scan in scans)


def _table_scans(feed: Feed) -> Sequence[FileScan] | None:
    """Return the scans of a source if they give exactly its columns in the table."""
    found = feed.scans()
    width = sum(scan.plan.width for scan in found or ())
    return found if found is not None and width == len(feed.table_columns) else None
