"""One host watched end to end: private Redis, collector process, analyzer here.

Everything that must not outlive the scan is entered on one stack, in the order of need, and
leaves in reverse, whatever happens.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from reveal_cli.collector_process import Keeper
from reveal_cli.configuration_hints import Hints
from reveal_cli.errors import CliError
from reveal_cli.finding_log import FindingLog
from reveal_cli.findings_table import claim_text, local_time
from reveal_cli.interrupt import Interrupt
from reveal_cli.progress import Progress, View
from reveal_cli.recordings import Recording
from reveal_contract import catalogue, names
from reveal_contract.channels import ChannelTable
from reveal_contract.finding import Finding, FindingUpdate
from reveal_contract.metric import Subsystem
from reveal_contract.settings import AnalyzerSettings
from reveal_contract.subjects import Identity, to_rows

if TYPE_CHECKING:
    import redis

    from reveal_analyzer.configuration.feed import FactsFeed
    from reveal_analyzer.node import NodeAnalyzer
    from reveal_analyzer.stream.reader import Received, StreamReader
    from reveal_cli.broker import Broker

FIRST_SLICE = 20.0  # a collector that delivers nothing for so long never will, s
# what the collector gets to end in order, s; killed, it loses the slice it is at
_STOPPING, _HURRY = 1.5, 0.3
_SUBJECT_SLICES = 5  # how often the recording is told who the subjects are
_AWAY_SAID = 3.0  # a Redis away for shorter is no news, s


@dataclass(frozen=True)
class Plan:
    """What to watch and for how long; ``redis_url`` "" means a private server."""

    node: str
    duration: float
    settings: AnalyzerSettings
    host_flags: tuple[str, ...]
    redis_url: str = ""

    @property
    def profile(self) -> str:
        """Keys of our own, so that scans on one Redis never read each other's slices."""
        return f"scan-{self.node}-{os.getpid()}"


@dataclass
class Watched:
    """What a session saw, for the table, the summary and the exit code."""

    finding_log: FindingLog = field(default_factory=FindingLog)
    hints: Hints = field(default_factory=Hints)
    started_ns: int = 0
    ended_ns: int = 0
    slices: int = 0
    lost: int = 0
    refused: int = 0
    channels: int = 0
    restarts: int = 0
    away_seconds: float = 0.0
    seconds: float = 0.0
    judged: bool = False
    failed: bool = False
    warmup_load: dict[str, float] = field(default_factory=dict)
    collector: dict[str, Any] = field(default_factory=dict)
    troubles: list[str] = field(default_factory=list)


EachTurn = Callable[[float, Watched], None]


