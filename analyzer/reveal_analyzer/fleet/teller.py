"""What this analyzer tells of its own nodes, once a minute each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from reveal_analyzer.fleet.exchange import Exchange
from reveal_analyzer.fleet.inventory import comparable, node_class
from reveal_analyzer.fleet.minute import Gathered, Minutes
from reveal_analyzer.fleet.summary import Summary
from reveal_analyzer.fleet.work import jobs, workload
from reveal_contract.facts import Facts
from reveal_contract.subjects import Identity

BATCH = 16  # summaries a step, of about a millisecond each: slices must not wait


class Teller:
    """Makes summaries of minutes that ended and hands them on, a few a step.

    Methods raise what redis-py raises when Redis is away; nothing is forgotten then.
    """

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._setups: dict[str, tuple[str, dict[str, str]]] = {}
        self._ended: dict[str, Gathered] = {}

    def learn(self, facts: Facts) -> None:
        """The facts of a node as they are now."""
        self._setups[facts.node] = node_class(facts), comparable(facts)

    def forget(self, node: str) -> None:
        """Another analyzer speaks for it, or nobody does."""
        self._setups.pop(node, None)
        self._ended.pop(node, None)

    def step(self, minutes: Iterable[tuple[str, Minutes]]) -> None:
        """Look for minutes that ended, tell some of them."""
        for node, one in minutes:
            if (ended := one.take()) is not None:
                self._ended[node] = ended
        nodes = list(self._ended)[:BATCH]
        if nodes:
            who = self._exchange.subjects(nodes)
            self._exchange.put([self.summary(node, self._ended[node], who) for node in nodes])
            for node in nodes:
                del self._ended[node]

    def summary(self, node: str, ended: Gathered, who: Mapping[str, Iterable[Identity]]) -> Summary:
        """What is told of one minute; ``who`` are the subjects of each node."""
        levels = ended.levels()
        kind, facts = self._setups.get(node, ("", {}))
        found = jobs(levels.subjects, who.get(node, ()), node)
        return Summary(
            node, levels.minute, levels.seconds, kind, levels.names, levels.levels,
            levels.spreads, workload(levels.subjects, found), found, facts,
        )  # fmt: skip
