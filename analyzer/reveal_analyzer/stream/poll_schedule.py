"""Which streams to read next: active ones often, quiet ones rarely, a backlog separately."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

from reveal_analyzer.stream.consumer import entries_per_stream

QUIET_POLLS = 10  # a quiet shard is read in every tenth poll: 64 in each would take 0.5 % CPU
ACTIVE_SECONDS = 5.0


class PollSchedule:
    """Pure bookkeeping over the numbers of shards.

    A stream that gave as much as was requested may hold more.  It is *behind*, and is read
    separately, as much at once as fits: then the slices of each node arrive together, which takes
    less CPU time when there is too much to do.  Each stream that is behind is read once, then all
    others.
    """

    def __init__(self) -> None:
        self._active: dict[int, float] = {}
        self._behind: set[int] = set()
        self._alone: deque[int] = deque()  # of those, the ones to read before all others
        self._polls = 0

    @property
    def behind(self) -> bool:
        """Whether there may be more to read at once."""
        return bool(self._behind)

    def next(self, shards: set[int], now: float) -> list[int]:
        """Return which of ``shards`` to read now; a single one if it is behind."""
        self._behind &= shards
        while self._alone:
            if (number := self._alone.popleft()) in self._behind:
                return [number]
        turn = self._polls % QUIET_POLLS
        self._polls += 1
        self._alone.extend(sorted(self._behind))
        return [
            number
            for number in shards - self._behind
            if number % QUIET_POLLS == turn or now - self._active.get(number, -1e9) < ACTIVE_SECONDS
        ]

    def read(self, asked: Iterable[int], counts: Mapping[int, int], now: float) -> None:
        """Note what was read, and how many entries each shard gave."""
        several = list(asked)
        most = entries_per_stream(len(several))
        full = {number for number, count in counts.items() if count >= most}
        self._alone.extend(sorted(full - self._behind))
        self._behind = self._behind.difference(several) | full
        self.active(counts, now)

    def active(self, shards: Iterable[int], now: float) -> None:
        """Note that these shards have new entries."""
        self._active.update(dict.fromkeys(shards, now))
