"""The flight recorder: a thread that keeps the samples of findings.

It is a sink that never blocks and never fails: losing samples loses and delays no finding.  After
each step it pauses nine times as long, at most ``_MOST_PAUSE``, as the analysis of all nodes shares
its interpreter.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import redis

from reveal_analyzer.evidence.follows import MOST_FOLLOWED, Follow, Follows, is_cross_node
from reveal_analyzer.evidence.piece import EvidenceWriter, Slice
from reveal_analyzer.evidence.stream_slices import StreamSlices
from reveal_analyzer.state.records import restore_record
from reveal_analyzer.state.tree import StateError
from reveal_analyzer.stream.redis_connection import OUTAGE
from reveal_analyzer.telemetry.degraded import Degradation
from reveal_analyzer.telemetry.node_records import IsProven, NodeRecords, any_origin
from reveal_contract.finding import EvidenceRef, Finding, FindingChange, FindingUpdate, State
from reveal_contract.kube.names import clipped
from reveal_contract.names import shard
from reveal_contract.runtime.paced_thread import PacedThread
from reveal_contract.subjects import Identity

log = logging.getLogger(__name__)

REASON = "EvidenceNotKept"
RESUME_SECONDS = 30.0  # between two looks for findings that another analyzer left unfinished
UNCLAIMED_SECONDS = 60.0  # after which a finding that nobody observes has ended
BEHIND_SECONDS = 90.0  # a step that is so late may miss samples: streams keep 120 s
_SHARE = 0.1
_MOST_PAUSE = 5.0
_IDLE_SECONDS = 0.5
_FAILED_FOR = 120.0  # a failure is reported for so long
_CLOSE_SECONDS = 1.0
_MESSAGE_BYTES = 400


class RedisSource(NamedTuple):
    """Slices and subjects of nodes, as Redis has them."""

    client: redis.Redis
    slices: StreamSlices
    records: NodeRecords

    @classmethod
    def of(cls, client: redis.Redis, profile: str, is_proven: IsProven = any_origin) -> RedisSource:
        """Return the source of a profile, which has what proves its origin."""
        slices = StreamSlices(client, profile, is_proven)
        return cls(client, slices, NodeRecords(client, profile, is_proven))

    def since(self, node: str, since_ns: int) -> Sequence[Slice]:
        return self.slices.since(node, since_ns)

    def subjects(self, node: str) -> Iterable[Identity]:
        return self.records.subjects([node])[node]

    def close(self) -> None:
        self.client.close()


class EvidenceRecorder:
    """Takes updates of findings; the thread does the rest once ``start`` was called."""

    def __init__(self, writer: EvidenceWriter, clock: Callable[[], float] = time.monotonic) -> None:
        self._writer, self._clock = writer, clock
        self._lock = threading.Lock()
        self._follows = Follows()
        self._kept: dict[str, None] = {}
        self._shards: frozenset[int] = frozenset()
        self._leads = False
        self._resume_s = 0.0
        self._unclaimed: dict[str, float] = {}  # open findings of others -> since
        self._failed: dict[str, tuple[float, str]] = {}  # node -> when, and why
        self._thread = PacedThread(
            "reveal-evidence", self.run_due,
            share=_SHARE, idle_seconds=_IDLE_SECONDS, most_pause=_MOST_PAUSE,
        )  # fmt: skip

    @property
    def kind(self) -> str:
        """The kind of the store."""
        return self._writer.store.kind

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def write(self, update: FindingUpdate) -> None:
        """Take an update of a finding."""
        now_s = self._clock()
        with self._lock:
            refused = self._follows.refused
            self._follows.update(update, now_s)
            refused = self._follows.refused - refused
        if refused:
            self._fail(update.finding, now_s, f"{MOST_FOLLOWED} others are open at the same time")

    def forget(self, node: str, lost: str = "") -> None:
        """Take that a node is not observed here any more; ``lost``: nor elsewhere."""
        with self._lock:
            if lost:
                self._follows.lose(node, self._clock())
            else:
                self._follows.forget(node)

    def close(self) -> None:
        """End the thread; the next analyzer continues with what is kept."""
        self._thread.close(_CLOSE_SECONDS)
        self._writer.close()

    def watch(self, shards: Iterable[int], *, leads: bool = False) -> None:
        """Take the shards that this analyzer owns, and whether it compares the nodes.

        It finishes the findings of these nodes, and those across nodes.
        """
        self._shards = frozenset(shards)
        if self._leads and not leads:
            with self._lock:
                self._follows.forget_cross_node()
        self._leads = leads

    def referenced(self, update: FindingUpdate) -> FindingUpdate:
        """Return the update, with the reference to the samples that are kept of its finding."""
        finding = update.finding
        if finding.id not in self._kept:
            return update
        ref = EvidenceRef(self.kind, finding.id)
        return replace(update, finding=replace(finding, evidence_ref=ref))

    def newly_kept(self) -> list[FindingUpdate]:
        """Return a change of each open finding that has samples since the last call."""
        with self._lock:
            findings = self._follows.newly_kept(self._clock())
        return [FindingUpdate(FindingChange.CHANGED, finding) for finding in findings]

    def degradations(self) -> list[Degradation]:
        """Return what cannot be kept now."""
        since_s = self._clock() - _FAILED_FOR
        with self._lock:
            failed = [why for failed_s, why in self._failed.values() if failed_s >= since_s]
        if not failed:
            return []
        return [Degradation(REASON, len(failed), clipped(failed[-1], _MESSAGE_BYTES))]

    def run_due(self) -> bool:
        """Do the step that is due for longest; return whether there was one."""
        now_s = self._clock()
        self._resume(now_s)
        with self._lock:
            follow = self._follows.due(now_s)
        if follow is None:
            return False
        self._step(follow, now_s)
        return True

    def _step(self, follow: Follow, now_s: float) -> None:
        finding = follow.finding
        late, behind_s = follow.late(now_s), now_s - follow.due_s
        complete = late
        try:
            kept, complete = self._writer.step(finding, whole=follow.young(now_s), late=late)
        except OUTAGE as error:
            self._fail(finding, now_s, f"{type(error).__name__}: {error}")
        except Exception:
            # a defect that one finding triggers must not stop the others
            log.exception("the samples of finding %s cannot be kept", finding.id)
            self._fail(finding, now_s, "see the log of the analyzer")
        else:
            if kept:
                was_kept = follow.kept
                self._note_kept(follow)
                if was_kept and behind_s > BEHIND_SECONDS:
                    self._fail(finding, now_s, f"some were to be read {behind_s:.0f} s earlier")
        with self._lock:
            follow.stepped(now_s)
            if complete and finding.state is follow.finding.state:
                self._follows.complete(finding.id)

    def _note_kept(self, follow: Follow) -> None:
        with self._lock:
            follow.kept = True
            self._note_names([follow.finding.id])
            self._failed.pop(follow.finding.node_name, None)

    def _note_names(self, names: Iterable[str]) -> None:
        self._kept |= dict.fromkeys(names)
        while len(self._kept) > 16 * MOST_FOLLOWED:
            del self._kept[next(iter(self._kept))]

    def _fail(self, finding: Finding, now_s: float, why: str) -> None:
        node = finding.node_name
        message = f"{node}: the samples of finding {finding.id} are not kept: {why}"
        with self._lock:
            if node not in self._failed:
                log.warning("%s", message)
            self._failed.pop(node, None)  # the newest is the last
            self._failed[node] = now_s, message
            old = [name for name, each in self._failed.items() if each[0] < now_s - _FAILED_FOR]
            for name in old:
                del self._failed[name]

    def _resume(self, now_s: float) -> None:
        """Follow what was left unfinished by an analyzer that is gone.

        Open findings come as updates, from what was saved of their nodes.  One that does not has
        ended meanwhile.
        """
        if now_s < self._resume_s or not (self._shards or self._leads):
            return
        self._resume_s = now_s + RESUME_SECONDS
        try:
            rows = self._writer.store.unfinished()
        except OUTAGE as error:
            log.debug("unfinished evidence is not known: %s", error)
            return
        found = [each for each in map(_finding, rows.values()) if each is not None]
        owned = [each for each in found if self._owns(each)]
        with self._lock:
            self._note_names(rows)
            self._unclaimed = {
                each.id: self._unclaimed.get(each.id, now_s)
                for each in owned
                if each.state is State.OPEN and self._follows.get(each.id) is None
            }
            for finding in owned:
                if finding.state is not State.OPEN:
                    self._follows.resume(finding, now_s)
                elif now_s - self._unclaimed.get(finding.id, now_s) >= UNCLAIMED_SECONDS:
                    self._follows.resume(replace(finding, state=State.RESOLVED), now_s)

    def _owns(self, finding: Finding) -> bool:
        if is_cross_node(finding):
            return self._leads
        return shard(finding.node_name) in self._shards


class NoEvidence:
    """The recorder of an analyzer that keeps no samples."""

    def watch(self, shards: Iterable[int], *, leads: bool = False) -> None:
        """Do nothing."""

    def referenced(self, update: FindingUpdate) -> FindingUpdate:
        """Return the update."""
        return update

    def newly_kept(self) -> list[FindingUpdate]:
        """Return nothing."""
        return []


def _finding(row: Mapping[str, Any]) -> Finding | None:
    try:
        return restore_record(Finding, row["finding"])
    except (StateError, KeyError, TypeError, ValueError):  # of another version
        return None
