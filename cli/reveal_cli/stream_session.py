"""A node that is watched through the Redis of its collector; nothing there is changed.

The stream keeps two minutes.  They are judged first, so that the baseline is learned at once.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from reveal_analyzer.stream.sequence import NodeSequence
from reveal_cli.errors import CliError
from reveal_cli.finding_log import FindingLog
from reveal_cli.interrupt import Interrupt
from reveal_cli.live_ledger import LiveLedger
from reveal_cli.live_view import collector_state, event_text, subsystems_of
from reveal_cli.progress import Progress, ProgressView
from reveal_contract.channels import ChannelTable
from reveal_contract.foreign_names import printable
from reveal_contract.metric import Subsystem
from reveal_contract.names import key_pattern, node_of_key
from reveal_contract.settings import AnalyzerSettings
from reveal_contract.wire import Message

if TYPE_CHECKING:
    import redis

    from reveal_analyzer.evidence.stream_slices import StreamSlices
    from reveal_analyzer.node import NodeAnalyzer

_POLL_S = 0.5
_SILENT_S = 5.0  # without a slice, after which the frame says so
_LISTED = 8  # nodes in the sentence on a wrong name
_UNREAD = "Redis cannot be read: {}"

Slice = tuple[Message, ChannelTable]


@dataclass(frozen=True)
class StreamPlan:
    """Which node of which profile to watch, in which Redis, and for how long (s)."""

    node: str
    profile: str
    url: str
    duration: float


class StreamSession:
    """Watches until the time is over or the user interrupts."""

    def __init__(self, plan: StreamPlan, progress: Progress, interrupt: Interrupt) -> None:
        self._plan, self._progress, self._interrupt = plan, progress, interrupt
        self._log, self._ledger = FindingLog(), LiveLedger()
        self._newest_ns = self._slices = self._lost = 0
        self._sequence = NodeSequence()
        self._heard_s = self._started_s = time.monotonic()
        self._table = b""
        self._channels = 0
        self._subsystems: frozenset[Subsystem] = frozenset()
        self._problem = ""

    def run(self) -> None:
        """Watch; raises ``CliError`` if the stream has nothing of the node."""
        from reveal_analyzer.evidence.stream_slices import StreamSlices  # noqa: PLC0415 - redis
        from reveal_analyzer.stream.redis_connection import OUTAGE, connect  # noqa: PLC0415

        plan = self._plan
        with closing(connect(plan.url)) as client:
            with self._interrupt.raising():
                source = StreamSlices(client, plan.profile)
                analyzer = self._analyzer(client)
                try:
                    first = source.since(plan.node, 0)
                    if not first:
                        raise CliError(self._nothing(client))
                except OUTAGE as error:
                    raise CliError(_UNREAD.format(error)) from None
                self._judge(analyzer, first)
            while not self._is_over():
                self._show(analyzer)
                time.sleep(_POLL_S)
                self._poll(source, analyzer, client)
            self._show(analyzer)

    def _analyzer(self, client: redis.Redis) -> NodeAnalyzer:
        from reveal_analyzer.node import Announced, NodeAnalyzer  # noqa: PLC0415 - numpy
        from reveal_analyzer.telemetry.node_records import (  # noqa: PLC0415 - redis
            node_shares,
            node_subjects,
        )

        profile, node = self._plan.profile, self._plan.node
        announced = Announced(
            lambda: node_subjects(client, profile, [node])[node],
            partial(node_shares, client, profile, node),
        )
        analyzer = NodeAnalyzer(node, AnalyzerSettings(), announced=announced)
        analyzer.on_accounts = self._ledger.add
        return analyzer

    def _nothing(self, client: redis.Redis) -> str:
        """Return why there is nothing to watch, with the nodes that there are."""
        keys = client.scan_iter(match=key_pattern(self._plan.profile), count=1000)
        found = {node_of_key(key.decode(errors="replace")) for key in keys}
        nodes = [printable(node) for node in sorted(found - {""})][:_LISTED]
        known = f"; nodes of the profile: {', '.join(nodes)}" if nodes else ""
        return (
            f"node {self._plan.node} of profile {self._plan.profile} has sent nothing to this Redis"
            f" in the last two minutes{known}"
        )

    def _is_over(self) -> bool:
        elapsed_s = time.monotonic() - self._started_s
        return self._interrupt.requested or elapsed_s >= self._plan.duration

    def _poll(self, source: StreamSlices, analyzer: NodeAnalyzer, client: redis.Redis) -> None:
        from reveal_analyzer.stream.redis_connection import OUTAGE  # noqa: PLC0415

        try:
            found = source.since(self._plan.node, self._newest_ns)
        except OUTAGE as error:
            self._problem = _UNREAD.format(error)
            return
        self._problem = ""
        self._judge(analyzer, found)
        if found and self._ledger.is_due:
            self._ledger.explain(collector_state(client, self._plan.profile, self._plan.node))

    def _judge(self, analyzer: NodeAnalyzer, slices: Iterable[Slice]) -> None:
        for message, table in slices:
            self._heard_s = time.monotonic()
            self._newest_ns = message.start_ns
            self._slices += 1
            self._lost += self._sequence.accept(message).gap
            if table.key != self._table:
                self._table, self._subsystems = table.key, subsystems_of(table)
                self._channels = len(table.fast) + len(table.slow)
            for finding in self._log.update(analyzer.analyze(message, table)):
                self._progress.event(f"found {event_text(finding)}")
            self._ledger.end_second()

    def _show(self, analyzer: NodeAnalyzer) -> None:
        status, now = analyzer.status(), time.monotonic()
        silent_s = now - self._heard_s
        silence = f"the node has sent nothing for {silent_s:.0f} s" if silent_s > _SILENT_S else ""
        self._progress.update(
            ProgressView(
                node=self._plan.node,
                phase="learning the baseline" if status.learning else "watching",
                elapsed=now - self._started_s,
                duration=self._plan.duration,
                slices=self._slices,
                lost=self._lost,
                channels=self._channels,
                findings=len(self._log.findings),
                scores={
                    name: score for name, score in status.over.items() if name in self._subsystems
                },
                suspected=[event_text(finding) for finding in self._log.suspected],
                changed=list(status.changed),
                step_times=list(status.heartbeats),
                lost_time=self._ledger.lost,
                ledger=self._ledger.tier,
                warning=self._problem or silence,
            )
        )
