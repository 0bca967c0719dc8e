"""The loop of an analyzer: slices in, each to its node's analysis, changes out, acknowledge.

A slice is acknowledged after its changes went to the sinks: an analyzer that dies in between
leaves it to the next one, which reports the same findings under the same ids.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from reveal_analyzer.configuration.feed import FactsFeed
from reveal_analyzer.configuration.watch import Configuration
from reveal_analyzer.fleet.fleet import Fleet
from reveal_analyzer.fleet.minute import Minutes
from reveal_analyzer.gc_control import GarbageControl
from reveal_analyzer.sinks import Sink
from reveal_analyzer.sinks.metrics import Metrics
from reveal_analyzer.stream.reader import Received, StreamReader
from reveal_analyzer.telemetry.snapshot import Situation, Watched
from reveal_contract.channels import ChannelTable
from reveal_contract.finding import FindingChange, FindingUpdate
from reveal_contract.wire import Message

log = logging.getLogger(__name__)

FORGET_SECONDS = 6 * 3600.0  # a node silent for so long has left the cluster
_SILENT_SECONDS = 10.0  # between two looks for such: of thousands of nodes one costs a millisecond
_FACTS_SECONDS = 1.0  # between two looks for nodes whose facts are due
_SITUATION_SECONDS = 1.0
_PORTION = 16  # slices decoded, then judged: half a megabyte, which is still in the cache
_SAY_AGAIN_SECONDS = 60.0  # a node that fails every second fills no log


class Analysis(Protocol):
    """What is known of one node; ``analyze`` takes its slices in order."""

    @property
    def minutes(self) -> Minutes: ...

    @property
    def learning(self) -> bool: ...

    def analyze(
        self, message: Message, table: ChannelTable, *, data: bytes = b"", silent: bool = False
    ) -> Sequence[FindingUpdate]: ...

    def finish(self) -> Sequence[FindingUpdate]:
        """The last state of what is open."""


@dataclass
class _Node:
    analysis: Analysis
    seen: float
    since: float
    replaying: bool = False  # its last slice was one that another analyzer judged
    configuration: Configuration = field(default_factory=Configuration)


class Worker:
    """Serves the nodes of the shards that its reader holds; one thread.

    Without a ``fleet`` no node is compared with the others.  ``follow`` is told once a second, and
    before all else that follows from it, what this analyzer watches.
    """

    def __init__(
        self,
        reader: StreamReader,
        analysis: Callable[[str], Analysis],
        sinks: Sequence[Sink],
        metrics: Metrics,
        fleet: Fleet | None = None,
        follow: Callable[[Situation], None] | None = None,
    ) -> None:
        self._fleet, self._follow = fleet, follow
        self._followed: tuple[float, frozenset[int]] = (0.0, frozenset())
        self._reader, self._analysis = reader, analysis
        self._metrics, self._sinks = metrics, [*sinks, metrics]
        self._nodes: dict[str, _Node] = {}
        self._said_failed: dict[str, float] = {}
        self._facts = FactsFeed(reader.link.client)
        self._facts_due = self._silent_due = 0.0
        self._garbage = GarbageControl(time.monotonic())
        metrics.watch(self._status)

    @property
    def nodes(self) -> list[str]:
        """The nodes whose slices came here."""
        return list(self._nodes)

    @property
    def connected(self) -> bool:
        """Whether Redis answers: then its stream is read."""
        return self._reader.connected

    def turn(self) -> None:
        """One poll of the stream (50 ms) and all that follows from it."""
        received = self._reader.poll(_PORTION)
        self._forget(self._reader.lost_nodes())
        self._tell_situation()
        for one in received:
            self._report(self._step(one))
            self._tell_minute(one.node)
            if not one.history:
                self._metrics.verdict.observe(max(0.0, time.time() - _closed(one.message)))
            self._garbage.freeze_survivors()
        self._reader.ack(received)
        self._configurations()
        self._compare()
        self._forget(self._silent())
        self._garbage.collect_when_due(time.monotonic())

    def close(self) -> None:
        """Give the shards back and close the sinks.

        Open findings stay open: who takes over goes on with them.
        """
        if self._fleet is not None:
            self._fleet.close()
        self._reader.close()
        for sink in self._sinks:
            sink.close()
        self._garbage.close()

    def _tell_situation(self) -> None:
        """What is watched, when it is due and at once when the shards are others."""
        if self._follow is None:
            return
        now, shards = time.monotonic(), frozenset(self._reader.shards)
        told, before = self._followed
        if shards == before and now - told < _SITUATION_SECONDS:
            return
        self._followed = now, shards
        leads = self._fleet is not None and self._fleet.leads
        self._follow(
            Situation(
                at_s=now,
                connected=self._reader.connected,
                leads=leads,
                shards=shards,
                nodes={
                    name: Watched(node.seen, node.since, node.analysis.learning)
                    for name, node in self._nodes.items()
                },
                cases=self._fleet.open if self._fleet is not None else frozenset(),
            )
        )

    def _step(self, one: Received) -> Sequence[FindingUpdate]:
        now = time.monotonic()
        node = self._nodes.get(one.node)
        try:
            if node is None:
                node = self._nodes[one.node] = _Node(self._analysis(one.node), now, now)
            node.seen = now
            # what was open when the last owner ended, and goes on, is told anew
            open_yet = node.analysis.finish() if node.replaying and not one.history else ()
            node.replaying = one.history
            told = node.analysis.analyze(one.message, one.table, data=one.data, silent=one.history)
            return [*open_yet, *told]
        except Exception:
            # a defect that one node's data brings out must not silence the others
            self._nodes.pop(one.node, None)
            self._garbage.note_dropped()
            self._facts.forget(one.node)
            self._metrics.node_failures.inc()
            if now - self._said_failed.get(one.node, -1e9) >= _SAY_AGAIN_SECONDS:
                self._said_failed[one.node] = now
                place = f"slice {one.message.sequence} of {one.node}"
                log.exception("analysis of %s failed, the node begins anew", place)
            return ()

    def _configurations(self) -> None:
        """Hold the rules against the facts of the nodes here, where these are news."""
        now = time.monotonic()
        if now < self._facts_due or not self._reader.connected:
            return
        self._facts_due = now + _FACTS_SECONDS
        for facts in self._facts.poll(self._nodes, now):
            if self._fleet is not None:
                self._fleet.learn(facts)
            if facts.node in self._nodes:
                self._report(self._nodes[facts.node].configuration.step(facts, time.time_ns()))

    def _tell_minute(self, name: str) -> None:
        if self._fleet is None or (node := self._nodes.get(name)) is None:
            return
        if (ended := node.analysis.minutes.take()) is not None:
            self._fleet.tell(name, ended)

    def _compare(self) -> None:
        """Tell of the nodes here, and hold all nodes against each other if that is ours."""
        now = time.monotonic()
        if self._fleet is None or not self._fleet.due(now) or not self._reader.connected:
            return
        self._report(self._fleet.step(now))

    def _report(self, updates: Sequence[FindingUpdate]) -> None:
        for update in updates:
            if update.change in (FindingChange.OPENED, FindingChange.RESOLVED):
                finding = update.finding
                log.info("%s on %s: %s", update.change, finding.node_name, finding.claim)
            for sink in self._sinks:
                self._write(sink, update)

    def _write(self, sink: Sink, update: FindingUpdate) -> None:
        try:
            sink.write(update)
        except Exception:
            name = type(sink).__name__
            self._metrics.sink_failures.labels(name).inc()
            log.exception("%s could not take finding %s", name, update.finding.id)

    def _silent(self) -> list[str]:
        now = time.monotonic()
        if now < self._silent_due:
            return []
        self._silent_due, oldest = now + _SILENT_SECONDS, now - FORGET_SECONDS
        return [name for name, node in self._nodes.items() if node.seen < oldest]

    def _forget(self, nodes: Iterable[str]) -> None:
        for node in nodes:
            self._nodes.pop(node, None)
            self._garbage.note_dropped()
            self._said_failed.pop(node, None)
            self._facts.forget(node)
            self._metrics.forget(node)
            if self._fleet is not None:
                self._fleet.forget(node)

    def _status(self) -> dict[str, int]:
        return {**self._reader.status(), "connected": int(self._reader.connected)}


def _closed(message: Message) -> float:
    """When the slice was complete, at its last tick, in seconds since the epoch."""
    return message.start_ns / 1e9 + (len(message.fast) - 1) * message.tick_us / 1e6
