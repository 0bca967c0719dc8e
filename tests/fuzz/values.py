"""Damaged values in every key of Redis: what reads them goes on, and other nodes are analyzed.

    python tests/fuzz/values.py [COUNT]

Each of the COUNT (100,000) values is one that Reveal wrote, damaged, or of another type.  After it
the part of an analyzer that reads the key runs.  An exception ends the program; so does an outage,
and slices of a healthy node that are not delivered.
"""

from __future__ import annotations

import json
import logging
import random
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import redis
from messages import damaged

from reveal_analyzer.configuration.feed import FactsFeed
from reveal_analyzer.evidence.packing import packed
from reveal_analyzer.evidence.store import RedisEvidence
from reveal_analyzer.fleet.exchange import Exchange
from reveal_analyzer.fleet.leader import Leader
from reveal_analyzer.gangs.exchange import RankExchange
from reveal_analyzer.node import NodeAnalyzer
from reveal_analyzer.node_history import codec as history_codec
from reveal_analyzer.node_history.stores import RedisHistory
from reveal_analyzer.state.codec import Position, SavedState
from reveal_analyzer.state.codec import encode as encode_state
from reveal_analyzer.state.tree import StateError
from reveal_analyzer.stream.channel_tables import ChannelTables
from reveal_analyzer.stream.leases import Leases, LeaseTiming
from reveal_analyzer.stream.redis_connection import connect
from reveal_analyzer.telemetry.node_records import NodeRecords, node_shares, node_subjects
from reveal_analyzer.telemetry.states import StateStore, TelemetryState
from reveal_contract import names
from reveal_contract.recording import MAGIC, RecordingError
from reveal_contract.settings import AnalyzerSettings
from support.redis_server import launcher
from support.redis_streams import TABLE, Stream, message

COUNT = 100_000
PROFILE, NODE = "default", "n"
SHARD = names.shard(NODE)
HEALTHY = next(f"m{index}" for index in range(99) if names.shard(f"m{index}") != SHARD)
SAMPLES = MAGIC  # a recording without an entry
_EVERY = 500  # values between two slices of the healthy node
_TYPES = ("string", "hash", "list", "set", "zset", "stream")

Read = Callable[[], object]


class Target:
    """A key, a value that Reveal would write, and what reads it."""

    def __init__(self, key: str, value: bytes, read: Read, field: str = "") -> None:
        self.key, self.value, self.read, self.field = key, value, read, field

    def write(self, client: redis.Redis, dice: random.Random) -> str:
        """Damage the value, or put another type; return what was done."""
        if dice.random() < 0.02:
            return self._another_type(client, dice)
        value = damaged(dice, self.value) if self.value else dice.randbytes(8)
        if dice.random() < 0.1:
            value = dice.choice((b"", b"null", b"[]", b"{}", b"[[" * 5000, b"1e999", b"-1"))
        if self.field == "zset":
            client.delete(self.key)
            client.zadd(self.key, {value: dice.choice((0.0, -1.0, 1e300, float("inf")))})
        elif self.field:
            client.delete(self.key)
            client.hset(self.key, dice.choice((self.field, value)), value)
        else:
            client.set(self.key, value)
        return "damaged"

    def _another_type(self, client: redis.Redis, dice: random.Random) -> str:
        client.delete(self.key)
        kind = dice.choice(_TYPES)
        match kind:
            case "string":
                client.set(self.key, b"text")
            case "hash":
                client.hset(self.key, "field", "value")
            case "list":
                client.lpush(self.key, "a")
            case "set":
                client.sadd(self.key, "a")
            case "zset":
                client.zadd(self.key, {"a": 1})
            case _:
                client.xadd(self.key, {"a": "b"})
        return f"a {kind}"


