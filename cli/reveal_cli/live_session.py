"""A live scan of one host: private Redis, collector process, and the analyzer in this process.

What must not outlive the scan is entered on one stack in the order of need, and is closed in
reverse order on every way out.
"""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from reveal_cli.baseline import encode_baseline, start_from
from reveal_cli.collector_process import CollectorSupervisor
from reveal_cli.configuration_hints import ConfigurationHints
from reveal_cli.errors import CliError
from reveal_cli.finding_log import FindingLog
from reveal_cli.findings_table import local_time
from reveal_cli.interrupt import Interrupt
from reveal_cli.live_ledger import LiveLedger
from reveal_cli.live_view import collector_state, event_text, subsystems_of
from reveal_cli.progress import Progress, ProgressView
from reveal_contract import names
from reveal_contract.cpu_shares import EQUAL_SHARES, CpuShares
from reveal_contract.finding import FindingUpdate
from reveal_contract.metric import Subsystem
from reveal_contract.names import CPU_SHARES
from reveal_contract.settings import AnalyzerSettings
from reveal_contract.subjects import Identity, to_rows
from reveal_contract.wire import Message

if TYPE_CHECKING:
    import redis

    from reveal_analyzer.configuration.feed import FactsFeed
    from reveal_analyzer.ledger.lost_time import LostTime
    from reveal_analyzer.node import NodeAnalyzer
    from reveal_analyzer.state.codec import SavedState
    from reveal_analyzer.stream.reader import StreamReader
    from reveal_analyzer.stream.received import Received
    from reveal_cli.broker import Broker
    from reveal_cli.recordings import Recorder

FIRST_SLICE = 20.0  # a collector that delivers nothing for this long has failed, s
# time for the collector to stop, s; when it is killed, its last slice is lost
_STOP_S, _INTERRUPTED_STOP_S = 1.5, 0.3
_SUBJECT_SLICES = 5  # the recording gets the names of subjects every so many slices
_MIN_AWAY_S = 3.0  # a shorter absence of Redis is not worth a warning, s


@dataclass(frozen=True)
class ScanPlan:
    """What to scan and for how long; an empty ``redis_url`` means a private server.

    With a ``baseline``, the scan starts from what an earlier scan learned.
    """

    node: str
    duration: float
    settings: AnalyzerSettings
    host_flags: tuple[str, ...]
    redis_url: str = ""
    baseline: SavedState | None = None

    @property
    def warmup(self) -> int:
        """Return the seconds of learning before anything is judged."""
        return 0 if self.baseline else self.settings.warmup_seconds

    @property
    def profile(self) -> str:
        """Return the prefix of this scan's keys: scans on one Redis must not mix their slices."""
        return f"scan-{self.node}-{os.getpid()}"


@dataclass
class ScanState:
    """The findings and counts of a scan, for the table, the summary and the exit code."""

    finding_log: FindingLog = field(default_factory=FindingLog)
    hints: ConfigurationHints = field(default_factory=ConfigurationHints)
    started_ns: int = 0
    ended_ns: int = 0
    slices: int = 0
    lost: int = 0
    refused: int = 0
    channels: int = 0
    restarts: int = 0
    redis_away_seconds: float = 0.0
    seconds: float = 0.0
    judged: bool = False
    failed: bool = False
    warmup_load: dict[str, float] = field(default_factory=dict)
    lost_time: tuple[LostTime, ...] = ()
    learned: bytes = b""
    collector: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


OnTick = Callable[[float, ScanState], None]


