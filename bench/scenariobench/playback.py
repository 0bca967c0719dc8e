"""One timeline on its way: slices to the streams, changes of the analyzers, rows of findings."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import redis

from reveal_analyzer.stream.leases import rank
from reveal_contract import names, wire
from reveal_contract.channels import ChannelTable
from reveal_contract.subjects import to_rows
from scenariobench.analyzers import Analyzer, Analyzers
from scenariobench.compose import TimedSlice, slices
from scenariobench.findings_file import FindingsFile
from scenariobench.stream import Fields, NodeStream
from scenariobench.subject_table import SubjectTable
from scenariobench.timeline import AnalyzerChange, AnalyzerEvent, Timeline
from scenariobench.truth import TrueValues

PATCHED = ("--sensitivity", "Medium")
_BULK = 240  # slices sent together where nothing has to be timed
_DOWN_S = 8  # seconds until a killed analyzer's shard is read again
_UNREAD_S = 2  # slices that a killed analyzer had not acknowledged
_SCALED_S = 40  # seconds with two analyzers
_MOVE_S = 60.0  # longest time until a shard moves to a second analyzer
_SAVED_S = 9.0  # until a node whose name makes it early was saved once
# where findings are timed to the second, and to two: before and after onset and end
_OPENING_S, _ENDING_S = (1, 9), (2, 44)


@dataclass
class Arm:
    """One checkout that a timeline is played to."""

    analyzers: Analyzers
    stream: NodeStream
    findings: FindingsFile
    active: Analyzer

    def pause(self, second: int) -> None:
        """Wait until everything is processed."""
        self.stream.wait_processed()
        self.findings.poll(second)


@dataclass
class Playback:
    client: redis.Redis
    timeline: Timeline
    arms: Sequence[Arm]
    start_ns: int
    _announced: set[bytes] = field(default_factory=set)
    _subjects: SubjectTable = field(default_factory=SubjectTable)
    _rng: random.Random = field(default_factory=random.Random)
    _began: float = field(default_factory=time.monotonic)

    def run(self) -> dict[str, TrueValues]:
        """Play all slices; return the true values of each fault."""
        values = {truth.name: TrueValues() for truth in self.timeline.truths}
        self._rng.seed(self.timeline.seed)
        steps = self._steps()
        source = self._counted(values)
        batch: list[TimedSlice] = []
        for each in source:
            step = steps.get(each.second)
            if step is not None:
                self._send(batch)
                batch = []
                if step(each, source):
                    continue
            batch.append(each)
            if len(batch) >= self._size(each.second):
                self._send(batch)
                batch = []
        self._send(batch)
        for arm in self.arms:
            arm.pause(self.timeline.seconds)
        return values

    def clear(self) -> None:
        """Remove what the node left in Redis."""
        for arm in self.arms:
            arm.stream.trim(0)
        if self._announced:
            self.client.hdel(names.EARLIER_TABLES_KEY, *(key.hex() for key in self._announced))
        self.client.hdel(names.EARLIER_NODE_KEYS[names.SUBJECTS], self.timeline.node)

    def _steps(self) -> dict[int, _Step]:
        """Return what happens to the analyzers, by second."""
        steps: dict[int, _Step] = {}
        for event in self.timeline.events:
            steps[event.second] = _Step(self, event)
            if event.change is AnalyzerChange.SCALE:
                steps[event.second + _SCALED_S] = _Step(self, None)
            elif event.change is AnalyzerChange.KILL:
                age = self._rng.randint(5, 55)
                steps[event.second - age] = _Step(self, None, saved=True)
        return steps

    def _counted(self, values: dict[str, TrueValues]) -> Iterator[TimedSlice]:
        """Yield the slices, and add those of a fault to its true values.

        The second in which it begins counts: some faults consist of what happens then.
        """
        for each in slices(self.timeline, self.start_ns):
            for truth in self.timeline.truths:
                if truth.onset < each.second + 1 <= truth.end:
                    values[truth.name].add(each.frame)
            yield each

    def _size(self, second: int) -> int:
        """Return how many slices are sent together here."""
        sizes = [_BULK]
        for truth in self.timeline.truths:
            if -_OPENING_S[0] <= second - truth.onset <= _OPENING_S[1]:
                sizes.append(1)
            if -_ENDING_S[0] <= second - truth.end <= _ENDING_S[1]:
                sizes.append(2)
        return min(sizes)

    def _send(self, batch: Sequence[TimedSlice], *, wait: bool = True) -> None:
        if not batch:
            return
        start_ms = self.start_ns // 1_000_000
        entries = [(start_ms + each.second * 1000, self._fields(each)) for each in batch]
        for arm in self.arms:
            arm.stream.add(entries)
        if wait:
            self._collect(batch)

    def _collect(self, batch: Sequence[TimedSlice]) -> None:
        """Take the findings of a batch that was read; those of a single slice with its second."""
        for arm in self.arms:
            arm.stream.wait_delivered()
            if len(batch) == 1:
                arm.analyzers.wait_idle()
        for arm in self.arms:
            arm.findings.poll(batch[-1].second)
            if len(batch) >= _BULK:
                arm.stream.trim()

    def _fields(self, each: TimedSlice) -> Fields:
        message = each.message
        key = each.table.key
        if key not in self._announced:
            self.client.hset(names.EARLIER_TABLES_KEY, key.hex(), each.table.to_json())
            self._announced.add(key)
        if self._subjects.update(each.table, message.start_ns):
            rows = json.dumps(to_rows(self._subjects.identities()))
            self.client.hset(names.EARLIER_NODE_KEYS[names.SUBJECTS], self.timeline.node, rows)
        return {
            names.FIELD_NODE: message.node,
            names.FIELD_BOOT: message.boot,
            names.FIELD_SEQUENCE: message.sequence,
            names.FIELD_TABLE: key.hex(),
            names.FIELD_TIME: message.start_ns,
            names.FIELD_DATA: wire.encode(message, _gauges(each.table)),
        }

    def change(self, event: AnalyzerEvent, first: TimedSlice, rest: Iterator[TimedSlice]) -> bool:
        """Change the analyzers; return whether ``first`` was sent, too."""
        self._pause(first.second)
        # by the clock of the node it is now: the stream has the ids of the last minute
        while time.time() * 1e9 < self.start_ns + first.second * 1e9:
            if event.change is AnalyzerChange.SCALE:
                break  # it takes some time until the shard moves
            time.sleep(0.02)
        if event.change is AnalyzerChange.KILL:
            self._kill(first, rest)
            return True
        if event.change is AnalyzerChange.SCALE:
            self._scale()
        else:
            extra = PATCHED if event.change is AnalyzerChange.PATCH else ()
            for arm in self.arms:
                _roll(arm, extra)
        return False

    def scale_back(self, second: int) -> None:
        """End the second analyzer; the first takes its shards."""
        self._pause(second)
        for arm in self.arms:
            joined = next(each for each in arm.analyzers.running if each is not arm.active)
            arm.analyzers.terminate(joined)
            arm.analyzers.wait_owner(arm.active, _MOVE_S)

    def wait_saved(self, second: int) -> None:
        """Wait until the next slice makes an analyzer save the node, as it does each minute."""
        self._pause(second)
        time.sleep(max(0.0, self._began + _SAVED_S - time.monotonic()))

    def _pause(self, second: int) -> None:
        for arm in self.arms:
            arm.pause(second)

    def _kill(self, first: TimedSlice, rest: Iterator[TimedSlice]) -> None:
        """Kill the analyzer while it has slices, and start another one seconds later."""
        unread = [first, *_next(rest, _UNREAD_S - 1)]
        self._send(unread, wait=False)
        time.sleep(self._rng.random() * 0.3)
        for arm in self.arms:
            arm.analyzers.kill(arm.active)
        down = _next(rest, _DOWN_S)
        self._send(down, wait=False)
        for arm in self.arms:
            arm.active = arm.analyzers.start()
        for arm in self.arms:
            arm.analyzers.wait_owner(arm.active)
            arm.pause((down or unread)[-1].second)

    def _scale(self) -> None:
        joined = []
        for arm in self.arms:
            owner = _outranking(arm.active.owner, names.shard(self.timeline.node))
            joined.append(arm.analyzers.start(owner))
        for arm, analyzer in zip(self.arms, joined, strict=True):
            arm.analyzers.wait_owner(analyzer, _MOVE_S)


@dataclass(frozen=True)
class _Step:
    """What happens before a second is sent: an event, or what belongs to one."""

    playback: Playback
    event: AnalyzerEvent | None
    saved: bool = False

    def __call__(self, first: TimedSlice, rest: Iterator[TimedSlice]) -> bool:
        """Return whether the second was sent already."""
        if self.event is not None:
            return self.playback.change(self.event, first, rest)
        if self.saved:
            self.playback.wait_saved(first.second)
        else:
            self.playback.scale_back(first.second)
        return False


def _roll(arm: Arm, extra: Sequence[str]) -> None:
    """Replace the analyzer as a Deployment does: the new one starts before the old one ends."""
    old = arm.active
    arm.active = arm.analyzers.start(extra=extra)
    arm.analyzers.wait_registered(arm.active)
    arm.analyzers.terminate(old)
    arm.analyzers.wait_owner(arm.active)


def _next(source: Iterator[TimedSlice], count: int) -> list[TimedSlice]:
    found = []
    for _ in range(count):
        each = next(source, None)
        if each is not None:
            found.append(each)
    return found


def _outranking(owner: str, shard: int) -> str:
    """Return a name that ranks before ``owner`` for this shard."""
    candidates = (f"joined-{number}" for number in range(1000))
    return next(name for name in candidates if rank(shard, owner, [owner, name]) == 1)


_GAUGES: dict[bytes, wire.Bools] = {}


def _gauges(table: ChannelTable) -> wire.Bools:
    if table.key not in _GAUGES:
        _GAUGES[table.key] = wire.gauges(table)
    return _GAUGES[table.key]
