"""The loop of an analyzer: read slices, analyze each, write updates of findings, acknowledge.

A slice is acknowledged after the sinks have its updates.  If the analyzer dies before that, the
next one reads the slice and reports the same findings under the same ids.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from reveal_analyzer.configuration.feed import FactsFeed
from reveal_analyzer.configuration.watch import ConfigurationTracker
from reveal_analyzer.fleet.fleet import Fleet
from reveal_analyzer.fleet.minute import MinuteRecorder
from reveal_analyzer.gc_control import GarbageControl
from reveal_analyzer.sinks import Sink
from reveal_analyzer.sinks.metrics import Metrics
from reveal_analyzer.stream.reader import Received, StreamReader
from reveal_analyzer.telemetry.snapshot import NodeSnapshot, Snapshot
from reveal_contract.channels import ChannelTable
from reveal_contract.finding import FindingChange, FindingUpdate
from reveal_contract.wire import Message

log = logging.getLogger(__name__)

FORGET_SECONDS = 6 * 3600.0  # a node silent for so long has left the cluster
_SILENT_SECONDS = 10.0  # between two checks for such nodes: one of thousands takes a millisecond
_FACTS_SECONDS = 1.0  # between two checks for nodes whose facts are due
_SNAPSHOT_SECONDS = 1.0
_BATCH = 16  # slices decoded, then analyzed: half a megabyte, which is still in the CPU cache
_LOG_AGAIN_SECONDS = 60.0  # a node that fails every second does not fill the log


class Analysis(Protocol):
    """The analysis of one node; ``analyze`` takes its slices in order."""

    @property
    def minutes(self) -> MinuteRecorder:
        """Its finished minutes, for the comparison of nodes."""

    @property
    def learning(self) -> bool:
        """Whether the node is in warm-up."""

    def analyze(
        self, message: Message, table: ChannelTable, *, data: bytes = b"", silent: bool = False
    ) -> Sequence[FindingUpdate]:
        """Analyze one slice; a ``silent`` one only fills the windows."""

    def finish(self) -> Sequence[FindingUpdate]:
        """Return the last state of each open finding."""


@dataclass
class _Node:
    analysis: Analysis
    last_slice_s: float
    since_s: float
    replaying: bool = False  # its last slice was analyzed before, by another analyzer
    configuration: ConfigurationTracker = field(default_factory=ConfigurationTracker)


class Worker:
    """Serves the nodes of the shards that its reader holds; one thread.

    Without a ``fleet`` nodes are not compared with each other.  ``observe`` gets a snapshot of what
    this analyzer watches once a second, and on a change of shards before the updates that follow.
    """

    def __init__(
        self,
        reader: StreamReader,
        analysis: Callable[[str], Analysis],
        sinks: Sequence[Sink],
        metrics: Metrics,
        fleet: Fleet | None = None,
        observe: Callable[[Snapshot], None] | None = None,
    ) -> None:
        self._fleet, self._observe = fleet, observe
        self._last_snapshot: tuple[float, frozenset[int]] = (0.0, frozenset())
        self._reader, self._analysis = reader, analysis
        self._metrics, self._sinks = metrics, [*sinks, metrics]
        self._nodes: dict[str, _Node] = {}
        self._failure_logged: dict[str, float] = {}
        self._facts = FactsFeed(reader.connection.client)
        self._facts_due = self._silent_due = 0.0
        self._garbage = GarbageControl(time.monotonic())
        metrics.watch(self._status)

    @property
    def nodes(self) -> list[str]:
        """The nodes whose slices this analyzer received."""
        return list(self._nodes)

    @property
    def connected(self) -> bool:
        """Whether Redis responds: then its stream is read."""
        return self._reader.connected

    def turn(self) -> None:
        """Poll the stream once (50 ms) and do all that follows from it."""
        received = self._reader.poll(_BATCH)
        self._forget(self._reader.lost_nodes())
        self._write_snapshot()
        for each in received:
            self._report(self._step(each))
            self._submit_minute(each.node)
            if not each.history:
                self._metrics.verdict.observe(max(0.0, time.time() - _closed_s(each.message)))
            self._garbage.freeze_survivors()
        self._reader.ack(received)
        self._configurations()
        self._compare()
        self._forget(self._silent())
        self._garbage.collect_when_due(time.monotonic())

    def close(self) -> None:
        """Release the shards and close the sinks.

        Open findings stay open: the analyzer that takes the shards over continues them.
        """
        if self._fleet is not None:
            self._fleet.close()
        self._reader.close()
        for sink in self._sinks:
            sink.close()
        self._garbage.close()

    def _write_snapshot(self) -> None:
        """Pass on what is watched: once a second, and at once when the shards changed."""
        if self._observe is None:
            return
        now, shards = time.monotonic(), frozenset(self._reader.shards)
        written_s, previous = self._last_snapshot
        if shards == previous and now - written_s < _SNAPSHOT_SECONDS:
            return
        self._last_snapshot = now, shards
        fleet = self._fleet
        self._observe(
            Snapshot(
                time_s=now,
                connected=self._reader.connected,
                leads=fleet is not None and fleet.leads,
                shards=shards,
                nodes={
                    name: NodeSnapshot(node.last_slice_s, node.since_s, node.analysis.learning)
                    for name, node in self._nodes.items()
                },
                cross_node_findings=fleet.open if fleet is not None else frozenset(),
            )
        )

    def _step(self, received: Received) -> Sequence[FindingUpdate]:
        now = time.monotonic()
        node = self._nodes.get(received.node)
        try:
            if node is None:
                node = _Node(self._analysis(received.node), now, now)
                self._nodes[received.node] = node
            node.last_slice_s = now
            # The replay of another analyzer's slices is over: report again what is still open.
            still_open = node.analysis.finish() if node.replaying and not received.history else ()
            node.replaying = received.history
            updates = node.analysis.analyze(
                received.message, received.table, data=received.data, silent=received.history
            )
            return [*still_open, *updates]
        except Exception:
            # A defect that the data of one node triggers must not stop the others.
            self._reset(received, now)
            return ()

    def _reset(self, received: Received, now: float) -> None:
        name = received.node
        self._nodes.pop(name, None)
        self._garbage.note_dropped()
        self._facts.drop(name)
        self._metrics.node_failures.inc()
        if now - self._failure_logged.get(name, -1e9) >= _LOG_AGAIN_SECONDS:
            self._failure_logged[name] = now
            sequence = received.message.sequence
            log.exception("analysis of node %s failed at slice %d, state reset", name, sequence)

    def _configurations(self) -> None:
        """Evaluate the configuration rules on the facts of the nodes that changed."""
        now = time.monotonic()
        if now < self._facts_due or not self._reader.connected:
            return
        self._facts_due = now + _FACTS_SECONDS
        for facts in self._facts.poll(self._nodes, now):
            if self._fleet is not None:
                self._fleet.set_facts(facts)
            if facts.node in self._nodes:
                self._report(self._nodes[facts.node].configuration.update(facts, time.time_ns()))

    def _submit_minute(self, name: str) -> None:
        if self._fleet is None or (node := self._nodes.get(name)) is None:
            return
        if (ended := node.analysis.minutes.pop_ended()) is not None:
            self._fleet.submit(name, ended)

    def _compare(self) -> None:
        """Publish the minutes of these nodes; as the leader, compare all nodes."""
        now = time.monotonic()
        if self._fleet is None or not self._fleet.due(now) or not self._reader.connected:
            return
        self._report(self._fleet.advance(now))

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
            log.exception("%s could not write finding %s", name, update.finding.id)

    def _silent(self) -> list[str]:
        now = time.monotonic()
        if now < self._silent_due:
            return []
        self._silent_due, oldest = now + _SILENT_SECONDS, now - FORGET_SECONDS
        return [name for name, node in self._nodes.items() if node.last_slice_s < oldest]

    def _forget(self, nodes: Iterable[str]) -> None:
        for node in nodes:
            self._nodes.pop(node, None)
            self._garbage.note_dropped()
            self._failure_logged.pop(node, None)
            self._facts.drop(node)
            self._metrics.forget(node)
            if self._fleet is not None:
                self._fleet.drop(node)

    def _status(self) -> dict[str, int]:
        return {**self._reader.status(), "connected": int(self._reader.connected)}


def _closed_s(message: Message) -> float:
    """Return when the slice was complete, at its last tick, in seconds since the epoch."""
    return message.start_ns / 1e9 + (len(message.fast) - 1) * message.tick_us / 1e6
