"""Each analyzer's count of its nodes, in Redis, so that one can tell of all."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import redis

from reveal_analyzer.telemetry.degraded import Lack, lacks, summed
from reveal_analyzer.telemetry.snapshot import Situation
from reveal_contract.names import NODES_KEY, fleet_key

FRESH_SECONDS = 60.0  # of a state, and what a node may be silent and still report
_KEPT_SECONDS = 600
_BATCH = 200  # nodes a question
MOST_LACKS = 16


@dataclass(frozen=True, slots=True)
class State:
    """Nodes whose slices arrive, those of them that are learned, and what they go without."""

    reporting: int = 0
    learning: int = 0
    degraded: tuple[Lack, ...] = ()


def state_of(situation: Situation, degraded: Iterable[Lack]) -> State:
    """This analyzer's own."""
    heard = [one for one in situation.nodes.values() if situation.at_s - one.seen_s < FRESH_SECONDS]
    return State(len(heard), sum(one.learning for one in heard), tuple(degraded))


def merged(states: Iterable[State]) -> State:
    """What all of them know."""
    states = list(states)
    return State(
        sum(one.reporting for one in states),
        sum(one.learning for one in states),
        tuple(summed((one.degraded for one in states), MOST_LACKS)),
    )


class States:
    """The hash of a profile.  Methods raise what redis-py raises when Redis is away."""

    def __init__(self, client: redis.Redis, profile: str, owner: str) -> None:
        self._client, self._owner = client, owner
        self._key = fleet_key(profile, "states")

    def degraded(self, nodes: Iterable[str]) -> list[Lack]:
        """What the collectors of these nodes say they go without."""
        names = sorted(nodes)
        found: list[list[Lack]] = []
        for at in range(0, len(names), _BATCH):
            batch = names[at : at + _BATCH]
            said: Any = self._client.hmget(NODES_KEY, batch)
            found += [lacks(name, data) for name, data in zip(batch, said, strict=True) if data]
        return summed(found, MOST_LACKS)

    def put(self, state: State) -> None:
        """Ours, as it is now by the server's clock: those of the analyzers' hosts may differ."""
        row = [self._now(), state.reporting, state.learning, [list(one) for one in state.degraded]]
        with self._client.pipeline(transaction=False) as pipe:
            pipe.hset(self._key, self._owner, json.dumps(row))
            pipe.expire(self._key, _KEPT_SECONDS)
            pipe.execute()

    def get(self) -> State:
        """All fresh ones, summed; old ones are removed."""
        rows: Any = self._client.hgetall(self._key)
        now = self._now()
        fresh = []
        for owner, data in rows.items():
            told = _read(data)
            if told is not None and now - told[0] < FRESH_SECONDS:
                fresh.append(told[1])
            elif told is None or now - told[0] > _KEPT_SECONDS:
                self._client.hdel(self._key, owner)
        return merged(fresh)

    def drop(self) -> None:
        """This analyzer ends."""
        self._client.hdel(self._key, self._owner)

    def _now(self) -> float:
        seconds, micros = self._client.time()
        return float(seconds) + micros / 1e6


def _read(data: bytes) -> tuple[float, State] | None:
    try:
        at, reporting, learning, degraded = json.loads(data)
        found = tuple(Lack(str(reason), int(n), str(text)) for reason, n, text in degraded)
        return float(at), State(int(reporting), int(learning), found)
    except (ValueError, TypeError, RecursionError):
        return None
