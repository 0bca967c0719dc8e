"""The loop of an analyzer: read slices, analyze each, write updates of findings, acknowledge.

A slice is acknowledged after the sinks have its updates.  If the analyzer dies before that, the
next one reads the slice and reports the same findings under the same ids.  What was learned about a
node is saved each minute, when a finding opens or is resolved, and before its shard is handed over.
The next analyzer restores it, and analyzes silently only the slices after it.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from operator import attrgetter

from reveal_analyzer.configuration.feed import FactsFeed
from reveal_analyzer.evidence.recorder import EvidenceRecorder, NoEvidence
from reveal_analyzer.fleet.fleet import Fleet
from reveal_analyzer.node_history.keeper import HistoryKeeper
from reveal_analyzer.sinks import Sink
from reveal_analyzer.sinks.metrics import Metrics
from reveal_analyzer.state.checkpoints import INTERVAL_S, Checkpoints, first_save_s
from reveal_analyzer.state.codec import Position, SectionPath
from reveal_analyzer.stream.gc_control import GarbageControl
from reveal_analyzer.stream.node_clocks import NodeClocks
from reveal_analyzer.stream.reader import StreamReader
from reveal_analyzer.stream.received import Received
from reveal_analyzer.telemetry.degraded import Degradation
from reveal_analyzer.telemetry.snapshot import SILENT_SECONDS, NodeSnapshot, Snapshot
from reveal_analyzer.watched_node import Analysis, WatchedNode
from reveal_contract.finding import FindingChange, FindingUpdate
from reveal_contract.names import shard

log = logging.getLogger(__name__)

FORGET_SECONDS = 6 * 3600.0  # a node silent for so long has left the cluster
# a node that was silent for so long before it was learned leaves nothing to keep
FORGET_YOUNG_SECONDS = 300.0
_SILENT_SECONDS = 10.0  # between two checks for such nodes: one of thousands takes a millisecond
_FACTS_SECONDS = 1.0  # between two checks for nodes whose facts are due
_SNAPSHOT_SECONDS = 1.0
_BATCH = 16  # slices decoded, then analyzed: half a megabyte, which is still in the CPU cache
_HAND_OVER_SECONDS = 0.5  # for saving, of each renewal of the leases, which last 7 s
_CLOSE_SECONDS = 2.5  # for saving; what is not saved then is at most a minute old
_RESTORE_SECONDS = 0.1  # for silent nodes, of a turn in which no slice came
_FAILS_AGAIN_SECONDS = 600.0  # between two failures: the saved state may be the reason
_FAILED = "the analysis of its node failed and was reset; whether it lasts is unknown"
_SILENT = (
    f"its node has sent nothing for {SILENT_SECONDS / 60:.0f} minutes; whether it lasts is unknown"
)
_LOG_AGAIN_SECONDS = 60.0  # a node that fails every second does not fill the log
_SAVED_WITH = (FindingChange.OPENED, FindingChange.RESOLVED)


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
        optional_state: Sequence[SectionPath] = (),
    ) -> None:
        self._evidence: EvidenceRecorder | NoEvidence = NoEvidence()
        self._history: HistoryKeeper | None = None
        self._clocks = NodeClocks()
        self._degradations: list[Callable[[], Iterable[Degradation]]] = [
            reader.connection.degradations,
            self._clocks.degradations,
        ]
        self._fleet, self._observe = fleet, observe
        self._last_snapshot: tuple[float, frozenset[int]] = (0.0, frozenset())
        self._reader, self._analysis = reader, analysis
        self._metrics = metrics
        self._sinks: list[Sink] = [*sinks, metrics]
        self._nodes: dict[str, WatchedNode] = {}
        self._failed: dict[str, float] = {}
        self._failure_logged: dict[str, float] = {}
        self._checkpoints = Checkpoints(reader.states, optional_state)
        self._hand_over_until = 0.0
        self._facts = FactsFeed(reader.records)
        self._facts_due = self._silent_due = self._disconnected_s = 0.0
        self._garbage = GarbageControl(time.monotonic())
        reader.before_hand_over(self._save_shard)
        metrics.watch(self._status)
        metrics.watch_states(self._checkpoints.counts)

    @property
    def nodes(self) -> list[str]:
        """The nodes whose slices this analyzer received."""
        return list(self._nodes)

    @property
    def connected(self) -> bool:
        """Whether Redis responds: then its stream is read."""
        return self._reader.connected

    def keep_evidence(self, recorder: EvidenceRecorder) -> None:
        """Keep the samples of findings with this recorder; findings refer to them."""
        self._evidence = recorder
        self._sinks.append(recorder)
        self.report_degradations(recorder.degradations)

    def keep_history(self, keeper: HistoryKeeper) -> None:
        """Keep a value a second of the nodes with this keeper."""
        self._history = keeper
        self.report_degradations(keeper.degradations)

    def report_degradations(self, source: Callable[[], Iterable[Degradation]]) -> None:
        """Let snapshots have what a part of this analyzer cannot do."""
        self._degradations.append(source)

    def turn(self) -> None:
        """Poll the stream once (50 ms) and do all that follows from it."""
        self._hand_over_until = time.monotonic() + _HAND_OVER_SECONDS
        received = self._reader.poll(_BATCH)
        self._forget(self._reader.lost_nodes())
        self._checkpoints.take(self._reader.saved_states())
        self._write_snapshot()
        for each in received:
            self._report(self._step(each))
            self._submit_minute(each.node)
            if not each.history:
                self._metrics.verdict.observe(max(0.0, time.time() - each.closed_s))
                self._clocks.add(each)
            self._garbage.freeze_survivors()
        self._report(self._evidence.newly_kept())
        self._reader.ack(received)
        self._save_due({each.node for each in received})
        if not received:
            self._restore_silent()
        self._configurations()
        self._compare()
        self._forget_silent()
        self._garbage.collect_when_due(time.monotonic())

    def close(self) -> None:
        """Save the states of the nodes, release the shards and close the sinks.

        Open findings stay open: the analyzer that takes the shards over continues them.
        """
        self._save_all()
        if self._fleet is not None:
            self._fleet.close()
        self._reader.close()
        for sink in self._sinks:
            sink.close()
        if self._history is not None:
            self._history.close()
        self._garbage.close()

    def _write_snapshot(self) -> None:
        """Pass on what is watched: once a second, and at once when the shards changed."""
        now, shards = time.monotonic(), frozenset(self._reader.shards)
        written_s, previous = self._last_snapshot
        if shards == previous and now - written_s < _SNAPSHOT_SECONDS:
            return
        self._last_snapshot = now, shards
        fleet = self._fleet
        leads = fleet is not None and fleet.leads
        self._evidence.watch(shards, leads=leads)
        if self._observe is None:
            return
        self._observe(
            Snapshot(
                time_s=now,
                connected=self._reader.connected,
                leads=leads,
                shards=shards,
                nodes={
                    name: NodeSnapshot(node.last_slice_s, node.since_s, node.analysis.learning)
                    for name, node in self._nodes.items()
                },
                cross_node_findings=fleet.open if fleet is not None else frozenset(),
                degraded=tuple(chain(*(source() for source in self._degradations))),
            )
        )

    def _step(self, received: Received) -> Sequence[FindingUpdate]:
        now, name, message = time.monotonic(), received.node, received.message
        node = self._nodes.get(name)
        try:
            if node is None:
                node = self._begin(name, now)
            node.last_slice_s = now
            # The replay of another analyzer's slices is over: report again what is still open.
            still_open = node.analysis.finish() if node.replaying and not received.history else ()
            node.replaying = received.history
            updates = node.analysis.analyze(
                message, received.table, data=received.data, silent=received.history
            )
            if self._history is not None:
                self._history.add(message, received.table)
            if any(update.change in _SAVED_WITH for update in updates):
                node.save_due_s = now  # after a crash it is not reported a second time
            node.position = Position(
                name, message.boot, message.sequence, message.start_ns, received.id.decode()
            )
            return [*still_open, *updates]
        except Exception:
            # A defect that the data of one node triggers must not stop the others.
            self._reset(name, f"slice {message.sequence}", now)
            return ()

    def _begin(self, name: str, now: float) -> WatchedNode:
        """Start the analysis of a node, with what another analyzer learned, if it saved that."""
        due = first_save_s(name, now)
        node, state = self._checkpoints.restore(
            name, lambda: WatchedNode(self._analysis(name), now, now, due)
        )
        if state is not None:
            node.replaying = True
            node.position = state.position
            node.last_slice_s -= max(0.0, time.time() - state.saved_s)
        self._nodes[name] = node
        return node

    def _restore_silent(self) -> None:
        """Restore some nodes that have sent nothing since their shard was taken over.

        Their findings are still open.
        """
        ends = time.monotonic() + _RESTORE_SECONDS
        for name in self._checkpoints.waiting():
            now = time.monotonic()
            if now > ends:
                return
            try:
                node = self._begin(name, now)
                self._report(node.analysis.finish())
                node.replaying = False
            except Exception:
                self._reset(name, "the restored state", now)
                continue
            if node.position is None:  # its state could not be used: wait for its next slice
                del self._nodes[name]
                self._checkpoints.delete([name])  # it may have left

    def _save_due(self, names: Iterable[str]) -> None:
        now = time.monotonic()
        due = [node for name in names if (node := self._nodes.get(name)) and node.save_due_s <= now]
        if due and self._reader.connected:
            self._save(due)

    def _save(self, nodes: Sequence[WatchedNode], seconds: float = math.inf) -> bool:
        """Save nodes whose shard is owned; return whether the time was enough."""
        owned, due_s = set(self._reader.shards), time.monotonic() + INTERVAL_S
        saved: list[tuple[Position, WatchedNode]] = []
        for node in nodes:
            if node.position is not None and shard(node.position.node) in owned:
                node.save_due_s = due_s
                saved.append((node.position, node))
        return self._checkpoints.save(saved, seconds)

    def _save_shard(self, number: int) -> bool:
        """Save the nodes of a shard that is handed over; false when there was no time for it."""
        left = self._hand_over_until - time.monotonic()
        nodes = [node for name, node in self._nodes.items() if shard(name) == number]
        return self._save(nodes, left) if left > 0 else False

    def _save_all(self) -> None:
        """Save all nodes as far as there is time, those first whose saved state is oldest."""
        if self._reader.connected:
            self._save(sorted(self._nodes.values(), key=attrgetter("save_due_s")), _CLOSE_SECONDS)

    def _reset(self, name: str, where: str, now: float) -> None:
        """Continue from the last saved state; if that failed lately, learn the node again."""
        self._nodes.pop(name, None)
        self._garbage.note_dropped()
        self._facts.drop(name)
        self._metrics.node_failures.inc()
        self._forget_findings(name, _FAILED)
        again = now - self._failed.get(name, -math.inf) < _FAILS_AGAIN_SECONDS
        self._failed[name] = now
        if again:
            self._checkpoints.delete([name])
        else:
            self._checkpoints.retry(name)
        if now - self._failure_logged.get(name, -math.inf) >= _LOG_AGAIN_SECONDS:
            self._failure_logged[name] = now
            log.exception("analysis of node %s failed at %s, state reset", name, where)

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
                self._report(self._nodes[facts.node].take_facts(facts, time.time_ns()))

    def _submit_minute(self, name: str) -> None:
        if self._fleet is None or (node := self._nodes.get(name)) is None:
            return
        if (ended := node.analysis.minutes.pop_ended()) is not None:
            self._fleet.submit(name, ended)
        if ranks := node.analysis.ranks.pop_ended():
            self._fleet.submit_ranks(name, ranks)

    def _compare(self) -> None:
        """Publish the minutes of these nodes; as the leader, compare all nodes."""
        now = time.monotonic()
        if self._fleet is None or not self._fleet.due(now) or not self._reader.connected:
            return
        self._report(self._fleet.advance(now))

    def _report(self, updates: Sequence[FindingUpdate]) -> None:
        for update in map(self._evidence.referenced, updates):
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

    def _forget_silent(self) -> None:
        """Forget nodes that left the cluster, and delete their saved states."""
        now = time.monotonic()
        if now < self._silent_due:
            return
        self._silent_due = now + _SILENT_SECONDS
        self._lose_silent(now)
        gone = [name for name, node in self._nodes.items() if self._is_gone(node, now)]
        if gone:
            self._forget(gone)
            self._checkpoints.delete(gone)

    def _is_gone(self, node: WatchedNode, now: float) -> bool:
        kept = FORGET_YOUNG_SECONDS if node.analysis.learning else FORGET_SECONDS
        return now - max(node.last_slice_s, self._disconnected_s) >= kept

    def _lose_silent(self, now: float) -> None:
        """Give up the findings of nodes that have sent nothing for a while."""
        if not self.connected:
            self._disconnected_s = now  # without Redis no node is heard
        for name, node in self._nodes.items():
            heard_s = max(node.last_slice_s, self._disconnected_s)
            silent = now - heard_s >= SILENT_SECONDS
            if silent and not node.lost:
                self._forget_findings(name, _SILENT)
            node.lost = silent

    def _forget_findings(self, node: str, lost: str = "") -> None:
        for sink in self._sinks:
            try:
                sink.forget(node, lost)
            except Exception:
                self._metrics.sink_failures.labels(type(sink).__name__).inc()
                log.exception("%s could not forget node %s", type(sink).__name__, node)

    def _forget(self, nodes: Sequence[str]) -> None:
        self._reader.forget_nodes(nodes)
        self._clocks.forget(nodes)
        for node in nodes:
            self._nodes.pop(node, None)
            self._checkpoints.forget(node)
            self._garbage.note_dropped()
            self._failed.pop(node, None)
            self._failure_logged.pop(node, None)
            self._facts.drop(node)
            self._forget_findings(node)
            if self._fleet is not None:
                self._fleet.drop(node)

    def _status(self) -> dict[str, int]:
        return {**self._reader.status(), "connected": int(self._reader.connected)}
