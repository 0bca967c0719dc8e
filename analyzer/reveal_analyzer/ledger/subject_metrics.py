"""Prometheus metrics of lost time: what the busiest subjects of each node wanted, lost and took."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from reveal_analyzer.ledger.accounts import Accounts
from reveal_analyzer.ledger.lost_seconds import COUNTERS, DESIRED, RESOURCES, LostSeconds
from reveal_analyzer.ledger.lost_time import REASONS
from reveal_contract.finding import FindingUpdate
from reveal_contract.time_units import NS_PER_SECOND


class SubjectMetrics(Collector):
    """The lost time of up to ``most`` subjects of each node; a sink, as nodes come and go."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._nodes: dict[str, LostSeconds] = {}

    def add(self, node: str, accounts: Accounts) -> None:
        """Add one second of a node."""
        if node not in self._nodes:
            self._nodes[node] = LostSeconds(self._most)
        self._nodes[node].add(accounts)

    def collect(self) -> Iterator[Metric]:
        desired, lost, taken = (
            _family("desired", "Time that threads of a subject ran, or wanted to"),
            _family("lost", "The part of the wanted time that was lost", "reason"),
            _family("taken", "Time that others lost to a subject", "resource"),
        )
        for node, counters in list(self._nodes.items()):
            for subject, row in counters.rows().items():
                for name, value in zip(COUNTERS, row, strict=True):
                    seconds = value / NS_PER_SECOND
                    if name == DESIRED:
                        desired.add_metric([node, subject], seconds)
                    elif name in REASONS:
                        lost.add_metric([node, subject, REASONS[name]], seconds)
                    else:
                        taken.add_metric([node, subject, RESOURCES[name]], seconds)
        yield from (desired, lost, taken)

    def write(self, update: FindingUpdate) -> None:
        """Do nothing: findings have metrics of their own."""

    def forget(self, node: str, lost: str = "") -> None:
        """Drop a node that is not observed here any more."""
        self._nodes.pop(node, None)

    def close(self) -> None:
        """Do nothing: there is nothing left to write."""


def _family(what: str, meaning: str, *labels: str) -> CounterMetricFamily:
    name = f"reveal_subject_{what}_seconds"
    return CounterMetricFamily(name, f"{meaning}.", labels=["node", "subject", *labels])
