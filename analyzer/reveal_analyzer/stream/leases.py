"""Which shards this analyzer owns: one lease for each shard, spread by rendezvous hashing.

Every live analyzer ranks all analyzers for each shard by a hash that all compute alike (Thaler and
Ravishankar 1998, highest random weight).  The first of the ranking takes the shard at once.  The
others take it only when it stays free.  A lease expires when its owner dies, and only the owner
whose name it holds renews or releases it.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field

import redis

from reveal_analyzer.stream.tolerant_client import is_of_wrong_type
from reveal_contract.names import SHARDS, analyzers_key, owner_key

# compare and renew, compare and delete: a plain PEXPIRE or DEL could hit another's lease
RENEW = """
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 0
"""
RELEASE = """
if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end
return 0
"""
# the server's clock, as those of the analyzers' hosts may differ
REGISTER = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[1], now + ARGV[2], ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return redis.call('ZRANGE', KEYS[1], 0, -1)
"""

_ABSENT, _ENDLESS = -2, -1  # replies of PTTL
_LONGEST_LEASES = 10  # times the own lease: analyzers of another version may have longer ones


@dataclass(frozen=True, slots=True)
class LeaseTiming:
    """Times of the leases, in seconds."""

    lease: float = 7.0  # until it expires: shards of a dead owner are read again within 10 s
    beat: float = 1.0  # between renewals
    patience: float = 3.0  # a free shard is left to each higher-ranked analyzer for so long
    settle: float = 30.0  # a shard is kept so long before a higher-ranked one may have it


@dataclass(frozen=True, slots=True)
class LeaseChanges:
    """Shards that one renewal gained and lost."""

    gained: list[int] = field(default_factory=list)
    lost: list[int] = field(default_factory=list)


def rank(shard: int, me: str, members: Iterable[str]) -> int:
    """Return how many of ``members`` rank higher than ``me`` for this shard."""
    mine = _weight(shard, me)
    return sum(_weight(shard, member) > mine for member in members if member != me)


def _weight(shard: int, member: str) -> bytes:
    return hashlib.blake2b(f"{shard}\0{member}".encode(), digest_size=8).digest()


