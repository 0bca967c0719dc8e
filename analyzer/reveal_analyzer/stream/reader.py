"""The slices of the nodes this analyzer is responsible for, each once and in order.

``StreamReader.poll`` is the whole loop: keep the leases, take over shards, read what is new,
decode, put in order.  It never raises for Redis or for a message: an outage is waited out, a
message that cannot be used is acknowledged, counted and logged.
"""

from __future__ import annotations

import json
import logging
import time
from collections import Counter, deque
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import NamedTuple, Protocol

from reveal_analyzer.kernels import backend
from reveal_analyzer.stream.channel_tables import Known, Tables, WaitingRoom
from reveal_analyzer.stream.connection import OUTAGE, Link, connect
from reveal_analyzer.stream.consumer import BATCH, Consumer, Entry, by_node
from reveal_analyzer.stream.leases import Leases, Timing
from reveal_analyzer.stream.poll_schedule import Rota
from reveal_analyzer.stream.sequence import Progress
from reveal_contract import wire
from reveal_contract.channels import ChannelTable
from reveal_contract.names import FIELD_DATA, FIELD_NODE, SUBJECTS_KEY, shard
from reveal_contract.subjects import Identity, from_rows

log = logging.getLogger(__name__)

TICK_SECONDS = 0.05
REFILL_SECONDS = 60.0
ACK_SECONDS = 0.5  # a shard's acknowledgements in one command: each costs half as much as a read
LOGGED_REFUSALS = 20  # a minute; all are counted
_DATA, _NODE = FIELD_DATA.encode(), FIELD_NODE.encode()


class StreamSettings(Protocol):
    """What the reader needs of ``AnalyzerSettings``."""

    @property
    def redis_url(self) -> str: ...

    @property
    def profile(self) -> str: ...


