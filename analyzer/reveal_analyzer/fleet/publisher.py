"""What this analyzer tells of its own nodes, once a minute each."""

from __future__ import annotations

from reveal_analyzer.fleet.exchange import Exchange
from reveal_analyzer.fleet.inventory import comparable, node_class
from reveal_analyzer.fleet.minute import Gathered
from reveal_analyzer.fleet.summarise import UNKNOWN, Setup, summarise
from reveal_contract.facts import Facts

BATCH = 20  # summaries a step, of about a millisecond each: slices must not wait


class Teller:
    """Makes summaries of minutes that ended and hands them on, a few a step.

    Methods raise what redis-py raises when Redis is away; what was about to be told is lost
    then, and the next minute told instead.
    """

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._setups: dict[str, Setup] = {}
        self._ended: dict[str, Gathered] = {}

    def learn(self, facts: Facts) -> None:
        """The facts of a node as they are now."""
        self._setups[facts.node] = Setup(node_class(facts), comparable(facts))

    def forget(self, node: str) -> None:
        """Another analyzer speaks for it, or nobody does."""
        self._setups.pop(node, None)
        self._ended.pop(node, None)

    def tell(self, node: str, minute: Gathered) -> None:
        """Soon, of a minute that ended; the last one where nobody was told of the one before."""
        self._ended[node] = minute

    def step(self) -> None:
        """Tell of some that ended."""
        now = {node: self._ended.pop(node) for node in list(self._ended)[:BATCH]}
        who = self._exchange.subjects(list(now))
        self._exchange.put(
            summarise(node, ended.levels(), self._setups.get(node, UNKNOWN), who[node])
            for node, ended in now.items()
        )
