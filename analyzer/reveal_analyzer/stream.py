"""The slices of the nodes this analyzer is responsible for, each once and in order.

``StreamReader.poll`` is the whole loop: keep the leases, take over shards, read what is new,
decode, put in order.  It never raises for Redis or for a message: an outage is waited out, a
message that cannot be used is acknowledged, counted and logged.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Protocol

from reveal_analyzer.consumer import BATCH, Consumer, Entry
from reveal_analyzer.leases import Leases, Timing
from reveal_analyzer.link import OUTAGE, Link, connect
from reveal_analyzer.sequence import Progress
from reveal_analyzer.tables import Known, Tables, WaitingRoom
from reveal_contract import wire
from reveal_contract.channels import ChannelTable
from reveal_contract.names import FIELD_DATA, FIELD_NODE, shard

log = logging.getLogger(__name__)

TICK_SECONDS = 0.05
QUIET_TICKS = 10  # a shard without news is asked every tenth tick: 64 questions a tick cost 2 %
ACTIVE_SECONDS = 5.0
REFILL_SECONDS = 60.0
TAKE_OVER_ENTRIES = 2_000  # a poll that has read so many leaves the other shards to the next
LOGGED_REFUSALS = 20  # a minute; all are counted
_DATA, _NODE = FIELD_DATA.encode(), FIELD_NODE.encode()


class StreamSettings(Protocol):
    """What the reader needs of ``AnalyzerSettings``."""

    @property
    def redis_url(self) -> str: ...

    @property
    def profile(self) -> str: ...


@dataclass(frozen=True)
class Received:
    """One slice of one node.

    ``gap`` is the number of slices missing before it.  ``restarted``: the node booted or its
    collector started anew since the slice before.  ``history``: it was judged before (by the
    shard's last owner) and only fills the windows; nothing of it may be reported.
    """

    node: str
    message: wire.Message
    table: ChannelTable
    data: bytes
    id: bytes
    shard: int
    gap: int = 0
    restarted: bool = False
    history: bool = False


@dataclass
class Counts:
    """What the reader met since it started."""

    received: int = 0
    missing: int = 0
    repeated: int = 0
    restarts: int = 0
    refused: int = 0  # undecodable, or of a table that never came
    trimmed: int = 0  # gone from the stream before they were acknowledged


class StreamReader:
    """Reads the shards it holds leases on.  One thread; ``owner`` is unique among analyzers.

    Raises ``LinkError`` for an address that is none; afterwards nothing but bugs.
    """

    def __init__(
        self,
        settings: StreamSettings,
        owner: str,
        *,
        timing: Timing | None = None,
        refill_seconds: float = REFILL_SECONDS,
    ) -> None:
        client = connect(settings.redis_url)
        self.link = Link(client)
        self.counts = Counts()
        self.tables = Tables()
        self._consumer = Consumer(client, settings.profile, owner)
        self._leases = Leases(client, settings.profile, owner, timing or Timing(), self._idle)
        self._refill = refill_seconds
        self._progress: dict[str, Progress] = {}
        self._waiting = WaitingRoom()
        self._to_take: deque[int] = deque()
        self._active: dict[int, float] = {}
        self._in_hand: dict[int, set[bytes]] = {}  # given to the caller, not acknowledged
        self._owed: dict[int, list[bytes]] = {}  # acknowledgements to be sent
        self._lost_nodes: list[str] = []
        self._tick = 0
        self._next_tick = 0.0
        self._recover = False
        self._refusals = (0.0, 0)

    @property
    def connected(self) -> bool:
        return self.link.connected

    @property
    def since(self) -> float:
        """When ``connected`` last changed, in seconds since the epoch."""
        return self.link.since

    @property
    def shards(self) -> list[int]:
        """The shards held now, those about to be taken over included."""
        return self._leases.held()

    def status(self) -> dict[str, int]:
        """All counts by name, for metrics and summaries."""
        return {
            **asdict(self.counts),
            "waiting": len(self._waiting),
            "groups_recreated": self._consumer.recreated,
            "outages": self.link.outages,
            "shards": len(self.shards),
        }

    def poll(self) -> list[Received]:
        """The slices that came since the last call, after the rest of a tick of 50 ms."""
        time.sleep(max(0.0, min(TICK_SECONDS, self._next_tick - time.monotonic())))
        self._next_tick = time.monotonic() + TICK_SECONDS
        out: list[Received] = []
        if self.link.due():
            try:
                self._turn(out)
                self.link.up()
            except OUTAGE as error:
                self._recover = True
                self._leases.hurry()
                self.link.down(error)
        return out

    def ack(self, received: Iterable[Received]) -> None:
        """These are done with: they will not come again.  Sent with the next poll if need be."""
        for one in received:
            if not one.history:
                self._in_hand.get(one.shard, set()).discard(one.id)
                self._owe(one.shard, one.id)
        if self.link.connected:
            try:
                self._settle()
            except OUTAGE as error:
                self._recover = True
                self.link.down(error)

    def lost_nodes(self) -> list[str]:
        """Nodes that another analyzer reads since the last call: what is known of them is stale."""
        nodes, self._lost_nodes = self._lost_nodes, []
        return nodes

    def close(self) -> None:
        """Send what is owed, give the leases back, disconnect; harmless when Redis is away."""
        if self.link.connected:
            try:
                self._settle()
                self._leases.release()
            except OUTAGE as error:
                log.info("redis is away, leases run out by themselves: %s", error)
        self.link.client.close()

    def _turn(self, out: list[Received]) -> None:
        if self._leases.due():
            changes = self._leases.beat()
            self._drop(changes.lost)
            self._to_take.extend(changes.gained)
        self._settle()
        held = set(self._leases.held())
        if self._recover:
            self._accept_all(self._consumer.pending(held - set(self._to_take)), out)
            self._recover = False
        self._take_over(held, out)
        self._accept_all(self._fresh(held - set(self._to_take)), out)
        self._seat(out)
        self._settle()

    def _take_over(self, held: set[int], out: list[Received]) -> None:
        before = len(out)
        while self._to_take and len(out) - before < TAKE_OVER_ENTRIES:
            number = self._to_take[0]
            if number in held:
                self._accept_all(self._consumer.take_over(number, self._refill), out)
                self._active[number] = time.monotonic()
            self._to_take.popleft()
        if self._to_take:
            self._next_tick = 0.0

    def _fresh(self, shards: set[int]) -> list[Entry]:
        now, turn = time.monotonic(), self._tick % QUIET_TICKS
        self._tick += 1
        asked = [
            number
            for number in shards
            if number % QUIET_TICKS == turn or now - self._active.get(number, -1e9) < ACTIVE_SECONDS
        ]
        entries = self._consumer.fresh(asked)
        self._active.update(dict.fromkeys({entry.shard for entry in entries}, now))
        if len(entries) >= BATCH:
            self._next_tick = 0.0  # there may be more at once
        return entries

    def _accept_all(self, entries: Iterable[Entry], out: list[Received]) -> None:
        unsettled = {number: set(ids) for number, ids in self._owed.items()}
        for entry in entries:
            known_to_caller = self._in_hand.get(entry.shard, ())
            if entry.id not in known_to_caller and entry.id not in unsettled.get(entry.shard, ()):
                self._accept(entry, out)

    def _accept(self, entry: Entry, out: list[Received]) -> None:
        if not entry.fields:
            self.counts.trimmed += 1
            self._owe(entry.shard, entry.id)
            return
        try:
            message = _message(entry)
        except wire.WireError as error:
            self._refuse(entry, str(error))
            return
        known = self.tables.get(message.table)
        if message.node in self._waiting or known is None:
            self._in_hand.setdefault(entry.shard, set()).add(entry.id)
            self._waiting.add(entry, message)
        else:
            self._deliver(entry, message, known, out)

    def _seat(self, out: list[Received]) -> None:
        """Deliver waiting slices whose table has been announced, refuse those past waiting."""
        if not len(self._waiting):
            return
        self.tables.fetch(self.link.client, self._waiting.wanted())
        for parked, known in self._waiting.ready(self.tables):
            self._deliver(parked.entry, parked.message, known, out)
        for parked in self._waiting.overdue():
            self._in_hand[parked.entry.shard].discard(parked.entry.id)
            key = parked.message.table.hex()
            self._refuse(parked.entry, f"channel table {key} has not been announced")

    def _deliver(self, entry: Entry, raw: wire.Message, known: Known, out: list[Received]) -> None:
        hand = self._in_hand.setdefault(entry.shard, set())
        hand.discard(entry.id)
        try:
            message = _fitted(raw, known)
        except wire.WireError as error:
            self._refuse(entry, str(error))
            return
        place = self._progress.setdefault(message.node, Progress()).accept(message)
        if place.repeat:
            self.counts.repeated += 1
            self._owe_unless_history(entry)
            return
        if not entry.history:
            hand.add(entry.id)
            self.counts.received += 1
            self.counts.missing += place.gap
            self.counts.restarts += place.restarted
        out.append(
            Received(
                message.node, message, known.table, entry.fields[_DATA], entry.id, entry.shard,
                place.gap, place.restarted, entry.history,
            )
        )  # fmt: skip

    def _refuse(self, entry: Entry, reason: str) -> None:
        if entry.history:
            return  # its first reader said so already
        self.counts.refused += 1
        self._owe(entry.shard, entry.id)
        began, said = self._refusals
        if time.monotonic() - began > 60:
            began, said = time.monotonic(), 0
        if said < LOGGED_REFUSALS:
            log.warning(
                "message %s of shard %d from %r refused: %s",
                entry.id.decode(), entry.shard, entry.fields.get(_NODE, b""), reason,
            )  # fmt: skip
        self._refusals = began, said + 1

    def _drop(self, shards: Iterable[int]) -> None:
        gone = set(shards)
        if not gone:
            return
        log.info("%d shards went to another analyzer", len(gone))
        for number in gone:
            self._in_hand.pop(number, None)
            self._owed.pop(number, None)
        self._waiting.forget(gone)
        nodes = [node for node in self._progress if shard(node) in gone]
        for node in nodes:
            del self._progress[node]
        self._lost_nodes += nodes

    def _owe_unless_history(self, entry: Entry) -> None:
        if not entry.history:
            self._owe(entry.shard, entry.id)

    def _owe(self, number: int, at: bytes) -> None:
        self._owed.setdefault(number, []).append(at)

    def _settle(self) -> None:
        if self._owed:
            self._consumer.acknowledge(self._owed)
            self._owed = {}

    def _idle(self, number: int) -> bool:
        return not self._in_hand.get(number) and number not in self._owed


def _message(entry: Entry) -> wire.Message:
    data = entry.fields.get(_DATA)
    if data is None:
        raise wire.WireError(f"it has no field {FIELD_DATA!r}")
    message = wire.decode(data)
    if shard(message.node) != entry.shard:
        raise wire.WireError(f"node {message.node!r} belongs to shard {shard(message.node)}")
    return message


def _fitted(message: wire.Message, known: Known) -> wire.Message:
    """The message with its levels; raises ``WireError`` when table and message disagree."""
    if message.slow.size != len(known.table.slow):
        raise wire.WireError(
            f"table has {len(known.table.slow)} slow channels, message {message.slow.size}"
        )
    return wire.levels(message, known.gauges)
