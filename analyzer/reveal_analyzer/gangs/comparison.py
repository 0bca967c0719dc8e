"""Compares the ranks of all jobs; the analyzer that leads does it."""

from __future__ import annotations

from collections.abc import Sequence

from reveal_analyzer.gangs.exchange import RankExchange
from reveal_analyzer.gangs.judge import ABSENT_WINDOWS, RankJudge, newest_window
from reveal_analyzer.gangs.rank import WINDOW_S, Rank
from reveal_contract.finding import FindingUpdate

_READ_S = 4.0  # between the begins of two looks for new windows
_SAVED_S = 10.0
NODES_PER_STEP = 200  # read at a time, a few milliseconds: slices must not wait


class _WindowClock:
    """The last window that has ended for certain, also while no node has ranks."""

    def __init__(self) -> None:
        self._newest, self._since_s = 0, 0.0

    def ended(self, newest: int, now_s: float) -> int:
        """Return it; ``newest`` is the last one that was read, 0 for none."""
        if newest > self._newest:
            self._newest, self._since_s = newest, now_s
        later = int((now_s - self._since_s) // WINDOW_S) - 1  # nodes write theirs at any moment
        return self._newest + max(0, later) if self._newest else 0


class RankComparison:
    """Reads what all analyzers wrote of ranks, some nodes at a time.

    Methods raise what redis-py raises.
    """

    def __init__(self, exchange: RankExchange) -> None:
        self._exchange, self._judge = exchange, RankJudge()
        self._judge.load(exchange.cases.load())
        self._clock = _WindowClock()
        self._due_s = self._saved_s = 0.0
        self._waiting: list[str] = []  # nodes that are still to be read
        self._ranks: dict[str, list[Rank]] = {}

    @property
    def open(self) -> frozenset[str]:
        """The ids of the open findings."""
        return self._judge.open

    def advance(self, now_s: float) -> list[FindingUpdate]:
        """Read on; return what changed once all nodes are read.  ``now_s`` is monotonic."""
        if not self._waiting:
            if now_s < self._due_s:
                return []
            self._due_s = now_s + _READ_S
            self._waiting, self._ranks = self._exchange.ranks.nodes(), {}
        step, self._waiting = self._waiting[:NODES_PER_STEP], self._waiting[NODES_PER_STEP:]
        self._ranks |= self._exchange.ranks.get(step)
        return [] if self._waiting else self._judged(now_s)

    def _judged(self, now_s: float) -> list[FindingUpdate]:
        newest = max(newest_window(self._ranks), self._judge.last_window)
        updates = self._judge.add(self._ranks, self._clock.ended(newest, now_s))
        self._exchange.ranks.drop(_absent(self._ranks))
        if updates or (self.open and now_s >= self._saved_s + _SAVED_S):
            self.save()
            self._saved_s = now_s
        return updates

    def save(self) -> None:
        """Save the cases for the next leader."""
        self._exchange.cases.save(self._judge.rows())


def _absent(ranks: dict[str, list[Rank]]) -> Sequence[str]:
    """Return the nodes that have sent nothing for a while."""
    before = newest_window(ranks) - ABSENT_WINDOWS
    return [node for node, own in ranks.items() if not own or own[0].window < before]
