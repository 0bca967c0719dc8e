"""The slices whose table is not announced yet, those of each node in order."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from reveal_analyzer.stream.channel_tables import ChannelTables
from reveal_analyzer.stream.consumer import StreamEntry
from reveal_analyzer.stream.kept_tables import DecodableTable

MAX_WAITING = 4096  # slices; at 5 KB each they hold 20 MB
MAX_OF_NODE = 256
WAIT_SECONDS = 60.0
# A collector announces a table before the slices that need it, so nothing waits for long, unless
# Redis lost the table, or somebody else wrote the slice.
HOLD_SECONDS = 3.0


@dataclass(frozen=True)
class WaitingSlice:
    """A message as it arrived: 5 KB, decoded it would be ten times that."""

    entry: StreamEntry
    table: bytes
    since: float


class WaitingSlices:
    """Slices whose table is not known, limited in number and time.

    A slice that waits holds back those of its node that follow, so that their order stays, but for
    ``HOLD_SECONDS`` only: one slice whose table never comes must not silence its node.
    """

    def __init__(self) -> None:
        self._nodes: dict[str, deque[WaitingSlice]] = {}
        self._count = 0

    def __contains__(self, node: str) -> bool:
        return node in self._nodes

    def __len__(self) -> int:
        return self._count

    def add(self, entry: StreamEntry, node: str, table: bytes) -> None:
        parked = WaitingSlice(entry, table, time.monotonic())
        self._nodes.setdefault(node, deque()).append(parked)
        self._count += 1

    def needed_tables(self) -> dict[bytes, list[str]]:
        """Return the tables that could let a slice go on, with the nodes that wait for them."""
        blocking_since = time.monotonic() - HOLD_SECONDS
        needed: dict[bytes, dict[str, None]] = {}
        for node, line in self._nodes.items():
            for parked in line:
                needed.setdefault(parked.table, {})[node] = None
                if parked.since >= blocking_since:  # it holds back the rest
                    break
        return {table: list(nodes) for table, nodes in needed.items()}

    def overdue(self, tables: ChannelTables) -> list[WaitingSlice]:
        """Remove and return slices that waited too long for their table, or are over a limit."""
        oldest = time.monotonic() - WAIT_SECONDS
        out: list[WaitingSlice] = []
        for node, line in list(self._nodes.items()):
            while self._is_without_table(node, tables) and (
                line[0].since < oldest or len(line) > MAX_OF_NODE
            ):
                out.append(self._pop(node))
        return out + self._excess(tables)

    def _excess(self, tables: ChannelTables) -> list[WaitingSlice]:
        """Remove and return what is over the limit of all, of the nodes with most slices first."""
        out: list[WaitingSlice] = []
        if self._count <= MAX_WAITING:
            return out
        for node in sorted(self._nodes, key=lambda node: -len(self._nodes[node])):
            while self._count > MAX_WAITING and self._is_without_table(node, tables):
                out.append(self._pop(node))
        return out

    def ready(self, tables: ChannelTables, most: int) -> list[tuple[WaitingSlice, DecodableTable]]:
        """Remove and return slices whose table is known now, those of each node in order."""
        blocking_since = time.monotonic() - HOLD_SECONDS
        out: list[tuple[WaitingSlice, DecodableTable]] = []
        for node, line in list(self._nodes.items()):
            overtaken: list[WaitingSlice] = []
            while line and len(out) < most:
                if (known := tables.get(line[0].table)) is not None:
                    out.append((line.popleft(), known))
                    self._count -= 1
                elif line[0].since < blocking_since:
                    overtaken.append(line.popleft())
                else:
                    break
            line.extendleft(reversed(overtaken))
            if not line:
                del self._nodes[node]
        return out

    def forget(self, shards: Iterable[int]) -> None:
        """Drop the slices of shards that another analyzer reads now."""
        gone = set(shards)
        for node, line in list(self._nodes.items()):
            if line[0].entry.shard in gone:
                self._count -= len(line)
                del self._nodes[node]

    def _is_without_table(self, node: str, tables: ChannelTables) -> bool:
        """Whether the first slice of a node waits for a table that is not known."""
        line = self._nodes.get(node)
        return line is not None and tables.get(line[0].table) is None

    def _pop(self, node: str) -> WaitingSlice:
        line = self._nodes[node]
        parked = line.popleft()
        self._count -= 1
        if not line:
            del self._nodes[node]
        return parked
