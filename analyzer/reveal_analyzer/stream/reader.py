"""The slices of the nodes that this analyzer owns, each once and in order.

``StreamReader.poll`` does everything: it renews the leases, takes over shards, reads new entries,
decodes and orders them.  It never raises because of Redis or a message: it waits during an outage,
and a message that cannot be used is acknowledged, counted and logged.
"""

from __future__ import annotations

import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import NamedTuple, Protocol

from reveal_analyzer.kernels import backend
from reveal_analyzer.state.store import NodeStateStore, positions_of
from reveal_analyzer.stream.channel_tables import ChannelTables, DecodableTable, WaitingRoom
from reveal_analyzer.stream.connection import OUTAGE, RedisConnection, connect
from reveal_analyzer.stream.consumer import BATCH, StreamConsumer, StreamEntry, by_node
from reveal_analyzer.stream.leases import Leases, LeaseTiming
from reveal_analyzer.stream.poll_schedule import PollSchedule
from reveal_analyzer.stream.sequence import NodeSequence
from reveal_analyzer.telemetry.node_records import node_subjects
from reveal_contract import wire
from reveal_contract.channels import ChannelTable
from reveal_contract.names import FIELD_DATA, FIELD_NODE, shard
from reveal_contract.subjects import Identity

log = logging.getLogger(__name__)

POLL_SECONDS = 0.05
REFILL_SECONDS = 60.0
ACK_SECONDS = 0.5  # XACKs are batched: each takes half the time of a read
LOGGED_REFUSALS = 20  # in a minute; all are counted
_DATA, _NODE = FIELD_DATA.encode(), FIELD_NODE.encode()


class StreamSettings(Protocol):
    """What the reader needs of ``AnalyzerSettings``."""

    @property
    def redis_url(self) -> str: ...

    @property
    def profile(self) -> str: ...


