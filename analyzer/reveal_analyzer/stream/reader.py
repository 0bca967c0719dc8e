"""The slices of the nodes that this analyzer owns, each once and in order.

``StreamReader.poll`` does everything: it renews the leases, takes over shards, reads new entries,
decodes and orders them.  It never raises because of Redis or a message: it waits during an outage,
and a message that cannot be used is acknowledged, counted and logged.
"""

from __future__ import annotations

import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable
from dataclasses import asdict
from typing import Protocol

from reveal_analyzer.state.store import NodeStateStore, positions_of
from reveal_analyzer.stream.acknowledgements import Acknowledgements
from reveal_analyzer.stream.channel_tables import ChannelTables
from reveal_analyzer.stream.consumer import (
    BATCH,
    StreamConsumer,
    StreamEntry,
    by_node,
    entries_per_stream,
    id_ms,
)
from reveal_analyzer.stream.kept_tables import DecodableTable
from reveal_analyzer.stream.leases import Leases, LeaseTiming
from reveal_analyzer.stream.poll_schedule import PollSchedule
from reveal_analyzer.stream.received import Received, StreamCounts
from reveal_analyzer.stream.redis_connection import OUTAGE, RedisConnection, connect
from reveal_analyzer.stream.refusals import RefusalLog
from reveal_analyzer.stream.sequence import NodeSequence, SlicePosition
from reveal_analyzer.stream.slice_admission import SliceAdmission
from reveal_analyzer.stream.slices import decode, peek
from reveal_analyzer.stream.trimmed import Gap, TrimmedSpans
from reveal_analyzer.stream.upkeep import StreamUpkeep
from reveal_analyzer.stream.waiting_slices import WaitingSlices
from reveal_analyzer.telemetry.node_records import NodeRecords, shares_of, subjects_of
from reveal_contract import wire
from reveal_contract.cpu_shares import CpuShares
from reveal_contract.names import CPU_SHARES, FIELD_DATA, SUBJECTS, shard
from reveal_contract.subjects import Identity

log = logging.getLogger(__name__)

POLL_SECONDS = 0.05
REFILL_SECONDS = 60.0
ACK_SECONDS = 0.5  # XACKs are batched: each takes half the time of a read
TAKE_OVER_SECONDS = 0.5  # in one poll: saved states take time, and the leases must be renewed
_DATA = FIELD_DATA.encode()


