"""The position of a slice in the sequence of its node: next, after a gap, repeat or restart.

Delivery is at least once, and collectors restart.  So a sequence number alone is not enough: one at
or below the last is a repeat if its time fits that number, else the sequence started again.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from reveal_contract.wire import Message

REMEMBERED = 128  # slices; about as many as a stream keeps of a node
MOST_GAP = 86_400  # slices, a day: what is farther is another sequence, and no loss
_TOLERANCE = 2  # slices between the time of a repeat and the time that its number implies


@dataclass(frozen=True, slots=True)
class SlicePosition:
    """``gap`` is the number of slices missing before this one, 0 after a restart."""

    repeat: bool = False
    restarted: bool = False
    gap: int = 0


@dataclass
class NodeSequence:
    """The accepted slices of one node."""

    boot: bytes = b""
    sequence: int = -1
    start_ns: int = 0
    entry_ms: int = 0  # when it arrived, of the id of its stream entry; 0 is unknown
    _starts: deque[tuple[int, int]] = field(default_factory=lambda: deque(maxlen=REMEMBERED))

    @classmethod
    def after(cls, boot: bytes, sequence: int, start_ns: int) -> NodeSequence:
        """Return the sequence of a node whose last accepted slice was this one."""
        found = cls(boot, sequence, start_ns)
        found._starts.append((sequence, start_ns))
        return found

    def accept(self, message: Message) -> SlicePosition:
        """Return the position of a slice; unless it is a repeat it becomes the newest."""
        if not self.boot:
            position = SlicePosition()
        elif message.boot != self.boot or message.sequence > self.sequence + MOST_GAP:
            position = SlicePosition(restarted=True)
        elif message.sequence > self.sequence:
            position = SlicePosition(gap=message.sequence - self.sequence - 1)
        elif self._repeats(message):
            return SlicePosition(repeat=True)
        else:
            position = SlicePosition(restarted=True)
        self._advance(message, position.restarted)
        return position

    def _repeats(self, message: Message) -> bool:
        if (message.sequence, message.start_ns) in self._starts:
            return True
        if message.start_ns > self.start_ns:
            return False
        slice_ns = max(1, message.tick_us * 1000 * len(message.fast))
        behind = (self.sequence - message.sequence) * slice_ns
        return abs(self.start_ns - behind - message.start_ns) <= _TOLERANCE * slice_ns

    def _advance(self, message: Message, restarted: bool) -> None:
        if restarted:
            self._starts.clear()
        self.boot, self.sequence = message.boot, message.sequence
        self.start_ns = message.start_ns
        self._starts.append((message.sequence, message.start_ns))