class Leases:
    """The leases of one analyzer.

    ``idle`` says whether a shard may be handed over now: none of its slices is in flight.  The
    methods raise what redis-py raises when Redis is unavailable, and change nothing then.
    """

    def __init__(
        self,
        client: redis.Redis,
        profile: str,
        owner: str,
        timing: LeaseTiming,
        idle: Callable[[int], bool],
    ) -> None:
        self.members: tuple[str, ...] = (owner,)
        self._client, self._profile, self._owner = client, profile, owner
        self._timing, self._idle = timing, idle
        self._ends: dict[int, float] = {}  # shard -> end of its lease (monotonic)
        self._taken: dict[int, float] = {}
        self._free_since: dict[int, float] = {}
        self._next_beat = 0.0

    def current(self) -> list[int]:
        """Return the shards whose lease has certainly not expired."""
        now = time.monotonic()
        return [shard for shard, end in list(self._ends.items()) if end > now]

    def due(self) -> bool:
        """Whether it is time to renew."""
        return time.monotonic() >= self._next_beat

    def hurry(self) -> None:
        """Make the renewal due now, as after an outage."""
        self._next_beat = 0.0

    def beat(self) -> LeaseChanges:
        """Register, renew the leases, hand shards over and claim free ones."""
        now = time.monotonic()
        lost = self._renew(now)
        self.members = self._register()
        lost += self._hand_over(now)
        gained = self._take(self._claimable(now), now)
        self._next_beat = now + self._timing.beat
        return LeaseChanges(gained, lost)

    def release(self) -> None:
        """Release all leases: others need not wait until they expire."""
        self._drop(list(self._ends))
        self._client.zrem(analyzers_key(self._profile), self._owner)

    def _register(self) -> tuple[str, ...]:
        try:
            names = self._client.eval(
                REGISTER, 1, analyzers_key(self._profile), self._owner, self._milliseconds
            )
        except redis.ResponseError as error:
            if not _grants_nothing(error):
                raise
            return self.members  # a full Redis still renews existing leases
        return tuple(name.decode(errors="replace") for name in names)

    def _renew(self, now: float) -> list[int]:
        owned = list(self._ends)
        renewed = _granted(owned, self._each(RENEW, owned, self._milliseconds))
        # a lease that expired during an outage is still ours if nobody took it meanwhile
        lapsed = [shard for shard in owned if shard not in renewed]
        renewed |= _granted(lapsed, self._claim(lapsed))
        self._ends.update(dict.fromkeys(renewed, now + self._timing.lease))
        lost = [shard for shard in lapsed if shard not in renewed]
        self._forget(lost)
        return lost

    def _hand_over(self, now: float) -> list[int]:
        movable = [
            shard
            for shard, taken in self._taken.items()
            if now - taken >= self._timing.settle and self._rank(shard) and self._idle(shard)
        ]
        self._drop(movable)
        return movable

    def _claimable(self, now: float) -> list[int]:
        others = [shard for shard in range(SHARDS) if shard not in self._ends]
        left_ms = self._pipelined(
            lambda pipe, shard: pipe.pttl(owner_key(self._profile, shard)), others
        )
        known = dict(zip(others, left_ms, strict=True))
        self._limit([each for each, left in known.items() if is_no_lease(left, self._milliseconds)])
        free = {shard for shard, left in known.items() if left == _ABSENT}
        self._free_since = {shard: self._free_since.get(shard, now) for shard in free}
        return [
            shard
            for shard, since in self._free_since.items()
            if now - since >= self._rank(shard) * self._timing.patience
        ]

    def _limit(self, shards: Sequence[int]) -> None:
        """Let keys end that are no leases; an analyzer that renews one keeps it."""
        self._pipelined(
            lambda pipe, shard: pipe.pexpire(owner_key(self._profile, shard), self._milliseconds),
            shards,
        )

    def _take(self, shards: Sequence[int], now: float) -> list[int]:
        gained = sorted(_granted(shards, self._claim(shards)))
        self._ends.update(dict.fromkeys(gained, now + self._timing.lease))
        self._taken.update(dict.fromkeys(gained, now))
        return gained

    def _claim(self, shards: Sequence[int]) -> list[object]:
        return self._pipelined(
            lambda pipe, shard: pipe.set(
                owner_key(self._profile, shard), self._owner, nx=True, px=self._milliseconds
            ),
            shards,
        )

    def _drop(self, shards: Collection[int]) -> None:
        self._each(RELEASE, list(shards))
        self._forget(shards)

    def _forget(self, shards: Collection[int]) -> None:
        for shard in shards:
            del self._ends[shard], self._taken[shard]

    def _each(self, script: str, shards: Sequence[int], *arguments: int) -> list[object]:
        return self._pipelined(
            lambda pipe, shard: pipe.eval(
                script, 1, owner_key(self._profile, shard), self._owner, *arguments
            ),
            shards,
        )

    def _pipelined(
        self, command: Callable[[redis.client.Pipeline, int], object], shards: Sequence[int]
    ) -> list[object]:
        """Send one command for each shard, together.

        A full Redis grants nothing (``None``), and neither does a key of another type; any other
        error is raised.
        """
        if not shards:
            return []
        with self._client.pipeline(transaction=False) as pipe:
            for shard in shards:
                command(pipe, shard)
            answers = pipe.execute(raise_on_error=False)
        return [_granted_or_raised(answer) for answer in answers]

    def _rank(self, shard: int) -> int:
        return rank(shard, self._owner, self.members)

    @property
    def _milliseconds(self) -> int:
        return int(self._timing.lease * 1000)


def is_no_lease(left_ms: object, lease_ms: int) -> bool:
    """Return whether a key does not end as a lease does: no analyzer holds anything by it.

    ``left_ms`` is the reply of PTTL, ``lease_ms`` how long the own leases last.
    """
    most_ms = _LONGEST_LEASES * lease_ms
    return left_ms == _ENDLESS or (isinstance(left_ms, int) and left_ms > most_ms)


def _granted(shards: Sequence[int], answers: Sequence[object]) -> set[int]:
    return {shard for shard, answer in zip(shards, answers, strict=True) if answer}


def granted(ask: Callable[[], object]) -> bool:
    """Return whether a lease was granted.

    A full Redis grants none, and neither does a key of another type; other errors are raised.
    """
    try:
        return bool(ask())
    except redis.ResponseError as error:
        if not _grants_nothing(error):
            raise
        return False


def _granted_or_raised(answer: object) -> object:
    if isinstance(answer, Exception):
        if _grants_nothing(answer):
            return None
        raise answer
    return answer


def _grants_nothing(error: Exception) -> bool:
    return _is_full(error) or is_of_wrong_type(error)


def _is_full(error: Exception) -> bool:
    """Return whether Redis is out of memory; before Redis 7 only the text of the error says so."""
    return "OOM command not allowed" in str(error) or isinstance(
        error, redis.exceptions.OutOfMemoryError
    )
