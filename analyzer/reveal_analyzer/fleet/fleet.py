"""An analyzer's part in the fleet: it tells of its nodes, and one of all compares them."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

import redis

from reveal_analyzer.fleet.exchange import Exchange
from reveal_analyzer.fleet.leader import Leader, Term
from reveal_analyzer.fleet.minute import Gathered
from reveal_analyzer.fleet.publisher import Teller
from reveal_analyzer.fleet.rounds import Comparison, Pace
from reveal_analyzer.stream.connection import OUTAGE
from reveal_contract.facts import Facts
from reveal_contract.finding import FindingUpdate

log = logging.getLogger(__name__)

_AFTER_FAILURE = 60.0  # s


@dataclass(frozen=True, slots=True)
class FleetTiming:
    """``step`` is the seconds between two steps: each costs some tens of milliseconds at most."""

    step: float = 0.25
    term: Term = field(default_factory=Term)
    pace: Pace = field(default_factory=Pace)


class Fleet:
    """What a worker calls; one thread.  Never raises: an outage of Redis is waited out."""

    def __init__(
        self, client: redis.Redis, profile: str, owner: str, timing: FleetTiming | None = None
    ) -> None:
        self._timing = timing or FleetTiming()
        self._exchange = Exchange(client, profile)
        self._teller = Teller(self._exchange)
        self._leader = Leader(client, profile, owner, self._timing.term)
        self._comparison: Comparison | None = None
        self._due = 0.0

    @property
    def leads(self) -> bool:
        """Whether this analyzer compares the nodes."""
        return self._leader.leads

    @property
    def open(self) -> frozenset[str]:
        """The ids of the findings across nodes that are open; none where this does not lead."""
        return self._comparison.open if self._comparison is not None and self.leads else frozenset()

    def due(self, now: float) -> bool:
        return now >= self._due

    def learn(self, facts: Facts) -> None:
        """The facts of one of the analyzer's nodes."""
        self._teller.learn(facts)

    def forget(self, node: str) -> None:
        self._teller.forget(node)

    def tell(self, node: str, minute: Gathered) -> None:
        """A minute of one of the analyzer's nodes has ended."""
        self._teller.tell(node, minute)

    def step(self, now: float) -> list[FindingUpdate]:
        """Tell what ended, compare if it is ours to do; ``now`` is monotonic, in seconds."""
        self._due = now + self._timing.step
        try:
            self._teller.step()
            return self._lead(now)
        except OUTAGE as error:  # whoever reads the slices says so
            log.debug("the fleet is not compared: %s", error)
        except Exception:
            # what another analyzer told of its nodes must not cost the slices of ours
            log.exception("nodes could not be compared, will try again in a minute")
            self._due = now + _AFTER_FAILURE
        return []

    def close(self) -> None:
        """Let another one lead at once; harmless when Redis is away."""
        try:
            if self._comparison is not None and self.leads:
                self._comparison.save()
            self._leader.release()
        except OUTAGE as error:
            log.debug("the lead runs out by itself: %s", error)

    def _lead(self, now: float) -> list[FindingUpdate]:
        if not self._leader.beat():
            self._comparison = None
            return []
        if self._comparison is None:
            log.info("this analyzer compares the nodes")
            self._comparison = Comparison(self._exchange, now, self._timing.pace)
        return self._comparison.step(now)
