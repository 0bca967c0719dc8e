"""Steps of a node's wall clock while a finding is open there.

Findings have times of that clock, and the sequence number of a slice counts the seconds that really
passed.  Where the two disagree, somebody set the clock.  Then an open finding would end, or seem to
last for hours and continue as a second one.  So times stay on the clock that the finding began with
until no finding is open.
"""

from __future__ import annotations

from dataclasses import replace

from reveal_analyzer.state.tree import StateTree, integer, octets
from reveal_contract.wire import Message

_STEP_NS = 500_000_000  # a smaller difference is a slewed clock, or one that was read late


class ClockSteps:
    """Times of the slices of one node; takes them in order."""

    def __init__(self) -> None:
        self._last: tuple[bytes, int, int] | None = None
        self._ahead_ns = 0

    def save(self) -> StateTree:
        """Return the last slice, and how far the clock was set ahead."""
        boot, sequence, start_ns = self._last or (b"", 0, 0)
        return {
            "boot": boot.hex(), "sequence": sequence, "start": start_ns, "ahead": self._ahead_ns
        }  # fmt: skip

    def restore(self, tree: StateTree) -> None:
        """Continue after the last slice of another process; raises ``StateError``."""
        boot = octets(tree, "boot")
        start_ns = integer(tree, "start", least=-(2**63))
        self._last = (boot, integer(tree, "sequence", most=2**64 - 1), start_ns) if boot else None
        self._ahead_ns = integer(tree, "ahead", least=-(2**63))

    def adjust(self, message: Message, *, finding_open: bool) -> Message:
        """Return the slice on the earlier clock while ``finding_open``, else as it is."""
        last, self._last = self._last, (message.boot, message.sequence, message.start_ns)
        if (
            not finding_open
            or last is None
            or message.boot != last[0]
            or message.sequence <= last[1]
        ):
            self._ahead_ns = 0
            return message
        passed_ns = (message.sequence - last[1]) * message.tick_us * 1000 * len(message.fast)
        step_ns = message.start_ns - last[2] - passed_ns
        if abs(step_ns) > _STEP_NS:
            self._ahead_ns += step_ns
        if not self._ahead_ns:
            return message
        return replace(message, start_ns=message.start_ns - self._ahead_ns)
