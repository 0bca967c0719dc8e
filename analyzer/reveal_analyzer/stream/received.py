"""What the reader of the streams delivers, and what it counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from reveal_contract import wire
from reveal_contract.channels import ChannelTable


class Received(NamedTuple):
    """One slice of one node.

    ``gap`` is the number of slices missing before it.  ``restarted``: the node booted, or its
    collector restarted, since the slice before.  ``history``: the last owner of the shard analyzed
    it; it only fills the windows, and nothing of it may be reported.
    """

    node: str
    message: wire.Message
    table: ChannelTable
    data: bytes
    id: bytes
    shard: int
    gap: int = 0
    restarted: bool = False
    history: bool = False

    @property
    def closed_s(self) -> float:
        """When the slice was complete, at its last tick, in seconds since the epoch."""
        message = self.message
        return message.start_ns / 1e9 + (len(message.fast) - 1) * message.tick_us / 1e6


@dataclass
class StreamCounts:
    """Counts since the reader started."""

    received: int = 0
    missing: int = 0  # never arrived
    repeated: int = 0
    restarts: int = 0
    refused: int = 0  # not decodable, or its table was never announced
    trimmed: int = 0  # removed from the stream before they were read or acknowledged