class Received(NamedTuple):
    """One slice of one node.

    ``gap`` is the number of slices missing before it.  ``restarted``: the node booted, or its
    collector restarted, since the slice before.  ``history``: the last owner of the shard analyzed
    it; it only fills the windows, and nothing of it may be reported.
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
class StreamCounts:
    """Counts since the reader started."""

    received: int = 0
    missing: int = 0
    repeated: int = 0
    restarts: int = 0
    refused: int = 0  # not decodable, or its table was never announced
    trimmed: int = 0  # removed from the stream before they were acknowledged


class StreamReader:
    """Reads the shards it has leases on.  One thread; ``owner`` is unique among analyzers.

    Raises ``AddressError`` for an invalid address.
    """

    def __init__(
        self,
        settings: StreamSettings,
        owner: str,
        *,
        timing: LeaseTiming | None = None,
        refill_seconds: float = REFILL_SECONDS,
        ack_seconds: float = ACK_SECONDS,
    ) -> None:
        client = connect(settings.redis_url)
        self.states = NodeStateStore(client, settings.profile)
        self._profile = settings.profile
        self.connection = RedisConnection(client)
        self.counts = StreamCounts()
        self.tables = ChannelTables()
        self._consumer = StreamConsumer(client, settings.profile, owner)
        self._leases = Leases(
            client, settings.profile, owner, timing or LeaseTiming(), self._can_leave
        )
        self._refill, self._ack_seconds = refill_seconds, ack_seconds
        self._sequences: dict[str, NodeSequence] = {}
        self._waiting = WaitingRoom()
        self._to_take: deque[int] = deque()
        self._schedule = PollSchedule()
        self._backlog: deque[StreamEntry] = deque()  # read, not decoded
        self._in_flight: dict[int, set[bytes]] = {}  # read and not processed yet
        self._unacknowledged: dict[int, dict[bytes, None]] = {}  # ids to acknowledge, in order
        self._acks_flushed_s = 0.0  # when XACKs were sent last
        self._lost_nodes: list[str] = []
        self._saved_states: dict[str, bytes] = {}  # of shards taken over
        self._save_shard: Callable[[int], bool] = lambda _: True
        self._next_poll_s = 0.0
        self._recover = False
        self._refusals = (0.0, 0)

    @property
    def connected(self) -> bool:
        """Whether Redis responds."""
        return self.connection.connected

    @property
    def since(self) -> float:
        """When ``connected`` last changed, in seconds since the epoch."""
        return self.connection.since

    @property
    def shards(self) -> list[int]:
        """The shards owned now, including those about to be taken over."""
        return self._leases.current()

    def status(self) -> dict[str, int]:
        """Return all counts by name, for metrics."""
        return {
            **asdict(self.counts),
            "waiting": len(self._waiting),
            "groups_recreated": self._consumer.recreated,
            "outages": self.connection.outages,
            "shards": len(self.shards),
        }

    def subjects(self, node: str) -> tuple[Identity, ...]:
        """Return the node's subjects as announced last; none where they are not known.

        This sends a command to Redis: use it for a finding, not for each slice.
        """
        try:
            return node_subjects(self.connection.client, self._profile, [node])[node]
        except OUTAGE as error:
            log.warning("subjects of node %s are not known: %s", node, error)
            return ()

    def poll(self, most: int = BATCH) -> list[Received]:
        """Wait for the rest of 50 ms, then return the slices since the last call.

        A backlog is returned in batches of ``most`` slices, without waiting between them.
        """
        due = self.connection.due()
        if not (due and self._backlog):  # a backlog needs no wait
            time.sleep(max(0.0, min(POLL_SECONDS, self._next_poll_s - time.monotonic())))
            self._next_poll_s = time.monotonic() + POLL_SECONDS
        out: list[Received] = []
        if due or self.connection.due():
            try:
                self._poll_once(out, most)
                self.connection.succeeded()
            except OUTAGE as error:
                self._recover = True
                self._leases.hurry()
                self.connection.failed(error)
        return out

    def ack(self, received: Iterable[Received]) -> None:
        """Mark as processed: they are not delivered again.  XACKs are batched every 0.5 s."""
        for each in received:
            self._acknowledge_later(each)
        if self.connection.connected:
            try:
                self._flush_acks_when_due()
            except OUTAGE as error:
                self._recover = True
                self.connection.failed(error)

    def lost_nodes(self) -> list[str]:
        """Return the nodes that another analyzer reads since the last call: drop their state."""
        nodes, self._lost_nodes = self._lost_nodes, []
        return nodes

    def saved_states(self) -> dict[str, bytes]:
        """Return the saved states of the nodes of the shards taken over since the last call.

        The slices that a state covers are not delivered again.
        """
        states, self._saved_states = self._saved_states, {}
        return states

    def before_hand_over(self, save: Callable[[int], bool]) -> None:
        """Call ``save`` with each shard that another analyzer shall have; it stays while false."""
        self._save_shard = save

    def close(self) -> None:
        """Send acknowledgements, release the leases, disconnect; Redis may be unavailable."""
        if self.connection.connected:
            try:
                self._flush_acks()
                self._leases.release()
            except OUTAGE as error:
                log.info("Redis is unavailable, the leases expire by themselves: %s", error)
        self.connection.client.close()

    def _poll_once(self, out: list[Received], most: int) -> None:
        if self._leases.due():
            self._flush_acks()  # a shard with unsent acknowledgements cannot be handed over
            changes = self._leases.beat()
            self._drop(changes.lost)
            self._to_take.extend(changes.gained)
        if not self._backlog:
            self._flush_acks_when_due()
            self._read(set(self._leases.current()))
        for _ in range(min(most, len(self._backlog))):
            self._accept(self._backlog.popleft(), out)
        self._deliver_waiting(out)
        self._flush_acks_when_due()
        if self._to_take:
            self._next_poll_s = 0.0  # there is more to read already

    def _read(self, owned: set[int]) -> None:
        """Fill the backlog: unfinished entries first, then new ones."""
        if self._recover:
            self._queue(self._consumer.pending(owned - set(self._to_take)))
            self._recover = False
        while self._to_take and len(self._backlog) < BATCH:
            number = self._to_take[0]
            if number in owned:
                self._queue(by_node(self._take_over(number)))
                self._schedule.active([number], time.monotonic())
            self._to_take.popleft()
        if not self._backlog:
            self._queue(self._fresh(owned - set(self._to_take)))

    def _take_over(self, number: int) -> list[StreamEntry]:
        """Return the slices of a shard that follow on what is saved of its nodes."""
        states = self.states.of_shard(number)
        positions = positions_of(states)
        saved = {node: last.entry.encode() for node, last in positions.items() if last.entry}
        entries = self._consumer.take_over(number, self._refill, saved)
        # a slice that the state covers may have been left unacknowledged: it is a repeat
        for node, last in positions.items():
            self._sequences[node] = NodeSequence.after(last.boot, last.sequence, last.start_ns)
        self._saved_states |= states
        return entries

    def _queue(self, entries: Iterable[StreamEntry]) -> None:
        """Add entries to the backlog, unless they are in flight or processed already."""
        for entry in entries:
            in_flight = self._in_flight.setdefault(entry.shard, set())
            if entry.history:
                self._backlog.append(entry)
            elif entry.id not in in_flight and entry.id not in self._unacknowledged.get(
                entry.shard, ()
            ):
                in_flight.add(entry.id)
                self._backlog.append(entry)

    def _fresh(self, shards: set[int]) -> list[StreamEntry]:
        now = time.monotonic()
        asked = self._schedule.next(shards, now)
        entries = self._consumer.fresh(asked)
        self._schedule.read(asked, Counter(entry.shard for entry in entries), now)
        if self._schedule.behind:
            self._next_poll_s = 0.0
        return by_node(entries) if len(asked) == 1 else entries

    def _accept(self, entry: StreamEntry, out: list[Received]) -> None:
        if not entry.fields:
            self.counts.trimmed += 1
            self._acknowledge_later(entry)
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

    def _deliver_waiting(self, out: list[Received]) -> None:
        """Deliver waiting slices whose table is known now; refuse those that waited too long."""
        if not len(self._waiting):
            return
        self.tables.fetch(self.connection.client, self._waiting.needed_tables())
        for parked, known in self._waiting.ready(self.tables):
            self._deliver(parked.entry, known, out)
        for parked in self._waiting.overdue():
            key = parked.table.hex()
            self._refuse(parked.entry, f"channel table {key} has not been announced")

    def _deliver(self, entry: StreamEntry, known: DecodableTable, out: list[Received]) -> None:
        data = entry.fields[_DATA]
        try:
            message = _decode(data, known)
        except wire.WireError as error:
            self._refuse(entry, str(error))
            return
        position = self._sequences.setdefault(message.node, NodeSequence()).accept(message)
        if position.repeat:
            self.counts.repeated += 1
            self._acknowledge_later(entry)
            return
        if not entry.history:
            self.counts.received += 1
            self.counts.missing += position.gap
            self.counts.restarts += position.restarted
        out.append(
            Received(
                message.node, message, known.table, data, entry.id, entry.shard,
                position.gap, position.restarted, entry.history,
            )
        )  # fmt: skip

    def _refuse(self, entry: StreamEntry, reason: str) -> None:
        if entry.history:
            return  # its first reader counted and logged it
        self.counts.refused += 1
        self._acknowledge_later(entry)
        began_s, logged = self._refusals
        if time.monotonic() - began_s > 60:
            began_s, logged = time.monotonic(), 0
        if logged < LOGGED_REFUSALS:
            log.warning(
                "message %s of shard %d from %r refused: %s",
                entry.id.decode(), entry.shard, entry.fields.get(_NODE, b""), reason,
            )  # fmt: skip
        self._refusals = began_s, logged + 1

    def _drop(self, shards: Iterable[int]) -> None:
        gone = set(shards)
        if not gone:
            return
        log.info("another analyzer took over %d shards", len(gone))
        for number in gone:
            self._in_flight.pop(number, None)
            self._unacknowledged.pop(number, None)
        self._backlog = deque(entry for entry in self._backlog if entry.shard not in gone)
        self._waiting.forget(gone)
        nodes = [node for node in self._sequences if shard(node) in gone]
        for node in nodes:
            del self._sequences[node]
        self._lost_nodes += nodes

    def _acknowledge_later(self, entry: StreamEntry | Received) -> None:
        """Queue an acknowledgement; history was acknowledged by its first reader."""
        if not entry.history:
            self._in_flight.get(entry.shard, set()).discard(entry.id)
            self._unacknowledged.setdefault(entry.shard, {})[entry.id] = None

    def _flush_acks_when_due(self) -> None:
        """Send pending acknowledgements once per interval, never in the middle of a batch."""
        if not self._backlog and time.monotonic() >= self._acks_flushed_s + self._ack_seconds:
            self._flush_acks()

    def _flush_acks(self) -> None:
        self._acks_flushed_s = time.monotonic()
        if self._unacknowledged:
            self._consumer.acknowledge(self._unacknowledged)
            self._unacknowledged = {}

    def _can_leave(self, number: int) -> bool:
        """Whether all slices of a shard are processed, and what they taught is saved."""
        idle = not self._in_flight.get(number) and number not in self._unacknowledged
        return idle and self._save_shard(number)


def _peek(entry: StreamEntry) -> tuple[str, bytes]:
    """Return node and table key; raises ``WireError`` for what this shard cannot hold."""
    data = entry.fields.get(_DATA)
    if data is None:
        raise wire.WireError(f"it has no field {FIELD_DATA!r}")
    node, key = wire.peek(data)
    if shard(node) != entry.shard:
        raise wire.WireError(f"node {node!r} belongs to shard {shard(node)}")
    return node, key


def _decode(data: bytes, known: DecodableTable) -> wire.Message:
    """Return the message; raises ``WireError``, also where it disagrees with its table."""
    message = wire.decode(data, known.gauges, backend.current().unpack)
    if message.slow.size != len(known.table.slow):
        raise wire.WireError(
            f"table has {len(known.table.slow)} slow channels, message {message.slow.size}"
        )
    return message
