"""A node's wall clock that is set while something is open there.

Findings are told by that clock, and a slice's number counts the seconds that really went by. Where
the two disagree somebody set the clock: what is open would end, or would last for hours, and go on
as a second finding. It is told by the clock it began with until nothing is open any more.
"""

from __future__ import annotations

from dataclasses import replace

from reveal_contract.wire import Message

_SET_NS = 500_000_000  # less is a clock that is slewed, or read a moment late


class ClockSteps:
    """Follows the slices of one node, in order."""

    def __init__(self) -> None:
        self._last: tuple[bytes, int, int] | None = None
        self._ahead_ns = 0

    def follow(self, message: Message, *, holds: bool) -> Message:
        """The slice by the clock that is kept while ``holds``, else as it is."""
        last, self._last = self._last, (message.boot, message.sequence, message.start_ns)
        if not holds or last is None or message.boot != last[0] or message.sequence <= last[1]:
            self._ahead_ns = 0
            return message
        passed_ns = (message.sequence - last[1]) * message.tick_us * 1000 * len(message.fast)
        set_by_ns = message.start_ns - last[2] - passed_ns
        if abs(set_by_ns) > _SET_NS:
            self._ahead_ns += set_by_ns
        if not self._ahead_ns:
            return message
        return replace(message, start_ns=message.start_ns - self._ahead_ns)
