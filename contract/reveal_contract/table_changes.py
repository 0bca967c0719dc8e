"""A channel table as its changes of another one.

When a pod comes or goes, a collector announces these instead of the whole table: some hundred bytes
instead of tens of kilobytes.  The base is always a table that was announced whole, so a reader
needs at most two announcements, whatever happened between them.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from reveal_contract.channels import (
    MAX_CHANNELS,
    TABLE_VERSION,
    Channel,
    ChannelTable,
    TableError,
    announced_object,
    announced_row,
    canonical_json,
    channel_of_row,
    decompressed,
)

_KEY_BYTES = 8

Span = tuple[int, int]  # channels of the base that stay: the first, and the one after the last
Edit = Span | Channel


@dataclass(frozen=True)
class TableChanges:
    """What to take from ``base`` (a table's key), and what to add, in the order of the new table.

    Spans of ``fast`` refer to the fast channels of the base, those of ``slow`` to its slow ones.
    """

    base: bytes
    fast: tuple[Edit, ...]
    slow: tuple[Edit, ...]

    @classmethod
    def between(cls, base: ChannelTable, table: ChannelTable) -> TableChanges:
        """Return the changes that make ``table`` of ``base``."""
        return cls(base.key, _edits(base.fast, table.fast), _edits(base.slow, table.slow))

    def applied(self, base: ChannelTable) -> ChannelTable:
        """Return the new table; raise ``TableError`` if the changes are not those of ``base``."""
        if base.key != self.base:
            raise TableError(f"changes are of table {self.base.hex()}, not of {base.key.hex()}")
        # before anything is copied: a few spans could ask for any number of channels
        if sum(map(_length, chain(self.fast, self.slow))) > MAX_CHANNELS:
            raise TableError(f"changed channel table has over {MAX_CHANNELS} channels")
        return ChannelTable(_edited(base.fast, self.fast), _edited(base.slow, self.slow))

    def announcement(self) -> bytes:
        """Return the changes as they are announced: JSON, compressed."""
        rows = {
            "version": TABLE_VERSION,
            "base": self.base.hex(),
            "fast": [_row(edit) for edit in self.fast],
            "slow": [_row(edit) for edit in self.slow],
        }
        return zlib.compress(canonical_json(rows), 1)

    @classmethod
    def from_announcement(cls, data: bytes) -> TableChanges:
        """Parse ``announcement``; raise ``TableError`` for anything else."""
        rows = announced_object(decompressed(data))
        fast, slow = (_parsed_edits(rows.get(part), part) for part in ("fast", "slow"))
        return cls(_parsed_key(rows.get("base")), fast, slow)


def _edits(base: Sequence[Channel], table: Sequence[Channel]) -> tuple[Edit, ...]:
    """Return the longest spans of ``base`` that follow each other in ``table``, and new channels.

    Channels are compared as announced: two of them may differ in ``members`` only.
    """
    positions = {_as_announced(channel): index for index, channel in enumerate(base)}
    out: list[Edit] = []
    for channel in table:
        index = positions.get(_as_announced(channel))
        last = out[-1] if out else None
        if index is None:
            out.append(channel)
        elif isinstance(last, tuple) and last[1] == index:
            out[-1] = (last[0], index + 1)
        else:
            out.append((index, index + 1))
    return tuple(out)


def _as_announced(channel: Channel) -> tuple[str | float, ...]:
    """Return what is equal for channels with the same row."""
    scale = float(channel.scale)
    return channel.metric, channel.instance, channel.kind, scale, channel.lane, channel.later


def _edited(base: tuple[Channel, ...], edits: Sequence[Edit]) -> tuple[Channel, ...]:
    return tuple(chain.from_iterable(_taken(base, edit) for edit in edits))


def _taken(base: tuple[Channel, ...], edit: Edit) -> Sequence[Channel]:
    if isinstance(edit, Channel):
        return (edit,)
    first, end = edit
    if end > len(base):
        raise TableError(f"changes need channel {end - 1} of a table with {len(base)}")
    return base[first:end]


def _length(edit: Edit) -> int:
    return 1 if isinstance(edit, Channel) else edit[1] - edit[0]


def _row(edit: Edit) -> Sequence[Any]:
    return announced_row(edit) if isinstance(edit, Channel) else edit


def _parsed_edits(rows: object, part: str) -> tuple[Edit, ...]:
    if not isinstance(rows, list) or len(rows) > MAX_CHANNELS:
        raise TableError(f"changes of a channel table have no valid list {part!r}")
    return tuple(_parsed_edit(row) for row in rows)


def _parsed_edit(row: object) -> Edit:
    match row:
        case [int() as first, int() as end] if 0 <= first < end:
            return first, end
    return channel_of_row(row)


def _parsed_key(text: object) -> bytes:
    try:
        key = bytes.fromhex(text) if isinstance(text, str) else b""
    except ValueError:
        key = b""
    if len(key) != _KEY_BYTES:
        raise TableError(f"changes of a channel table: {ascii(text)[:40]} is not a table's key")
    return key