class Session:
    """Watches until the time is over or the user interrupts; ``run`` gives what was seen.

    ``each_turn`` is called about twenty times a second with the seconds watched so far and what
    was seen, and once more, with infinity, when watching ends: the demo's fault lives there.
    """

    def __init__(
        self,
        plan: Plan,
        recording: Recording,
        progress: Progress,
        interrupt: Interrupt,
        each_turn: EachTurn,
    ) -> None:
        self.plan = plan
        self.watched = Watched()
        self._recording, self._progress, self._interrupt = recording, progress, interrupt
        self._each_turn = each_turn
        self._first_at: float | None = None
        self._away_since: float | None = None
        self._said: set[str] = set()
        self._server: Broker | None = None
        self._table = b""
        self._subjects: tuple[Identity, ...] = ()
        self._areas: frozenset[Subsystem] = frozenset()

    def run(self) -> Watched:
        """Watch; raises ``CliError`` if it could not begin, ``Interrupted`` before it did."""
        self.watched.started_ns = self.watched.ended_ns = time.time_ns()
        with contextlib.ExitStack() as stack:
            url = self.plan.redis_url or self._broker(stack)
            flags = ("--profile", self.plan.profile, *self.plan.host_flags)
            collector = stack.enter_context(Keeper(flags, url))
            with self._interrupt.raising():
                reader, analyzer, client, facts = self._analysis(url)
            stack.callback(client.close)
            stack.callback(reader.close)
            if self.plan.redis_url:
                stack.callback(_forget, client, self.plan)
            try:
                self._watch(reader, analyzer, collector, facts)
            finally:
                self.watched.ended_ns = time.time_ns()
                self._each_turn(math.inf, self.watched)
            collector.process.stop(_HURRY if self._interrupt.requested else _STOPPING)
            self._take(reader, analyzer)
            self.watched.finding_log.take(analyzer.finish())
            self.watched.collector = _collector_state(client, self.plan.node)
        return self.watched

    def _broker(self, stack: contextlib.ExitStack) -> str:
        from reveal_cli.broker import Broker, BrokerError  # noqa: PLC0415 - redis is an extra

        try:
            self._server = server = stack.enter_context(Broker())
        except BrokerError as error:
            raise CliError(str(error)) from None
        return server.url

    def _analysis(self, url: str) -> tuple[StreamReader, NodeAnalyzer, redis.Redis, FactsFeed]:
        import redis  # noqa: PLC0415 - heavy, and wanted only here

        from reveal_analyzer.configuration.feed import FactsFeed  # noqa: PLC0415
        from reveal_analyzer.node import NodeAnalyzer  # noqa: PLC0415
        from reveal_analyzer.stream.reader import StreamReader  # noqa: PLC0415

        settings = replace(self.plan.settings, redis_url=url, profile=self.plan.profile)
        client = redis.Redis.from_url(url, socket_timeout=0.5)
        reader = StreamReader(settings, f"scan-{os.getpid()}")
        subjects = partial(reader.subjects, self.plan.node)
        analyzer = NodeAnalyzer(self.plan.node, settings, subjects=subjects)
        return reader, analyzer, client, FactsFeed(client)

    def _watch(
        self, reader: StreamReader, analyzer: NodeAnalyzer, collector: Keeper, facts: FactsFeed
    ) -> None:
        began = time.monotonic()
        while not self._over(began) and not self._interrupt.requested:
            self._take(reader, analyzer)  # waits for the rest of a tick of the stream
            self._take_facts(facts)
            self._look_after(reader, collector)
            self._each_turn(self._elapsed, self.watched)
            self._show(analyzer)

    @property
    def _elapsed(self) -> float:
        return 0.0 if self._first_at is None else time.monotonic() - self._first_at

    def _over(self, began: float) -> bool:
        if self._first_at is None and time.monotonic() - began > FIRST_SLICE:
            raise CliError(
                f"the collector delivered nothing within {FIRST_SLICE:.0f} s;"
                " `reveal doctor` says what this host gives"
            )
        return self._elapsed >= self.plan.duration

    def _take(self, reader: StreamReader, analyzer: NodeAnalyzer) -> None:
        """Judge and keep what has arrived."""
        received = reader.poll()
        for slice_ in received:
            self._one(slice_, analyzer, reader)
        if received:
            reader.ack(received)
            self.watched.seconds = self._elapsed
            self.watched.refused = reader.counts.refused

    def _take_facts(self, feed: FactsFeed) -> None:
        """What the collector found out about the host, when there is news."""
        for facts in feed.poll([self.plan.node], time.monotonic()):
            self._recording.facts(facts)
            self.watched.hints.take(facts, time.time_ns())

    def _one(self, slice_: Received, analyzer: NodeAnalyzer, reader: StreamReader) -> None:
        seen = self.watched
        self._first_at = self._first_at or time.monotonic()
        seen.slices += 1
        seen.lost += slice_.gap
        seen.channels = len(slice_.table.fast) + len(slice_.table.slow)
        if slice_.gap:
            self._warn(f"{slice_.gap} slices lost before {local_time(slice_.message.start_ns)}")
        if seen.slices % _SUBJECT_SLICES == 1:
            self._note_subjects(reader.subjects(self.plan.node))
        self._recording.message(slice_.data, slice_.table)
        for finding in seen.finding_log.take(self._judge(slice_, analyzer)):
            self._progress.event(f"found {_event(finding)}")
        if slice_.table.key != self._table:
            self._table, self._areas = slice_.table.key, _areas(slice_.table)
        status = analyzer.status()
        seen.judged = seen.judged or not status.learning
        seen.warmup_load = dict(status.warmup_load)

    def _note_subjects(self, subjects: tuple[Identity, ...]) -> None:
        if subjects != self._subjects:
            self._recording.note({"node": self.plan.node, "subjects": to_rows(subjects)})
            self._subjects = subjects

    def _judge(self, slice_: Received, analyzer: NodeAnalyzer) -> list[FindingUpdate]:
        """A slice that cannot be judged is said, once for each reason, and passed over."""
        try:
            return analyzer.analyze(slice_.message, slice_.table)
        except Exception as error:  # a defect: the slices after it shall still be judged
            self._warn_once(f"a slice could not be judged ({type(error).__name__}: {error})")
            return []

    def _look_after(self, reader: StreamReader, collector: Keeper) -> None:
        """The collector, the connection and the recording, each said when it fails."""
        if said := collector.check(time.monotonic(), delivered=self._first_at is not None):
            self._warn(said)
        self.watched.restarts = collector.restarts
        if self._recording.problem:
            self._warn_once(self._recording.problem)
        self._follow_connection(reader.connected)

    def _follow_connection(self, connected: bool) -> None:
        now = time.monotonic()
        if not connected:
            self._away_since = self._away_since or now
            if self._server is not None and not self._server.alive:
                self._revive(self._server)
        elif self._away_since is not None:
            away, self._away_since = now - self._away_since, None
            self.watched.away_seconds += away
            if away >= _AWAY_SAID:
                self._warn(f"Redis was away for {away:.0f} s; what was kept meanwhile arrives now")

    def _revive(self, server: Broker) -> None:
        """The private Redis anew; what was in it the collector does not have any more."""
        try:
            server.restart()
            self._warn("the private Redis ended; it is started again")
        except RuntimeError as error:
            self._warn_once(f"the private Redis ended and cannot be started again: {error}")

    def _warn_once(self, line: str) -> None:
        if line not in self._said:
            self._said.add(line)
            self.watched.failed = True
            self._warn(line)

    def _warn(self, line: str) -> None:
        self.watched.troubles.append(line)
        self._progress.say(line)

    def _show(self, analyzer: NodeAnalyzer) -> None:
        status = analyzer.status()
        left = self.plan.settings.warmup_seconds - self._elapsed
        phase = "starting" if self._first_at is None else "watching"
        if status.learning and self._first_at is not None:
            phase = "learning what is normal here"
        away = 0.0 if self._away_since is None else time.monotonic() - self._away_since
        self._progress.show(
            View(
                node=self.plan.node,
                phase=phase,
                elapsed=self._elapsed,
                duration=self.plan.duration,
                slices=self.watched.slices,
                lost=self.watched.lost,
                channels=self.watched.channels,
                warmup_left=max(0.0, left) if status.learning else 0.0,
                findings=len(self.watched.finding_log.findings),
                over={area: score for area, score in status.over.items() if area in self._areas},
                suspected=[_event(finding) for finding in self.watched.finding_log.suspected],
                changed=list(status.changed),
                heartbeats=list(status.heartbeats),
                trouble=f"Redis is away since {away:.0f} s" if away >= 1 else "",
            )
        )


