"""The one analyzer that compares the nodes: a role with a lease of its own."""

from __future__ import annotations

import time
from dataclasses import dataclass

import redis

from reveal_analyzer.stream.leases import RELEASE, RENEW, granted
from reveal_contract.names import fleet_key


@dataclass(frozen=True, slots=True)
class Term:
    """Times of the role, in seconds: who dies is followed within their sum."""

    lease: float = 8.0
    beat: float = 1.0


class Leader:
    """Takes the role where it is free and keeps it; ``owner`` is unique among analyzers.

    Methods raise what redis-py raises when Redis is away.
    """

    def __init__(
        self, client: redis.Redis, profile: str, owner: str, term: Term | None = None
    ) -> None:
        self._client, self._owner, self._term = client, owner, term or Term()
        self._key = fleet_key(profile, "leader")
        self._ends = self._next = 0.0

    @property
    def leads(self) -> bool:
        """Whether the lease surely still runs."""
        return time.monotonic() < self._ends

    def beat(self) -> bool:
        """Renew or take the role when that is due; whether it is held now."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + self._term.beat
            if self._renewed() or self._taken():
                self._ends = now + self._term.lease  # from before the question: never too long
            else:
                self._ends = 0.0
        return self.leads

    def release(self) -> None:
        """Give the role back, so that the next one need not wait for the lease to run out."""
        self._client.eval(RELEASE, 1, self._key, self._owner)
        self._ends = 0.0

    def _renewed(self) -> bool:
        return granted(
            lambda: self._client.eval(
                RENEW, 1, self._key, self._owner, int(self._term.lease * 1000)
            )
        )

    def _taken(self) -> bool:
        return granted(
            lambda: self._client.set(
                self._key, self._owner, nx=True, px=int(self._term.lease * 1000)
            )
        )
