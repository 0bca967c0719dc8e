"""The story of a node with a lost-time ledger, second by second, and its findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reveal_analyzer.node import Announced, NodeAnalyzer
from reveal_contract.cpu_shares import CpuShares
from reveal_contract.finding import Finding, FindingChange, FindingUpdate
from reveal_contract.settings import AnalyzerSettings
from support.ledger_node import Times, ledger_node, ledger_values

JOB, HOG, BUILD = "/job", "/hog", "/build"


class LedgerStory:
    """A node with a ledger whose seconds are analyzed one after the other."""

    def __init__(self, warmup: int = 60) -> None:
        self.node = ledger_node(JOB, HOG, BUILD)
        self.analyzer = NodeAnalyzer("n1", AnalyzerSettings(warmup_seconds=warmup))
        self.updates: list[tuple[int, FindingUpdate]] = []

    def announce(self, shares: CpuShares) -> None:
        """Announce shares before the first second."""
        settings = AnalyzerSettings(warmup_seconds=60)
        self.analyzer = NodeAnalyzer("n1", settings, announced=Announced(shares=lambda: shares))

    def run(
        self, seconds: int, times: Mapping[str, Times], changed: Mapping[str, float] | None = None
    ) -> None:
        for _ in range(seconds):
            second = self.node.second
            message = self.node.slice(ledger_values(times) | dict(changed or {}))
            found = self.analyzer.analyze(message, self.node.table)
            self.updates += [(second, u) for u in found if u.change is not FindingChange.SUSPECTED]

    def of(self, change: FindingChange) -> list[tuple[int, Finding]]:
        return [(time, u.finding) for time, u in self.updates if u.change is change]

    @property
    def latest(self) -> Finding:
        return self.updates[-1][1].finding


def names(found: Sequence[tuple[int, Finding]]) -> list[str]:
    """Return the names of the causes of these findings."""
    return [finding.hypothesis.name if finding.hypothesis else "" for _, finding in found]
