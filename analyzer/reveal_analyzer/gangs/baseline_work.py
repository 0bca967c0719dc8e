"""What the ranks of a job wanted while nothing delayed it."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from statistics import median

from reveal_analyzer.gangs.rank import Rank, slower_percent

RankKey = tuple[str, str]  # node and subject
_MOST_WINDOWS = 30
_LEAST_WINDOWS = 2
_SAME_STEPS = 2.0  # percent: longer steps are not normal


def key_of(rank: Rank) -> RankKey:
    """Return what identifies a rank of a job."""
    return rank.node, rank.subject


class BaselineWork:
    """The last windows of one job in which nothing delayed it."""

    def __init__(self) -> None:
        self._windows: deque[Mapping[RankKey, float]] = deque(maxlen=_MOST_WINDOWS)

    def add(self, ranks: Sequence[Rank]) -> None:
        """Add a window, if its steps are read and not longer than those that were learned."""
        percent = slower_percent(ranks)
        if percent is not None and percent <= _SAME_STEPS:
            self._windows.append({key_of(rank): rank.desired for rank in ranks})

    def desired(self) -> dict[RankKey, float]:
        """Return the CPUs that each rank wanted; only of ranks that were there in some windows."""
        found: dict[RankKey, list[float]] = {}
        for window in self._windows:
            for key, desired in window.items():
                found.setdefault(key, []).append(desired)
        return {key: median(some) for key, some in found.items() if len(some) >= _LEAST_WINDOWS}
