"""The history of a node as a recording, which all commands read: pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from reveal_analyzer.node_history.codec import Part, parts
from reveal_contract import wire
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Lane
from reveal_contract.recording import RecordingBuffer
from reveal_contract.wire import Message

_TICK_US = 1_000_000

Slice = tuple[Message, ChannelTable]


@dataclass
class _Writer:
    """The parts of one writer, and the channels that it named so far."""

    channels: list[Channel] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)

    def add(self, part: Part) -> None:
        """Add the next part; one that refers to a part that was lost is left out."""
        if part.known == len(self.channels):
            self.channels += part.added
            self.parts.append(part)


def slices(hours: Iterable[bytes], begin_ns: int, end_ns: int) -> list[Slice]:
    """Return the seconds that begin in a span, in the order of time; each has a single tick.

    ``hours`` are the bytes of hours.  A second that two analyzers kept is returned once.
    """
    found: dict[int, Slice] = {}
    for data in hours:
        writers: dict[str, _Writer] = {}
        for part in parts(data):
            writers.setdefault(part.writer, _Writer()).add(part)
        for writer in writers.values():
            for each in _slices(writer):
                if begin_ns <= each[0].start_ns <= end_ns:
                    found[each[0].start_ns] = each
    return [found[start_ns] for start_ns in sorted(found)]


def recording(found: Iterable[Slice]) -> bytes:
    """Return slices as a recording."""
    buffer = RecordingBuffer()
    for message, table in found:
        buffer.message(wire.encode(message, wire.gauges(table)), table)
    return buffer.to_bytes()


def _slices(writer: _Writer) -> Iterator[Slice]:
    lanes = np.array([channel.lane is Lane.FAST for channel in writer.channels], np.bool_)
    fast, slow = np.flatnonzero(lanes), np.flatnonzero(~lanes)
    table = ChannelTable(
        tuple(writer.channels[index] for index in fast),
        tuple(writer.channels[index] for index in slow),
    )
    for part in writer.parts:
        absent = len(writer.channels) - part.width
        steps = np.pad(part.steps, ((0, 0), (0, absent)))
        missing = np.pad(part.missing, ((0, 0), (0, absent)), constant_values=True)
        for index, start_ns in enumerate(part.starts_ns):
            message = Message(
                part.node, part.boot, int(part.sequences[index]), int(start_ns), _TICK_US,
                table.key, steps[index : index + 1, fast], steps[index, slow],
                missing[index : index + 1, fast], missing[index, slow],
            )  # fmt: skip
            yield message, table
