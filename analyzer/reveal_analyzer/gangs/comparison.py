"""Compares the ranks of all jobs; the analyzer that leads does it."""

from __future__ import annotations

from reveal_analyzer.gangs.exchange import RankExchange
from reveal_analyzer.gangs.judge import ABSENT_WINDOWS, RankJudge
from reveal_contract.finding import FindingUpdate

_READ_S = 2.5  # between two looks for new windows
_SAVED_S = 10.0


class RankComparison:
    """Reads what all analyzers wrote of ranks; methods raise what redis-py raises."""

    def __init__(self, exchange: RankExchange) -> None:
        self._exchange, self._judge = exchange, RankJudge()
        self._judge.load(exchange.load_cases())
        self._due_s = self._saved_s = 0.0

    @property
    def open(self) -> frozenset[str]:
        """The ids of the open findings."""
        return self._judge.open

    def advance(self, now_s: float) -> list[FindingUpdate]:
        """Judge the windows that are complete; ``now_s`` is monotonic."""
        if now_s < self._due_s:
            return []
        self._due_s = now_s + _READ_S
        ranks = self._exchange.get()
        updates = self._judge.add(ranks)
        newest = max((own[0].window for own in ranks.values() if own), default=0)
        before = newest - ABSENT_WINDOWS
        self._exchange.drop([n for n, own in ranks.items() if not own or own[0].window < before])
        if updates or (self.open and now_s >= self._saved_s + _SAVED_S):
            self.save()
            self._saved_s = now_s
        return updates

    def save(self) -> None:
        """Save the cases for the next leader."""
        self._exchange.save_cases(self._judge.rows())
