"""An analyzer's part in the fleet: it publishes its nodes, and one analyzer compares all nodes."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field

import redis

from reveal_analyzer.fleet.exchange import Exchange
from reveal_analyzer.fleet.leader import Leader, LeaseTiming
from reveal_analyzer.fleet.minute import MinuteData
from reveal_analyzer.fleet.publisher import SummaryPublisher
from reveal_analyzer.fleet.rounds import ComparisonRounds, RoundTiming
from reveal_analyzer.stream.redis_connection import OUTAGE
from reveal_contract.facts import Facts
from reveal_contract.finding import FindingUpdate

log = logging.getLogger(__name__)

_AFTER_FAILURE = 60.0  # s


@dataclass(frozen=True, slots=True)
class FleetTiming:
    """``step`` is the seconds between two steps: each costs some tens of milliseconds at most."""

    step: float = 0.25
    lease: LeaseTiming = field(default_factory=LeaseTiming)
    rounds: RoundTiming = field(default_factory=RoundTiming)


class Fleet:
    """What a worker calls, in one thread.  It never raises: it waits until Redis returns."""

    def __init__(
        self, client: redis.Redis, profile: str, owner: str, timing: FleetTiming | None = None
    ) -> None:
        self._timing = timing or FleetTiming()
        self._exchange = Exchange(client, profile)
        self._publisher = SummaryPublisher(self._exchange)
        self._leader = Leader(client, profile, owner, self._timing.lease)
        self._rounds: ComparisonRounds | None = None
        self._due = 0.0

    @property
    def leads(self) -> bool:
        """Whether this analyzer compares the nodes."""
        return self._leader.leads

    @property
    def open(self) -> frozenset[str]:
        """The ids of the open findings across nodes; none if another analyzer leads."""
        return self._rounds.open if self._rounds is not None and self.leads else frozenset()

    def due(self, now: float) -> bool:
        """Return whether ``advance`` should be called."""
        return now >= self._due

    def set_facts(self, facts: Facts) -> None:
        """Use the current facts of one of the analyzer's nodes."""
        self._publisher.set_facts(facts)

    def drop(self, node: str) -> None:
        """Forget a node that this analyzer no longer owns."""
        self._publisher.drop(node)

    def submit(self, node: str, minute: MinuteData) -> None:
        """Queue a minute that ended on one of the analyzer's nodes."""
        self._publisher.submit(node, minute)

    def advance(self, now: float) -> list[FindingUpdate]:
        """Publish queued minutes and, as the leader, compare; ``now`` is monotonic, in s."""
        self._due = now + self._timing.step
        try:
            self._publisher.publish()
            return self._compare(now)
        except OUTAGE as error:  # the reader of the slices logs the outage
            log.debug("nodes are not compared: %s", error)
        except Exception:
            # summaries of other analyzers must not stop the analysis of these slices
            log.exception("nodes could not be compared; the next attempt is in a minute")
            self._due = now + _AFTER_FAILURE
        return []

    def close(self) -> None:
        """Let another analyzer lead at once; has no effect while Redis is unavailable."""
        try:
            if self._rounds is not None and self.leads:
                self._rounds.save()
            self._leader.release()
        except OUTAGE as error:
            log.debug("the lease was not released and will expire: %s", error)

    def _compare(self, now: float) -> list[FindingUpdate]:
        if not self._leader.renew():
            self._rounds = None
            return []
        if self._rounds is None:
            log.info("this analyzer compares the nodes")
            self._rounds = ComparisonRounds(self._exchange, now, self._timing.rounds)
        return self._rounds.advance(now)