class Parts:
    """The parts of an analyzer that read Redis, with what they write when all is well."""

    def __init__(self, stream: Stream, stack: ExitStack) -> None:
        self.stream, self.plain = stream, stream.client
        self.client = connect(stream.url)
        stack.callback(self.client.close)
        self.reader = stream.reader("two", refill_seconds=1.0)
        self._now = 0.0

    def targets(self) -> list[Target]:
        """Return all keys."""
        client, profile = self.client, PROFILE
        states, exchange = StateStore(client, profile, "one"), Exchange(client, profile)
        ranks, evidence = RankExchange(client, profile), RedisEvidence(client, profile, 600)
        summaries, own = exchange.summaries, ranks.ranks
        history = RedisHistory(client, profile, 1)
        facts = FactsFeed(NodeRecords(client, profile))
        node, fleet = names.node_key(profile, NODE), names.fleet_key
        states.put(TelemetryState(1, 0, (), (NODE,)))
        state = self.plain.hget(fleet(profile, "states"), "one")
        evidence.put("cpu-1", evidence.encoded(SAMPLES), {"id": "cpu-1"})

        def saved() -> None:
            for name, data in self.reader.states.of_shard(SHARD).items():
                with suppress(StateError):
                    self.reader.states.usable(name, data)

        def kept() -> None:
            evidence.unfinished()
            with suppress(RecordingError):
                evidence.get("cpu-1")
            evidence.put("cpu-2", b"data", None)

        def last_hour() -> None:
            with suppress(history_codec.PartError):
                list(history_codec.parts(history.read(NODE, 1)))
            history.append(NODE, 1, b"part")

        subjects = json.dumps([{"instance": "/a", "pod": "p", "namespace": "ns"}]).encode()
        shares = json.dumps([["/a", 1.0, 0.5]]).encode()
        saved_state = encode_state(_state())
        return [
            Target(names.node_states_key(profile, SHARD), saved_state, saved, NODE),
            Target(node, subjects, lambda: node_subjects(client, profile, [NODE]), names.SUBJECTS),
            Target(node, shares, lambda: node_shares(client, profile, NODE), names.CPU_SHARES),
            Target(node, b'{"missing":[{"source":"perf","reason":"x"}]}',
                   lambda: states.degraded([NODE, HEALTHY]), names.STATUS),
            Target(node, b'{"node":"n","cpu":{"model":"m"}}', lambda: self._facts(facts),
                   names.FACTS),
            Target(fleet(profile, "states"), state or b"", states.get, "one"),
            Target(fleet(profile), b"\x01" * 40, lambda: summaries.get(summaries.nodes()), NODE),
            Target(fleet(profile, "cases"), b"[{}]", exchange.cases.load),
            Target(fleet(profile, "groups"), b"[[]]", exchange.groups.load),
            Target(fleet(profile, "ranks"), b"[[1]]", lambda: own.get(own.nodes()), NODE),
            Target(fleet(profile, "rank-cases"), b"[{}]", ranks.cases.load),
            Target(fleet(profile, "leader"), b"one", Leader(client, profile, "me").renew),
            Target(names.owner_key(profile, SHARD), b"one", self._leases),
            Target(names.analyzers_key(profile), b"one", self._leases, "zset"),
            Target(names.evidence_key(profile, "cpu-1"), packed(SAMPLES), kept),
            Target(names.evidence_index_key(profile), b"cpu-1", kept, "zset"),
            Target(names.evidence_unfinished_key(profile), b'{"id":"cpu-1"}', kept, "cpu-1"),
            Target(names.history_key(profile, NODE, 1), b"\x28\xb5\x2f\xfd" * 9, last_hour),
            Target(names.table_key(profile, b"12345678"), TABLE.announcement(), self._table),
            Target(names.table_changes_key(profile, b"12345678", NODE), TABLE.announcement(),
                   self._table),
        ]  # fmt: skip

    def _facts(self, feed: FactsFeed) -> None:
        self._now += 1000.0
        feed.poll([NODE, HEALTHY], self._now)

    def _leases(self) -> None:
        timing = LeaseTiming(lease=0.2, beat=0.0, patience=0.0, settle=0.0)
        leases = Leases(self.client, PROFILE, "me", timing, lambda _: True)
        leases.beat()
        leases.beat()
        leases.release()

    def _table(self) -> None:
        ChannelTables(PROFILE).fetch(self.client, {b"12345678": [NODE]})

    def deliver(self, sequence: int) -> None:
        """Send a slice of the healthy node and wait until it is delivered."""
        self.stream.send(message(HEALTHY, sequence))
        ends = time.monotonic() + 10
        while time.monotonic() < ends:
            received = self.reader.poll()
            self.reader.ack(received)
            if any(each.message.sequence == sequence for each in received if each.node == HEALTHY):
                return
        raise AssertionError(f"slice {sequence} of the healthy node is not delivered")


def _state() -> SavedState:
    tree = NodeAnalyzer(NODE, AnalyzerSettings()).save()
    return SavedState(Position(NODE, b"b" * 16, 1, 1, "1-1"), int(time.time()), tree)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else COUNT
    logging.disable(logging.ERROR)
    dice, outcomes = random.Random(1), Counter[str]()
    begin = time.monotonic()
    with launcher() as launch, ExitStack() as stack:
        stream = Stream(f"unix://{launch().socket}", stack)
        stream.announce()
        parts = Parts(stream, stack)
        targets, values = parts.targets(), dict[str, Any]()
        for number in range(count):
            target = targets[number % len(targets)]
            outcome = target.write(stream.client, dice)
            outcomes[outcome] += 1
            values[target.key] = number
            target.read()
            stream.client.delete(target.key)
            if number % _EVERY == 0:
                parts.deliver(number // _EVERY)
        outages = parts.reader.status()["outages"]
        assert outages == 0, outages
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    for what, times in outcomes.most_common():
        sys.stdout.write(f"{times:9,}  {what}\n")
    sys.stdout.write(
        f"{count:,} values in {len(values)} keys in {time.monotonic() - begin:.0f} s, "
        f"at most {most} MB: all that reads them goes on\n"
    )


if __name__ == "__main__":
    main()