class StreamSettings(Protocol):
    """What the reader needs of ``AnalyzerSettings``."""

    @property
    def redis_url(self) -> str: ...

    @property
    def profile(self) -> str: ...


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
        admission: SliceAdmission | None = None,
    ) -> None:
        client = connect(settings.redis_url)
        self.states = NodeStateStore(client, settings.profile)
        self.connection = RedisConnection(client)
        self.counts = StreamCounts()
        self._admission = admission or SliceAdmission()
        self.records = NodeRecords(client, settings.profile, self._admission.is_proven)
        self.tables = ChannelTables(settings.profile)
        self._consumer = StreamConsumer(client, settings.profile, owner)
        self._leases = Leases(
            client, settings.profile, owner, timing or LeaseTiming(), self._can_leave
        )
        self._acks = Acknowledgements(self._consumer, ack_seconds)
        self._upkeep = StreamUpkeep(client, settings.profile)
        self._trimmed = TrimmedSpans()
        self._refill, self._unfinished = refill_seconds, False
        self._sequences: dict[str, NodeSequence] = {}
        self._waiting = WaitingSlices()
        self._to_take: deque[int] = deque()
        self._schedule = PollSchedule()
        self._backlog: deque[StreamEntry] = deque()  # read, not decoded
        self._lost_nodes: list[str] = []
        self._saved_states: dict[str, bytes] = {}  # of shards taken over
        self._save_shard: Callable[[int], bool] = lambda _: True
        self._next_poll_s, self._recover = 0.0, False
        self._refusals = RefusalLog()

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
        return self.records.complete(node, subjects_of(node, self._announced(node, SUBJECTS)))

    def shares(self, node: str) -> CpuShares:
        """Return the CPU shares of the node's subjects, with one command to Redis, as above."""
        return shares_of(node, self._announced(node, CPU_SHARES))

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
            self._processed(each)
        if self.connection.connected:
            try:
                self._send_acks_when_due()
            except OUTAGE as error:
                self._recover = True
                self.connection.failed(error)

    def lost_nodes(self) -> list[str]:
        """Return the nodes that another analyzer reads since the last call: drop their state."""
        nodes, self._lost_nodes = self._lost_nodes, []
        return nodes

    def forget_nodes(self, nodes: Collection[str]) -> None:
        """Forget nodes that send nothing any more; a later slice of one is its first."""
        self._admission.forget(nodes)
        for node in nodes:
            self._sequences.pop(node, None)

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
                self._acks.send()
                self._leases.release()
            except OUTAGE as error:
                log.info("Redis is unavailable, the leases expire by themselves: %s", error)
        self.connection.client.close()

    def _announced(self, node: str, field: str) -> bytes | None:
        try:
            return self.records.get(field, [node])[0]
        except OUTAGE as error:
            log.warning("%s of node %s are not known: %s", field, node, error)
            return None

    def _poll_once(self, out: list[Received], most: int) -> None:
        if self._leases.due():
            self._acks.send()  # a shard with unsent acknowledgements cannot be handed over
            changes = self._leases.beat()
            self._drop(changes.lost)
            self._to_take.extend(changes.gained)
            if self._upkeep.due():
                self._upkeep.run(self._leases.current())
        if not self._backlog and not self._unfinished:
            self._send_acks_when_due()
            self._read(set(self._leases.current()))
        for entry in self._admission.decided(self.connection.client):
            self._accept(entry, out)
        for _ in range(min(most, len(self._backlog))):
            self._accept(self._backlog.popleft(), out)
        self._deliver_waiting(out, most)
        self._send_acks_when_due()
        if self._to_take or self._unfinished:
            self._next_poll_s = 0.0  # there is more to do already

    def _read(self, owned: set[int]) -> None:
        """Fill the backlog: unfinished entries first, then new ones."""
        if self._recover:
            self._queue(self._consumer.pending(owned - set(self._to_take)))
            self._recover = False
        ends = time.monotonic() + TAKE_OVER_SECONDS
        while self._to_take and len(self._backlog) < BATCH:
            number = self._to_take[0]
            if number in owned:
                self._queue(by_node(self._take_over(number)))
                self._schedule.active([number], time.monotonic())
            self._to_take.popleft()
            if time.monotonic() >= ends:
                break
        if not self._backlog:
            self._queue(self._fresh(owned - set(self._to_take)))

    def _take_over(self, number: int) -> list[StreamEntry]:
        """Return the slices of a shard that follow on what is saved of its nodes."""
        states = self.states.of_shard(number)
        positions = positions_of(states)
        saved = {node: last.entry.encode() for node, last in positions.items() if last.entry}
        taken = self._consumer.take_over(number, self._refill, saved)
        self._trimmed.take_over(number, taken.read_ms)
        self.counts.trimmed += taken.trimmed
        # a slice that the state covers may have been left unacknowledged: it is a repeat
        for node, last in positions.items():
            self._sequences[node] = sequence = NodeSequence.after(
                last.boot, last.sequence, last.start_ns
            )
            sequence.entry_ms = id_ms(last.entry.encode()) if last.entry else 0
        self._saved_states |= states
        return taken.entries

    def _queue(self, entries: Iterable[StreamEntry]) -> None:
        """Add entries to the backlog, unless they are in flight or processed already."""
        for entry in entries:
            if entry.history or self._acks.begin(entry.shard, entry.id):
                self._backlog.append(entry)

    def _fresh(self, shards: set[int]) -> list[StreamEntry]:
        now = time.monotonic()
        asked = self._schedule.next(shards, now)
        if behind := self._trimmed.behind(asked, now):
            self._trimmed.check(self._consumer.first_ms(behind), self._consumer.time_ms(), now)
        entries = self._consumer.fresh(asked)
        counts = Counter(entry.shard for entry in entries)
        full = {number for number, n in counts.items() if n >= entries_per_stream(len(asked))}
        self._trimmed.read(asked, {entry.shard: entry.time_ms for entry in entries}, full, now)
        self._schedule.read(asked, counts, now)
        if self._schedule.behind:
            self._next_poll_s = 0.0
        return by_node(entries) if len(asked) == 1 else entries

    def _accept(self, entry: StreamEntry, out: list[Received]) -> None:
        if not entry.fields:
            self.counts.trimmed += 1
            self._trimmed.pending_lost(entry.shard, entry.time_ms)
            self._processed(entry)
            return
        try:
            node, key = peek(entry)
        except wire.WireError as error:
            self._refuse(entry, str(error))
            return
        reason = self._admission.refusal(entry, node)
        if reason is None:
            return  # it waits for the proof of its origin
        if reason:
            self._refuse(entry, reason)
            return
        known = self.tables.get(key)
        if node in self._waiting or known is None:
            self._waiting.add(entry, node, key)
        else:
            self._deliver(entry, known, out)

    def _deliver_waiting(self, out: list[Received], most: int) -> None:
        """Deliver waiting slices whose table is known now; refuse those that waited too long.

        Nothing more is read while this is unfinished: slices can be delivered, or tables requested.
        """
        self._unfinished = False
        if not len(self._waiting):
            return
        needed = {
            key: nodes
            for key, nodes in self._waiting.needed_tables().items()
            if self.tables.get(key) is None
        }
        left = self.tables.fetch(self.connection.client, needed)
        ready = self._waiting.ready(self.tables, most)
        for parked, known in ready:
            self._deliver(parked.entry, known, out)
        self._unfinished = left or len(ready) == most
        for parked in self._waiting.overdue(self.tables):
            table = parked.table.hex()
            self._refuse(parked.entry, f"channel table {table} has not been announced")

    def _deliver(self, entry: StreamEntry, known: DecodableTable, out: list[Received]) -> None:
        data = entry.fields[_DATA]
        try:
            message = decode(data, known)
        except wire.WireError as error:
            self._refuse(entry, str(error))
            return
        sequence = self._sequences.setdefault(message.node, NodeSequence())
        position = sequence.accept(message)
        if position.repeat:
            self.counts.repeated += 1
            self._processed(entry)
            return
        if not entry.history:
            self._count(entry, message, position, sequence.entry_ms)
        sequence.entry_ms = entry.time_ms
        out.append(
            Received(
                message.node, message, known.table, data, entry.id, entry.shard,
                position.gap, position.restarted, entry.history,
            )
        )  # fmt: skip

    def _count(
        self, entry: StreamEntry, message: wire.Message, position: SlicePosition, last_ms: int
    ) -> None:
        self.counts.received += 1
        self.counts.restarts += position.restarted
        if position.gap:
            slice_ms = max(1, message.tick_us * len(message.fast) // 1000)
            gap = Gap(last_ms, entry.time_ms, position.gap, slice_ms)
            lost = self._trimmed.split(entry.shard, gap)
            self.counts.missing += lost.missing
            self.counts.trimmed += lost.trimmed

    def _refuse(self, entry: StreamEntry, reason: str) -> None:
        if not entry.history:  # its first reader counted and logged it
            self.counts.refused += 1
            self._processed(entry)
            self._refusals.log(entry, reason)

    def _drop(self, shards: Iterable[int]) -> None:
        gone = set(shards)
        if not gone:
            return
        log.info("another analyzer took over %d shards", len(gone))
        self._acks.forget(gone)
        self._backlog = deque(entry for entry in self._backlog if entry.shard not in gone)
        self._waiting.forget(gone)
        self._admission.forget_shards(gone)
        nodes = [node for node in self._sequences if shard(node) in gone]
        for node in nodes:
            del self._sequences[node]
        self._lost_nodes += nodes

    def _processed(self, entry: StreamEntry | Received) -> None:
        """Queue an acknowledgement; history was acknowledged by its first reader."""
        if not entry.history:
            self._acks.end(entry.shard, entry.id)

    def _send_acks_when_due(self) -> None:
        """Send pending acknowledgements once per interval, never in the middle of a batch."""
        if not self._backlog:
            self._acks.send_when_due()

    def _can_leave(self, number: int) -> bool:
        """Whether all slices of a shard are processed, and what they taught is saved."""
        return self._acks.idle(number) and self._save_shard(number)
