"""Budget of the ledger's programs: more than 1 % of the host is too much for now."""

from __future__ import annotations

from collections import deque

from reveal_contract.time_units import NS_PER_SECOND

LIMIT = 0.01  # of the CPU time of the host
_WINDOW_NS = 10 * NS_PER_SECOND
SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 20.0, 1800.0
# of programs within the limit after a pause: what exceeds it later is something new.  To load them
# takes half a second of CPU time, so storms that follow each other sooner have longer pauses.
_UNDISTURBED_S = 60.0


class CostGuard:
    """Compares the cost of the programs over about ten seconds with the limit."""

    def __init__(self, cpus: int, limit: float = LIMIT, window_ns: int = _WINDOW_NS) -> None:
        self.share = 0.0
        self._cpus, self._limit, self._window_ns = cpus, limit, window_ns
        self._readings: deque[tuple[int, int]] = deque()

    def is_exceeded(self, now_ns: int, cost_ns: int) -> bool:
        """Return whether the programs took more than the limit, after a reading of their cost."""
        readings = self._readings
        readings.append((now_ns, cost_ns))
        while len(readings) > 2 and now_ns - readings[1][0] >= self._window_ns:
            readings.popleft()
        elapsed = now_ns - readings[0][0]
        if elapsed < self._window_ns:
            return False
        self.share = (cost_ns - readings[0][1]) / elapsed / self._cpus
        return self.share > self._limit


class Pause:
    """How long the programs stay away each time they cost too much: longer while that lasts.

    Most storms of switches are short.  What lasts exceeds the limit again within ten seconds.
    """

    def __init__(self, shortest_s: float = SHORTEST_PAUSE_S) -> None:
        self._shortest_s = self._next_s = shortest_s
        self._ended_s: float | None = None

    def begin(self, now_s: float) -> float:
        """Return the length of a pause that begins now, in seconds."""
        if self._ended_s is not None and now_s - self._ended_s > _UNDISTURBED_S:
            self._next_s = self._shortest_s
        length_s, self._next_s = self._next_s, min(2 * self._next_s, LONGEST_PAUSE_S)
        self._ended_s = now_s + length_s
        return length_s
