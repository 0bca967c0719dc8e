"""A recording by node: a first pass finds the slices of each, which are then read by themselves.

To read the whole file for each node would take hours with hundreds of nodes.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from reveal_cli.errors import CliError
from reveal_cli.recordings import readable, subjects_of_notes
from reveal_contract.channels import ChannelTable
from reveal_contract.recording import RecordingEntry, RecordingReader
from reveal_contract.subjects import Identity
from reveal_contract.wire import Message, WireError, decode, gauges, peek


class RecordingIndex:
    """Where the slices of each node are in a file; raises ``CliError`` as ``Slices`` does.

    It keeps eight bytes of each slice, the channel tables, and the notes on subjects.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.reader = RecordingReader(path)
        self.tables: dict[bytes, ChannelTable] = {}
        self._positions: dict[str, array[int]] = {}
        self._notes: dict[str, list[dict[str, Any]]] = {}
        with readable(path):
            for entry in self.reader:
                self._add(entry)

    @cached_property
    def nodes(self) -> Sequence[str]:
        """The nodes that have a slice, by name."""
        return sorted(self._positions)

    def subjects(self, node: str) -> list[Identity]:
        """Return the subjects that the recording has of a node."""
        return subjects_of_notes(self._notes.get(node, ()), self.path)

    def slices(self, node: str) -> NodeSlices:
        """Return the slices of a node."""
        return NodeSlices(self, self._positions[node])

    def _add(self, entry: RecordingEntry) -> None:
        if entry.note is not None:
            self._add_note(entry.note)
        elif entry.table is not None:
            try:
                node, _ = peek(entry.data)
            except WireError as error:
                raise damaged(self.path, entry.position, error) from None
            self.tables[entry.table.key] = entry.table
            self._positions.setdefault(node, array("Q")).append(entry.position)

    def _add_note(self, note: dict[str, Any]) -> None:
        node = note.get("node")
        if "subjects" in note and isinstance(node, str):
            self._notes.setdefault(node, []).append(note)


@dataclass(frozen=True)
class NodeSlices:
    """The slices of a node; each iteration reads these again, and nothing else of the file."""

    index: RecordingIndex
    positions: array[int]

    def __iter__(self) -> Iterator[tuple[Message, ChannelTable]]:
        reader, tables = self.index.reader, self.index.tables
        with readable(self.index.path), reader.open() as file:
            for position in self.positions:
                key, data = reader.read_message(file, position)
                yield self._decoded(data, tables[key], position), tables[key]

    def _decoded(self, data: bytes, table: ChannelTable, position: int) -> Message:
        try:
            return decode(data, gauges(table))
        except WireError as error:
            raise damaged(self.index.path, position, error) from None


def damaged(path: Path, position: int, error: WireError) -> CliError:
    """Return the error for a message that cannot be read."""
    return CliError(f"{path}: message from byte {position} on: {error}")