class LiveSession:
    """Watches until the time is over or the user interrupts.

    ``on_tick`` is called about twenty times a second with the seconds watched so far and the
    state, and once with infinity when watching ends: the demo runs its fault there.
    """

    def __init__(
        self,
        plan: ScanPlan,
        recording: Recorder,
        progress: Progress,
        interrupt: Interrupt,
        on_tick: OnTick,
    ) -> None:
        self.plan = plan
        self.state = ScanState()
        self._recording, self._progress, self._interrupt = recording, progress, interrupt
        self._on_tick = on_tick
        self._ledger = LiveLedger()
        self._first_slice_time: float | None = None
        self._away_since: float | None = None
        self._warned: set[str] = set()
        self._server: Broker | None = None
        self._table = b""
        self._last: Message | None = None
        self._subjects: tuple[Identity, ...] = ()
        self._shares = EQUAL_SHARES
        self._subsystems: frozenset[Subsystem] = frozenset()

    def run(self) -> None:
        """Watch; raises ``CliError`` if the scan cannot start, ``Interrupted`` before it starts."""
        self.state.started_ns = self.state.ended_ns = time.time_ns()
        with contextlib.ExitStack() as stack:
            url = self.plan.redis_url or self._start_redis(stack)
            if self.plan.redis_url:  # first, so that it runs after the last writer has ended
                stack.callback(_delete_keys, url, self.plan.profile)
            flags = ("--profile", self.plan.profile, *self.plan.host_flags)
            collector = stack.enter_context(CollectorSupervisor(flags, url))
            with self._interrupt.raising():
                reader, analyzer, client, facts = self._connect(url)
            analyzer.on_accounts = self._ledger.add
            stack.callback(client.close)
            stack.callback(reader.close)
            try:
                self._watch(reader, analyzer, collector, facts, client)
            finally:
                self.state.ended_ns = time.time_ns()
                self._on_tick(math.inf, self.state)
            # before the collector ends, as it removes its state then
            self.state.collector = collector_state(client, self.plan.profile, self.plan.node)
            collector.process.stop(_INTERRUPTED_STOP_S if self._interrupt.requested else _STOP_S)
            self._read_slices(reader, analyzer)
            self.state.lost_time = analyzer.lost_time()
            self._keep_learned(analyzer)
            self.state.finding_log.update([*analyzer.finish(), *self._ranks.finish()])

    def _start_redis(self, stack: contextlib.ExitStack) -> str:
        from reveal_cli.broker import Broker, BrokerError  # noqa: PLC0415 - redis is an extra

        try:
            self._server = server = stack.enter_context(Broker())
        except BrokerError as error:
            raise CliError(str(error)) from None
        return server.url

    def _connect(self, url: str) -> tuple[StreamReader, NodeAnalyzer, redis.Redis, FactsFeed]:
        from reveal_analyzer.configuration.feed import FactsFeed  # noqa: PLC0415 - redis, heavy
        from reveal_analyzer.gangs.local import LocalRanks  # noqa: PLC0415
        from reveal_analyzer.node import Announced, NodeAnalyzer  # noqa: PLC0415
        from reveal_analyzer.stream.reader import StreamReader  # noqa: PLC0415
        from reveal_analyzer.stream.redis_connection import connect  # noqa: PLC0415

        settings = replace(self.plan.settings, redis_url=url, profile=self.plan.profile)
        client = connect(url)
        reader = StreamReader(settings, f"scan-{os.getpid()}")
        node = self.plan.node
        announced = Announced(partial(reader.subjects, node), partial(reader.shares, node))
        analyzer = NodeAnalyzer(node, settings, announced=announced)
        self._ranks = LocalRanks()
        if self.plan.baseline is not None:
            start_from(self.plan.baseline, analyzer)
        return reader, analyzer, client, FactsFeed(reader.records)

    def _watch(
        self,
        reader: StreamReader,
        analyzer: NodeAnalyzer,
        collector: CollectorSupervisor,
        facts: FactsFeed,
        client: redis.Redis,
    ) -> None:
        start = time.monotonic()
        while not self._is_over(start) and not self._interrupt.requested:
            self._read_slices(reader, analyzer)  # blocks for up to one poll of the stream
            self._read_facts(facts)
            if self._ledger.is_due:
                state = collector_state(client, self.plan.profile, self.plan.node)
                self._ledger.explain(state)
            self._check_parts(reader, collector)
            self._on_tick(self._elapsed, self.state)
            self._show(analyzer)

    @property
    def _elapsed(self) -> float:
        if self._first_slice_time is None:
            return 0.0
        return time.monotonic() - self._first_slice_time

    def _is_over(self, start: float) -> bool:
        if self._first_slice_time is None and time.monotonic() - start > FIRST_SLICE:
            raise CliError(
                f"the collector sent nothing for {FIRST_SLICE:.0f} s;"
                " `reveal catalog` lists what can be read on this host"
            )
        return self._elapsed >= self.plan.duration

    def _read_slices(self, reader: StreamReader, analyzer: NodeAnalyzer) -> None:
        """Judge and record the slices that have arrived."""
        received = reader.poll()
        for slice_ in received:
            self._process(slice_, analyzer, reader)
        if received:
            reader.ack(received)
            self.state.seconds = self._elapsed
            self.state.refused = reader.counts.refused

    def _read_facts(self, feed: FactsFeed) -> None:
        """Evaluate the configuration rules when the collector has published new facts."""
        for facts in feed.poll([self.plan.node], time.monotonic()):
            self._recording.facts(facts)
            self.state.hints.update(facts, time.time_ns())

    def _process(self, slice_: Received, analyzer: NodeAnalyzer, reader: StreamReader) -> None:
        state = self.state
        self._first_slice_time = self._first_slice_time or time.monotonic()
        state.slices += 1
        self._last = slice_.message
        state.lost += slice_.gap
        state.channels = len(slice_.table.fast) + len(slice_.table.slow)
        if slice_.gap:
            self._warn(f"{slice_.gap} slices lost before {local_time(slice_.message.start_ns)}")
        if state.slices % _SUBJECT_SLICES == 1:
            self._record_subjects(reader.subjects(self.plan.node))
            self._record_shares(reader.shares(self.plan.node))
        self._recording.message(slice_.data, slice_.table)
        for finding in state.finding_log.update(self._judge(slice_, analyzer)):
            self._progress.event(f"found {event_text(finding)}")
        self._ledger.end_second()
        if slice_.table.key != self._table:
            self._table, self._subsystems = slice_.table.key, subsystems_of(slice_.table)
        status = analyzer.status()
        state.judged = state.judged or not status.learning
        state.warmup_load = dict(status.warmup_load)

    def _keep_learned(self, analyzer: NodeAnalyzer) -> None:
        """Keep what was learned, for the file from which another scan may start."""
        if self._last is None or not self.state.judged:
            return
        try:
            self.state.learned = encode_baseline(analyzer, self._last)
        except Exception as error:  # the findings must not be lost with it
            self._warn_once(f"what was learned cannot be saved ({type(error).__name__}: {error})")

    def _record_subjects(self, subjects: tuple[Identity, ...]) -> None:
        if subjects != self._subjects:
            self._recording.note({"node": self.plan.node, "subjects": to_rows(subjects)})
            self._subjects = subjects

    def _record_shares(self, shares: CpuShares) -> None:
        if shares != self._shares:
            self._recording.note({"node": self.plan.node, CPU_SHARES: shares.to_rows()})
            self._shares = shares

    def _judge(self, slice_: Received, analyzer: NodeAnalyzer) -> list[FindingUpdate]:
        """Judge a slice; one that fails is skipped, with one warning for each reason."""
        try:
            updates = analyzer.analyze(slice_.message, slice_.table)
            ranks = self._ranks.add(analyzer.ranks.pop_ended(), slice_.message.start_ns)
            return [*updates, *ranks]
        except Exception as error:  # a defect: the slices after it can still be judged
            self._warn_once(f"a slice could not be judged ({type(error).__name__}: {error})")
            return []

    def _check_parts(self, reader: StreamReader, collector: CollectorSupervisor) -> None:
        """Warn of a failure of the collector, the connection or the recording."""
        delivered = self._first_slice_time is not None
        if warning := collector.check(time.monotonic(), delivered=delivered):
            self._warn(warning)
        self.state.restarts = collector.restarts
        if self._recording.problem:
            self._warn_once(self._recording.problem)
        if (notice := self._recording.notice) and notice not in self.state.warnings:
            self._warn(notice)
        self._check_connection(reader.connected)

    def _check_connection(self, connected: bool) -> None:
        now = time.monotonic()
        if not connected:
            self._away_since = self._away_since or now
            if self._server is not None and not self._server.alive:
                self._restart_redis(self._server)
        elif self._away_since is not None:
            away, self._away_since = now - self._away_since, None
            self.state.redis_away_seconds += away
            if away >= _MIN_AWAY_S:
                self._warn(
                    f"Redis was unreachable for {away:.0f} s; the collector sends what it kept"
                )

    def _restart_redis(self, server: Broker) -> None:
        """Start the private Redis again, empty: slices that were in it are lost."""
        try:
            server.restart()
            self._warn("the private Redis ended; it is started again")
        except RuntimeError as error:
            self._warn_once(f"the private Redis ended and cannot be started again: {error}")

    def _warn_once(self, line: str) -> None:
        if line not in self._warned:
            self._warned.add(line)
            self.state.failed = True
            self._warn(line)

    def _warn(self, line: str) -> None:
        self.state.warnings.append(line)
        self._progress.warn(line)

    def _show(self, analyzer: NodeAnalyzer) -> None:
        status, state = analyzer.status(), self.state
        left = self.plan.warmup - self._elapsed
        phase = "starting" if self._first_slice_time is None else "watching"
        if status.learning and self._first_slice_time is not None:
            phase = "learning the baseline"
        away = 0.0 if self._away_since is None else time.monotonic() - self._away_since
        scores = {name: score for name, score in status.over.items() if name in self._subsystems}
        self._progress.update(
            ProgressView(
                node=self.plan.node,
                phase=phase,
                elapsed=self._elapsed,
                duration=self.plan.duration,
                slices=state.slices,
                lost=state.lost,
                channels=state.channels,
                warmup_left=max(0.0, left) if status.learning else 0.0,
                findings=len(state.finding_log.findings),
                scores=scores,
                suspected=[event_text(finding) for finding in state.finding_log.suspected],
                changed=list(status.changed),
                step_times=list(status.heartbeats),
                lost_time=self._ledger.lost,
                ledger=self._ledger.tier,
                warning=f"Redis has been unreachable for {away:.0f} s" if away >= 1 else "",
            )
        )


def _delete_keys(url: str, profile: str) -> None:
    """Delete the keys of this scan from a Redis that others use, too."""
    from reveal_analyzer.stream.redis_connection import connect  # noqa: PLC0415 - redis, heavy

    # Redis may be gone: the keys end by themselves
    with contextlib.suppress(Exception), connect(url) as client:
        for key in client.scan_iter(match=names.key_pattern(profile), count=1000):
            client.delete(key)
