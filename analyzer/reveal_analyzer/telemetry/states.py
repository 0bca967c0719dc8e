"""Each analyzer's count of its nodes, in Redis, so that the leader can sum all of them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain, zip_longest

import redis

from reveal_analyzer.telemetry.degraded import Degradation, degradations, summed
from reveal_analyzer.telemetry.limited_values import Limited, get_all_fields
from reveal_analyzer.telemetry.node_records import IsProven, NodeRecords
from reveal_analyzer.telemetry.snapshot import Snapshot
from reveal_contract import foreign_json
from reveal_contract.names import STATUS, fleet_key

# A state is fresh for so long; a node without slices for so long does not report any more.
FRESH_SECONDS = 60.0
MAX_DEGRADATIONS = 16
MAX_SILENT = 64  # names
_KEPT_SECONDS = 600
_MOST_BYTES = 1 << 20  # of a state
_BATCH = 200  # nodes in one HMGET


@dataclass(frozen=True, slots=True)
class TelemetryState:
    """Nodes whose slices arrive, those of them in warm-up, and what their collectors miss.

    ``silent`` names nodes that stopped sending, the last ones first.
    """

    reporting: int = 0
    learning: int = 0
    degraded: tuple[Degradation, ...] = ()
    silent: tuple[str, ...] = ()


def reporting_nodes(snapshot: Snapshot) -> list[str]:
    """Return the nodes whose slices arrive."""
    return [
        name
        for name, node in snapshot.nodes.items()
        if snapshot.time_s - node.last_slice_s < FRESH_SECONDS
    ]


def silent_nodes(snapshot: Snapshot) -> list[str]:
    """Return the nodes that stopped sending, the last ones first: some have left the cluster."""
    heard = set(reporting_nodes(snapshot))
    silent = [(-node.last_slice_s, name) for name, node in snapshot.nodes.items()
              if name not in heard]  # fmt: skip
    return [name for _, name in sorted(silent)][:MAX_SILENT]


def state_of(snapshot: Snapshot, degraded: Iterable[Degradation]) -> TelemetryState:
    """Return the state of one analyzer; ``degraded`` is what the collectors miss."""
    reporting = reporting_nodes(snapshot)
    learning = sum(snapshot.nodes[name].learning for name in reporting)
    silent = tuple(silent_nodes(snapshot))
    lost = (*snapshot.degraded, *degraded)
    return TelemetryState(len(reporting), learning, lost, silent)


def merged(states: Iterable[TelemetryState]) -> TelemetryState:
    """Return the sum of the states of several analyzers."""
    states = list(states)
    in_turn = chain.from_iterable(zip_longest(*(state.silent for state in states)))
    silent = dict.fromkeys(name for name in in_turn if name is not None)
    return TelemetryState(
        sum(state.reporting for state in states),
        sum(state.learning for state in states),
        tuple(summed((state.degraded for state in states), MAX_DEGRADATIONS)),
        tuple(silent)[:MAX_SILENT],
    )


class StateStore:
    """The states of a profile's analyzers, a Redis hash.

    Methods raise what redis-py raises when Redis is unavailable.
    """

    def __init__(self, client: redis.Redis, profile: str, owner: str) -> None:
        self._client, self._profile, self._owner = client, profile, owner
        self._records = NodeRecords(client, profile)
        self._key = fleet_key(profile, "states")

    def check_origin(self, is_proven: IsProven) -> None:
        """Use only what proves its origin of what collectors report."""
        self._records = NodeRecords(self._client, self._profile, is_proven)

    def degraded(self, nodes: Iterable[str]) -> list[Degradation]:
        """Return what the collectors of these nodes report as missing."""
        names = sorted(nodes)
        found: list[list[Degradation]] = []
        for start in range(0, len(names), _BATCH):
            batch = names[start : start + _BATCH]
            reports = self._records.get(STATUS, batch)
            found += [
                degradations(name, data) for name, data in zip(batch, reports, strict=True) if data
            ]
        return summed(found, MAX_DEGRADATIONS)

    def put(self, state: TelemetryState) -> None:
        """Write this analyzer's state, dated by the server: the hosts' clocks may differ."""
        degraded = [list(each) for each in state.degraded]
        row = [self._now(), state.reporting, state.learning, degraded, state.silent]
        with self._client.pipeline(transaction=False) as pipe:
            pipe.hset(self._key, self._owner, json.dumps(row))
            pipe.expire(self._key, _KEPT_SECONDS)
            pipe.execute()

    def get(self) -> TelemetryState:
        """Return the sum of all fresh states; remove old ones."""
        rows = get_all_fields(self._client, self._key, _MOST_BYTES)
        now = self._now()
        fresh = []
        for owner, data in rows.items():
            found = _parsed(data)
            # the server dated it: a time to come is that of nobody
            if found is not None and abs(now - found[0]) < FRESH_SECONDS:
                fresh.append(found[1])
            elif found is None or not 0 <= now - found[0] <= _KEPT_SECONDS:
                self._client.hdel(self._key, owner)
        return merged(fresh)

    def drop(self) -> None:
        """Remove this analyzer's state when it ends."""
        self._client.hdel(self._key, self._owner)

    def _now(self) -> float:
        seconds, micros = self._client.time()
        return float(seconds) + micros / 1e6


def _parsed(data: Limited) -> tuple[float, TelemetryState] | None:
    if not isinstance(data, bytes):  # longer than any state
        return None
    try:
        # analyzers of earlier versions name no silent nodes
        time_s, reporting, learning, degraded, *rest = foreign_json.loads(data, _MOST_BYTES)
        found = tuple(Degradation(str(reason), int(n), str(text)) for reason, n, text in degraded)
        silent = tuple(map(str, rest[0])) if rest else ()
        return float(time_s), TelemetryState(int(reporting), int(learning), found, silent)
    except (ValueError, TypeError):
        return None
