"""The place of a slice among those of its node: next, after a gap, a repeat, or a new beginning.

Delivery is at least once and collectors restart, so a sequence number alone says too little: a
number at or below the last is a repeat if its time fits that number, else a new beginning.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from reveal_contract.wire import Message

REMEMBERED = 128  # slices; about what a stream keeps
_FITS_SLICES = 2  # how far a repeat's time may be from where its number puts it


@dataclass(frozen=True, slots=True)
class Place:
    """``gap`` is the number of slices missing before this one, 0 at a new beginning."""

    repeat: bool = False
    restarted: bool = False
    gap: int = 0


@dataclass
class Progress:
    """What has been accepted of one node."""

    boot: bytes = b""
    sequence: int = -1
    start_ns: int = 0
    _starts: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=REMEMBERED))

    def accept(self, message: Message) -> Place:
        """Where this slice belongs; unless it is a repeat it is the newest from now on."""
        if not self.boot:
            place = Place()
        elif message.boot != self.boot:
            place = Place(restarted=True)
        elif message.sequence > self.sequence:
            place = Place(gap=message.sequence - self.sequence - 1)
        elif self._repeats(message):
            return Place(repeat=True)
        else:
            place = Place(restarted=True)
        self._advance(message, place.restarted)
        return place

    def _repeats(self, message: Message) -> bool:
        if (message.sequence, message.start_ns) in self._starts:
            return True
        if message.start_ns > self.start_ns:
            return False
        slice_ns = max(1, message.tick_us * 1000 * len(message.fast))
        behind = (self.sequence - message.sequence) * slice_ns
        return abs(self.start_ns - behind - message.start_ns) <= _FITS_SLICES * slice_ns

    def _advance(self, message: Message, restarted: bool) -> None:
        if restarted:
            self._starts.clear()
        self.boot, self.sequence = message.boot, message.sequence
        self.start_ns = message.start_ns
        self._starts.append((message.sequence, message.start_ns))