def _areas(table: ChannelTable) -> frozenset[Subsystem]:
    """The subsystems this host gives channels of."""
    found = set()
    for metric in {channel.metric for channel in (*table.fast, *table.slow)}:
        with contextlib.suppress(catalogue.UnknownMetricError):  # of a newer collector
            found.add(catalogue.find(metric).subsystem)
    return frozenset(found)


def _event(finding: Finding) -> str:
    when = local_time(finding.first_seen_ns)
    return f"{when} {finding.subsystem.value} {finding.severity.value}: {claim_text(finding)}"


def _collector_state(client: redis.Redis, node: str) -> dict[str, Any]:
    """What the collector last said of itself; empty if Redis cannot tell any more."""
    with contextlib.suppress(Exception):  # for the summary only: never a reason to fail
        said = client.hget(names.NODES_KEY, node)
        state = json.loads(said) if isinstance(said, bytes) else {}
        return state if isinstance(state, dict) else {}
    return {}


def _forget(client: redis.Redis, plan: Plan) -> None:
    """Take our keys out of a Redis that is not ours."""
    with contextlib.suppress(Exception):  # it may be gone; the streams are bounded anyway
        for key in _own_keys(plan.profile):
            client.delete(key)


def _own_keys(profile: str) -> Iterator[str]:
    yield names.analyzers_key(profile)
    for shard in range(names.SHARDS):
        yield names.samples_key(profile, shard)
        yield names.owner_key(profile, shard)
