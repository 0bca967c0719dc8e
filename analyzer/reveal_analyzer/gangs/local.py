"""The ranks of nodes that one process analyzes, as in a scan or a recording."""

from __future__ import annotations

from collections.abc import Sequence

from reveal_analyzer.gangs.judge import RankJudge
from reveal_analyzer.gangs.rank import Rank
from reveal_contract.finding import FindingUpdate


class LocalRanks:
    """Takes windows as they end."""

    def __init__(self) -> None:
        self._judge = RankJudge()
        self._last: dict[str, Sequence[Rank]] = {}

    def add(self, ranks: Sequence[Rank]) -> list[FindingUpdate]:
        """Take the ranks of a node's window, if one ended; return what changed."""
        if not ranks:
            return []
        self._last[ranks[0].node] = ranks
        return self._judge.add(self._last)

    def finish(self) -> list[FindingUpdate]:
        """Return the last state of the findings that are open."""
        return self._judge.still_open()
