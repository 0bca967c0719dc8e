"""An analyzer's part in the fleet: it publishes its nodes, and one analyzer compares all nodes."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

import redis

from reveal_analyzer.fleet.exchange import Exchange
from reveal_analyzer.fleet.leader import Leader, LeaseTiming
from reveal_analyzer.fleet.minute import MinuteData
from reveal_analyzer.fleet.publisher import SummaryPublisher
from reveal_analyzer.fleet.rounds import ComparisonRounds, RoundTiming
from reveal_analyzer.gangs.comparison import RankComparison
from reveal_analyzer.gangs.exchange import RankExchange
from reveal_analyzer.gangs.rank import Rank
from reveal_analyzer.stream.redis_connection import OUTAGE
from reveal_analyzer.telemetry.node_records import NodeRecords
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
        self,
        client: redis.Redis,
        profile: str,
        owner: str,
        timing: FleetTiming | None = None,
        records: NodeRecords | None = None,
    ) -> None:
        self._timing = timing or FleetTiming()
        self._exchange = Exchange(client, profile, records)
        self._publisher = SummaryPublisher(self._exchange)
        self._leader = Leader(client, profile, owner, self._timing.lease)
        self._rounds: ComparisonRounds | None = None
        self._rank_exchange = RankExchange(client, profile)
        self._ranks: dict[str, Sequence[Rank]] = {}
        self._comparison: RankComparison | None = None
        self._due = 0.0

    @property
    def leads(self) -> bool:
        """Whether this analyzer compares the nodes."""
        return self._leader.leads

    @property
    def open(self) -> frozenset[str]:
        """The ids of the open findings across nodes; none if another analyzer leads."""
        parts = (self._rounds, self._comparison) if self.leads else ()
        return frozenset().union(*(part.open for part in parts if part is not None))

    def due(self, now: float) -> bool:
        """Return whether ``advance`` should be called."""
        return now >= self._due

    def set_facts(self, facts: Facts) -> None:
        """Use the current facts of one of the analyzer's nodes."""
        self._publisher.set_facts(facts)

    def drop(self, node: str) -> None:
        """Forget a node that this analyzer no longer owns."""
        self._publisher.drop(node)
        self._ranks.pop(node, None)

    def submit(self, node: str, minute: MinuteData) -> None:
        """Queue a minute that ended on one of the analyzer's nodes."""
        self._publisher.submit(node, minute)

    def submit_ranks(self, node: str, ranks: Sequence[Rank]) -> None:
        """Queue the ranks of a window that ended on one of the analyzer's nodes."""
        self._ranks[node] = ranks

    def advance(self, now: float) -> list[FindingUpdate]:
        """Publish queued minutes and, as the leader, compare; ``now`` is monotonic, in s."""
        self._due = now + self._timing.step
        try:
            self._publisher.publish()
            ranks, self._ranks = self._ranks, {}
            self._rank_exchange.put(ranks)
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
            for part in (self._rounds, self._comparison):
                if part is not None and self.leads:
                    part.save()
            self._leader.release()
        except OUTAGE as error:
            log.debug("the lease was not released and will expire: %s", error)

    def _compare(self, now: float) -> list[FindingUpdate]:
        if not self._leader.renew():
            self._rounds = self._comparison = None
            return []
        if self._rounds is None or self._comparison is None:
            log.info("this analyzer compares the nodes")
            self._rounds = ComparisonRounds(self._exchange, now, self._timing.rounds)
            self._comparison = RankComparison(self._rank_exchange)
        return [*self._comparison.advance(now), *self._rounds.advance(now)]
