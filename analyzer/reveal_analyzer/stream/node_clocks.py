"""Nodes whose wall clock is wrong: times of their findings are wrong, too.

A slice has the time of its node, and its entry in the stream that of Redis.  Slices can wait in a
collector while Redis is away, so the slice of a minute that waited least counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from reveal_analyzer.formatting import list_some
from reveal_analyzer.stream.consumer import id_ms
from reveal_analyzer.stream.received import Received
from reveal_analyzer.telemetry.degraded import Degradation

REASON = "NodeClockWrong"  # reason of the condition Degraded
_LIMIT_S = 60.0  # more than clocks that are synchronized ever differ, or slices wait
_SLICES = 60  # of which the one that waited least counts
_MOST_NAMED = 3
_UNITS = ((86_400.0, "d"), (3600.0, "h"), (60.0, "min"))


@dataclass
class _Clock:
    slices: int = 0
    least_s: float = 0.0  # of these, how much later one arrived than it ended
    behind_s: float = 0.0  # the least of the slices before these; below 0 the clock is ahead


class NodeClocks:
    """How far the clocks of nodes are behind the clock of Redis."""

    def __init__(self) -> None:
        self._clocks: dict[str, _Clock] = {}

    def add(self, received: Received) -> None:
        """Take a slice of a node."""
        clock = self._clocks.setdefault(received.node, _Clock())
        later_s = id_ms(received.id) / 1e3 - received.closed_s
        clock.least_s = min(later_s, clock.least_s) if clock.slices else later_s
        clock.slices += 1
        if clock.slices == _SLICES:
            clock.slices, clock.behind_s = 0, clock.least_s

    def forget(self, nodes: Iterable[str]) -> None:
        """Forget nodes that are not observed here any more."""
        for node in nodes:
            self._clocks.pop(node, None)

    def degradations(self) -> list[Degradation]:
        """Return which nodes have a wrong clock, those with the largest difference first."""
        wrong = {
            node: clock.behind_s
            for node, clock in self._clocks.items()
            if abs(clock.behind_s) > _LIMIT_S
        }
        if not wrong:
            return []
        worst = sorted(wrong, key=lambda node: (-abs(wrong[node]), node))
        named = list_some([_difference(node, wrong[node]) for node in worst], most=_MOST_NAMED)
        text = f"the times of findings are wrong: {named}; synchronize the clocks (NTP, chrony)"
        return [Degradation(REASON, len(wrong), text)]


def _difference(node: str, behind_s: float) -> str:
    """Return ``the clock of n1 is 3 h behind that of Redis``."""
    seconds = abs(behind_s)
    size, unit = next(each for each in _UNITS if seconds >= each[0])
    direction = "behind" if behind_s > 0 else "ahead of"
    return f"the clock of {node} is {seconds / size:.0f} {unit} {direction} that of Redis"