class Received(NamedTuple):
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

    Raises ``AddressError`` for an address that is none; afterwards nothing but bugs.
    """

    def __init__(
        self,
        settings: StreamSettings,
        owner: str,
        *,
        timing: Timing | None = None,
        refill_seconds: float = REFILL_SECONDS,
        ack_seconds: float = ACK_SECONDS,
    ) -> None:
        client = connect(settings.redis_url)
        self.link = Link(client)
        self.counts = Counts()
        self.tables = Tables()
        self._consumer = Consumer(client, settings.profile, owner)
        self._leases = Leases(client, settings.profile, owner, timing or Timing(), self._idle)
        self._refill, self._ack_seconds = refill_seconds, ack_seconds
        self._progress: dict[str, Progress] = {}
        self._waiting = WaitingRoom()
        self._to_take: deque[int] = deque()
        self._rota = Rota()
        self._backlog: deque[Entry] = deque()  # read, not looked at
        self._in_hand: dict[int, set[bytes]] = {}  # read and not done with, here or at the caller
        self._owed: dict[int, dict[bytes, None]] = {}  # acknowledgements to be sent, in order
        self._settled = 0.0  # when they were sent last
        self._lost_nodes: list[str] = []
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

    def subjects(self, node: str) -> tuple[Identity, ...]:
        """Who the node's subjects are by its last announcement; nobody where none is known.

        A question to Redis: for when a finding is told, not for each slice.
        """
        try:
            text = self.link.client.hget(SUBJECTS_KEY, node)
            return from_rows(json.loads(text)) if isinstance(text, bytes) else ()
        except (*OUTAGE, ValueError, RecursionError) as error:
            log.warning("subjects of %s are not known: %s", node, error)
            return ()

    def poll(self, most: int = BATCH) -> list[Received]:
        """The slices that came since the last call, after the rest of a tick of 50 ms.

        A backlog comes in portions of ``most`` slices, without ticks between them.
        """
        due = self.link.due()
        if not (due and self._backlog):  # the tick of the read goes on meanwhile
            time.sleep(max(0.0, min(TICK_SECONDS, self._next_tick - time.monotonic())))
            self._next_tick = time.monotonic() + TICK_SECONDS
        out: list[Received] = []
        if due or self.link.due():
            try:
                self._turn(out, most)
                self.link.up()
            except OUTAGE as error:
                self._recover = True
                self._leases.hurry()
                self.link.down(error)
        return out

    def ack(self, received: Iterable[Received]) -> None:
        """These are done with: they will not come again.  Sent with those of a moment."""
        for one in received:
            self._done(one)
        if self.link.connected:
            try:
                self._settle_later()
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

    def _turn(self, out: list[Received], most: int) -> None:
        if self._leases.due():
            self._settle()  # what is owed of a shard keeps it from being handed over
            changes = self._leases.beat()
            self._drop(changes.lost)
            self._to_take.extend(changes.gained)
        if not self._backlog:
            self._settle_later()
            self._read(set(self._leases.held()))
        for _ in range(min(most, len(self._backlog))):
            self._accept(self._backlog.popleft(), out)
        self._seat(out)
        self._settle_later()
        if self._to_take:
            self._next_tick = 0.0  # there is more at once

    def _read(self, held: set[int]) -> None:
        """Fill the backlog: what is unfinished first, then what came since."""
        if self._recover:
            self._queue(self._consumer.pending(held - set(self._to_take)))
            self._recover = False
        while self._to_take and len(self._backlog) < BATCH:
            number = self._to_take[0]
            if number in held:
                self._queue(by_node(self._consumer.take_over(number, self._refill)))
                self._rota.active([number], time.monotonic())
            self._to_take.popleft()
        if not self._backlog:
            self._queue(self._fresh(held - set(self._to_take)))

    def _queue(self, entries: Iterable[Entry]) -> None:
        """Into the backlog with what is neither there, nor with the caller, nor done with."""
        for entry in entries:
            hand = self._in_hand.setdefault(entry.shard, set())
            if entry.history:
                self._backlog.append(entry)
            elif entry.id not in hand and entry.id not in self._owed.get(entry.shard, ()):
                hand.add(entry.id)
                self._backlog.append(entry)

    def _fresh(self, shards: set[int]) -> list[Entry]:
        now = time.monotonic()
        asked = self._rota.next(shards, now)
        entries = self._consumer.fresh(asked)
        self._rota.read(asked, Counter(entry.shard for entry in entries), now)
        if self._rota.behind:
            self._next_tick = 0.0
        return by_node(entries) if len(asked) == 1 else entries

    def _accept(self, entry: Entry, out: list[Received]) -> None:
        if not entry.fields:
            self.counts.trimmed += 1
            self._done(entry)
            return
        try:
            node, key = _peek(entry)
        except wire.WireError as error:
            self._refuse(entry, str(error))
            return
        known = self.tables.get(key)
        if node in self._waiting or known is None:
            self._waiting.add(entry, node, key)
        else:
            self._deliver(entry, known, out)

    def _seat(self, out: list[Received]) -> None:
        """Deliver waiting slices whose table has been announced, refuse those past waiting."""
        if not len(self._waiting):
            return
        self.tables.fetch(self.link.client, self._waiting.wanted())
        for parked, known in self._waiting.ready(self.tables):
            self._deliver(parked.entry, known, out)
        for parked in self._waiting.overdue():
            key = parked.table.hex()
            self._refuse(parked.entry, f"channel table {key} has not been announced")

    def _deliver(self, entry: Entry, known: Known, out: list[Received]) -> None:
        data = entry.fields[_DATA]
        try:
            message = _decode(data, known)
        except wire.WireError as error:
            self._refuse(entry, str(error))
            return
        place = self._progress.setdefault(message.node, Progress()).accept(message)
        if place.repeat:
            self.counts.repeated += 1
            self._done(entry)
            return
        if not entry.history:
            self.counts.received += 1
            self.counts.missing += place.gap
            self.counts.restarts += place.restarted
        out.append(
            Received(
                message.node, message, known.table, data, entry.id, entry.shard,
                place.gap, place.restarted, entry.history,
            )
        )  # fmt: skip

    def _refuse(self, entry: Entry, reason: str) -> None:
        if entry.history:
            return  # its first reader said so already
        self.counts.refused += 1
        self._done(entry)
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
        self._backlog = deque(entry for entry in self._backlog if entry.shard not in gone)
        self._waiting.forget(gone)
        nodes = [node for node in self._progress if shard(node) in gone]
        for node in nodes:
            del self._progress[node]
        self._lost_nodes += nodes

    def _done(self, one: Entry | Received) -> None:
        """It is to be acknowledged, unless it was long ago."""
        if not one.history:
            self._in_hand.get(one.shard, set()).discard(one.id)
            self._owed.setdefault(one.shard, {})[one.id] = None

    def _settle_later(self) -> None:
        """What was done with in a moment is sent together, and what was read together."""
        if not self._backlog and time.monotonic() >= self._settled + self._ack_seconds:
            self._settle()

    def _settle(self) -> None:
        self._settled = time.monotonic()
        if self._owed:
            self._consumer.acknowledge(self._owed)
            self._owed = {}

    def _idle(self, number: int) -> bool:
        return not self._in_hand.get(number) and number not in self._owed


def _peek(entry: Entry) -> tuple[str, bytes]:
    """Node and table key; raises ``WireError`` for what this shard cannot hold."""
    data = entry.fields.get(_DATA)
    if data is None:
        raise wire.WireError(f"it has no field {FIELD_DATA!r}")
    node, key = wire.peek(data)
    if shard(node) != entry.shard:
        raise wire.WireError(f"node {node!r} belongs to shard {shard(node)}")
    return node, key


def _decode(data: bytes, known: Known) -> wire.Message:
    """The message; raises ``WireError`` when its table and itself disagree, too."""
    message = wire.decode(data, known.gauges, backend.current().unpack)
    if message.slow.size != len(known.table.slow):
        raise wire.WireError(
            f"table has {len(known.table.slow)} slow channels, message {message.slow.size}"
        )
    return message
