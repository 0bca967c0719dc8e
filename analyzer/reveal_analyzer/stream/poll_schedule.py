"""Which streams to read next: all of them, those without news seldom, a backlog one by one."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

from reveal_analyzer.stream.consumer import share

QUIET_TICKS = 10  # a shard without news is asked every tenth tick: 64 asked each cost .5 %
ACTIVE_SECONDS = 5.0


class Rota:
    """Pure bookkeeping over the numbers of shards.

    A stream that gave as much as was asked for may hold more: it is *behind*, and read by
    itself, as much at once as fits.  So the slices of each of its nodes come together, and an
    analyzer with too much to do does more.  After one turn of each that is behind come all others.
    """

    def __init__(self) -> None:
        self._active: dict[int, float] = {}
        self._behind: set[int] = set()
        self._alone: deque[int] = deque()  # of those, whose turn comes before all others'
        self._tick = 0

    @property
    def behind(self) -> bool:
        """Whether there may be more to read at once."""
        return bool(self._behind)

    def next(self, shards: set[int], now: float) -> list[int]:
        """Of these the ones to read now; one alone where that is behind."""
        self._behind &= shards
        while self._alone:
            if (number := self._alone.popleft()) in self._behind:
                return [number]
        turn = self._tick % QUIET_TICKS
        self._tick += 1
        self._alone.extend(sorted(self._behind))
        return [
            number
            for number in shards - self._behind
            if number % QUIET_TICKS == turn or now - self._active.get(number, -1e9) < ACTIVE_SECONDS
        ]

    def read(self, asked: Iterable[int], counts: Mapping[int, int], now: float) -> None:
        """These were read, and so many entries came of each that had any."""
        several = list(asked)
        most = share(len(several))
        full = {number for number, count in counts.items() if count >= most}
        self._alone.extend(sorted(full - self._behind))
        self._behind = self._behind.difference(several) | full
        self.active(counts, now)

    def active(self, shards: Iterable[int], now: float) -> None:
        """These have news."""
        self._active.update(dict.fromkeys(shards, now))
