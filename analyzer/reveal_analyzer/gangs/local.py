"""The ranks of nodes that one process analyzes, as in a scan or a recording."""

from __future__ import annotations

from collections.abc import Sequence

from reveal_analyzer.gangs.judge import RankJudge
from reveal_analyzer.gangs.rank import Rank, window_of
from reveal_contract.finding import FindingUpdate


class LocalRanks:
    """Takes windows as they end."""

    def __init__(self) -> None:
        self._judge = RankJudge()
        self._last: dict[str, Sequence[Rank]] = {}
        self._ended = 0

    def add(self, ranks: Sequence[Rank], time_ns: int) -> list[FindingUpdate]:
        """Take the ranks of a node's window, if one ended by this time; return what changed."""
        before, self._ended = self._ended, window_of(time_ns) - 2
        if ranks:
            self._last[ranks[0].node] = ranks
        elif self._ended == before:
            return []
        return self._judge.add(self._last, self._ended)

    def finish(self) -> list[FindingUpdate]:
        """Return the last state of the findings that are open."""
        return self._judge.still_open()
