"""Search for busy processes among those that there is no room for, a few in each call."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from heapq import nlargest
from itertools import islice

from reveal_collector.subjects.stable_selection import is_clearly_larger


@dataclass(frozen=True, slots=True)
class ProcessUse:
    """What a process has used since its start (seconds since boot), and what it holds now."""

    started: float
    total: float
    level: float = 0.0


_NEVER = 0.0, ProcessUse(-1.0, 0.0)


@dataclass(frozen=True, slots=True)
class Replacement:
    """A followed process, and the busier one that is followed instead."""

    dropped: int
    followed: int


class ProcessSearch:
    """Finds processes that use more than the least busy of the followed ones.

    ``per_look`` is how many of the waiting ones are looked at in one call, ``margin`` how much
    more a process must use a second to be followed instead of one that does nothing.
    """

    def __init__(self, per_look: int, margin: float) -> None:
        self._per_look, self._margin = per_look, margin
        self._looks: dict[int, tuple[float, ProcessUse]] = {}  # the oldest look first

    def due(self, waiting: Set[int]) -> list[int]:
        """Return the processes to look at now: the newest, and those seen longest ago."""
        new = nlargest(self._per_look, waiting - self._looks.keys())
        room = max(self._per_look // 4, self._per_look - len(new))
        known = list(islice((pid for pid in self._looks if pid in waiting), room))
        chosen = [*new[: self._per_look - len(known)], *known]
        for pid in chosen:  # also if it cannot be read: others come next
            self._looks[pid] = self._looks.pop(pid, _NEVER)
        return chosen

    def replacements(
        self,
        followed: Mapping[int, ProcessUse],
        sampled: Mapping[int, ProcessUse],
        waiting: Set[int],
        now: float,
    ) -> list[Replacement]:
        """Return which of the sampled processes replace which followed ones."""
        least = sorted((self._rate(pid, use, now), pid) for pid, use in followed.items())
        most = sorted(
            ((self._rate(pid, use, now), pid) for pid, use in sampled.items()), reverse=True
        )
        self._looks = {
            pid: look for pid, look in self._looks.items() if pid in waiting or pid in followed
        }
        return [
            Replacement(dropped, pid)
            for (low, dropped), (high, pid) in zip(least, most, strict=False)
            if is_clearly_larger(high, low, self._margin)
        ]

    def _rate(self, pid: int, use: ProcessUse, now: float) -> float:
        """Return the use a second since the last look, or since the start of the process."""
        last = self._looks.pop(pid, None)
        self._looks[pid] = now, use
        if last is None or last[1].started != use.started:
            since, total = use.started, 0.0
        else:
            since, total = last[0], last[1].total
        return max(0.0, use.total - total) / max(now - since, 1.0) + use.level
