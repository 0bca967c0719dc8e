"""The samples of a finding, from and to a recording: pure.

They are a recording of one node that has some of its channels.  Two notes belong to it: the finding
(``finding``), and the subjects that it names (``subjects``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from reveal_analyzer.evidence.excerpt import encode, single_sample
from reveal_analyzer.evidence.timing import AROUND_S, Detail, Span
from reveal_contract import wire
from reveal_contract.channels import ChannelTable
from reveal_contract.envelope import unseal
from reveal_contract.recording import RecordingBuffer, RecordingReader
from reveal_contract.wire import Message

MOST_STRIDE = 4096
_SHORTER = (30, 15, 5, 1)  # seconds around onset and end, if it does not fit otherwise

Notes = tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class KeptSlice:
    """A slice as it is kept: its begin, its number of ticks, its bytes and their table."""

    start_ns: int
    ticks: int
    data: bytes
    table: ChannelTable

    @classmethod
    def of(cls, message: Message, table: ChannelTable) -> KeptSlice:
        """Return a slice as it is kept."""
        return cls(message.start_ns, len(message.fast), encode(message, table), table)

    def single_sample(self) -> KeptSlice:
        """Return it with a single tick."""
        if self.ticks == 1:
            return self
        message = wire.decode(self.data, wire.gauges(self.table))
        return KeptSlice.of(single_sample(message, self.table), self.table)


@dataclass(frozen=True)
class Samples:
    """The slices of a finding in the order of time."""

    slices: tuple[KeptSlice, ...] = ()

    @classmethod
    def from_recording(cls, data: bytes) -> Samples:
        """Parse ``to_recording``; raises ``RecordingError`` or ``WireError`` for anything else."""
        return cls(tuple(_slices(data)))

    def to_recording(self, notes: Notes = ()) -> bytes:
        """Return the recording."""
        buffer = RecordingBuffer()
        for note in notes:
            buffer.note(dict(note))
        for each in self.slices:
            buffer.message(each.data, each.table)
        return buffer.to_bytes()

    @property
    def newest_ns(self) -> int | None:
        """The begin of the newest slice; None without one."""
        return self.slices[-1].start_ns if self.slices else None

    def since_replaced(self, since_ns: int, newer: Iterable[KeptSlice]) -> Samples:
        """Return the samples until ``since_ns`` and those after it of ``newer``."""
        kept = {each.start_ns: each for each in self.slices if each.start_ns <= since_ns}
        kept |= {each.start_ns: each for each in newer if each.start_ns > since_ns}
        return Samples(tuple(kept[start_ns] for start_ns in sorted(kept)))

    def thinned(self, span: Span) -> Samples:
        """Return what is kept of each slice."""
        newest_ns = self.newest_ns or 0
        details = ((each, span.detail(each.start_ns, newest_ns)) for each in self.slices)
        return Samples(
            tuple(
                each if detail is Detail.TICKS else each.single_sample()
                for each, detail in details
                if detail is not Detail.NOTHING
            )
        )


def fitted(
    samples: Samples, span: Span, notes: Notes, encoded: Callable[[bytes], bytes], most_bytes: int
) -> tuple[Samples, bytes]:
    """Return the samples that fit into ``most_bytes``, and their recording as the store has it.

    What lies between onset and end becomes sparser first; then less around them is kept whole.
    """
    result = samples.thinned(span)
    data = encoded(result.to_recording(notes))
    for sparser in _sparser(span):
        if len(data) <= most_bytes:
            break
        result = result.thinned(sparser)
        data = encoded(result.to_recording(notes))
    return result, data


def _sparser(span: Span) -> Iterable[Span]:
    stride = 1
    while stride < MOST_STRIDE:
        stride *= 2
        yield replace(span, stride=stride, around_s=AROUND_S)
    for around_s in _SHORTER:
        yield replace(span, stride=MOST_STRIDE, around_s=around_s)


def _slices(data: bytes) -> Iterable[KeptSlice]:
    for entry in RecordingReader(Path("evidence"), data):
        if entry.table is not None:
            head, _ = unseal(entry.data)
            yield KeptSlice(head.start_ns, head.ticks, entry.data, entry.table)
