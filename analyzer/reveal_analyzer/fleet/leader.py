"""Leader election: one analyzer holds a lease in Redis and compares all nodes."""

from __future__ import annotations

import time
from dataclasses import dataclass

import redis

from reveal_analyzer.stream.leases import RELEASE, RENEW, granted, is_no_lease
from reveal_contract.names import fleet_key


@dataclass(frozen=True, slots=True)
class LeaseTiming:
    """Seconds of the lease and between renewals; a dead leader is replaced within their sum."""

    lease: float = 8.0
    renewal: float = 1.0


class Leader:
    """Takes the lease if it is free, and keeps it; ``owner`` is unique among analyzers.

    Methods raise what redis-py raises when Redis is unavailable.
    """

    def __init__(
        self, client: redis.Redis, profile: str, owner: str, timing: LeaseTiming | None = None
    ) -> None:
        self._client, self._owner = client, owner
        self._timing = timing or LeaseTiming()
        self._key = fleet_key(profile, "leader")
        self._ends = self._next = 0.0

    @property
    def leads(self) -> bool:
        """Whether the lease is certain to last still."""
        return time.monotonic() < self._ends

    def renew(self) -> bool:
        """Renew or take the lease when that is due; return whether this analyzer leads."""
        now = time.monotonic()
        if now >= self._next:
            self._next = now + self._timing.renewal
            if self._extend() or self._acquire():
                # counted from before the request: never too long
                self._ends = now + self._timing.lease
            else:
                self._ends = 0.0
                self._limit()
        return self.leads

    def release(self) -> None:
        """Release the lease, so that the next leader need not wait until it expires."""
        self._client.eval(RELEASE, 1, self._key, self._owner)
        self._ends = 0.0

    def _limit(self) -> None:
        """Let a key end that is no lease; an analyzer that renews one keeps it."""
        if is_no_lease(self._client.pttl(self._key), self._milliseconds):
            self._client.pexpire(self._key, self._milliseconds)

    @property
    def _milliseconds(self) -> int:
        return int(self._timing.lease * 1000)

    def _extend(self) -> bool:
        return granted(
            lambda: self._client.eval(RENEW, 1, self._key, self._owner, self._milliseconds)
        )

    def _acquire(self) -> bool:
        return granted(
            lambda: self._client.set(self._key, self._owner, nx=True, px=self._milliseconds)
        )
