"""A node of another host that is watched by its stream; nothing there is changed.

The stream keeps two minutes.  They are judged first, so that the baseline is learned at once.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from reveal_analyzer.stream.sequence import NodeSequence
from reveal_cli.errors import CliError
from reveal_cli.finding_log import FindingLog
from reveal_cli.interrupt import Interrupt
from reveal_cli.live_ledger import LiveLedger
from reveal_cli.live_view import event_text, subsystems_of
from reveal_cli.node_stream import NodeStream, Slice, StreamOutageError
from reveal_cli.progress import Progress, ProgressView
from reveal_contract.metric import Subsystem
from reveal_contract.settings import AnalyzerSettings

if TYPE_CHECKING:
    from reveal_analyzer.node import NodeAnalyzer

_POLL_S = 0.5
_SILENT_S = 5.0  # without a slice, after which the frame says so


class StreamSession:
    """Watches until the time (s) is over or the user interrupts."""

    def __init__(
        self, stream: NodeStream, duration: float, progress: Progress, interrupt: Interrupt
    ) -> None:
        self._stream, self._duration = stream, duration
        self._progress, self._interrupt = progress, interrupt
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
        with self._interrupt.raising():
            analyzer = self._analyzer()
            try:
                first = self._stream.since(0)
                if not first:
                    raise self._stream.why_empty()
            except StreamOutageError as error:
                raise CliError(str(error)) from None
            self._judge(analyzer, first)
        while not self._is_over():
            self._show(analyzer)
            time.sleep(_POLL_S)
            self._poll(analyzer)
        self._show(analyzer)

    def _analyzer(self) -> NodeAnalyzer:
        from reveal_analyzer.node import NodeAnalyzer  # noqa: PLC0415 - numpy

        analyzer = NodeAnalyzer(
            self._stream.node, AnalyzerSettings(), announced=self._stream.announced()
        )
        analyzer.on_accounts = self._ledger.add
        return analyzer

    def _is_over(self) -> bool:
        elapsed_s = time.monotonic() - self._started_s
        return self._interrupt.requested or elapsed_s >= self._duration

    def _poll(self, analyzer: NodeAnalyzer) -> None:
        try:
            found = self._stream.since(self._newest_ns)
        except StreamOutageError as error:
            self._problem = str(error)
            return
        self._problem = ""
        self._judge(analyzer, found)
        if found and self._ledger.is_due:
            self._ledger.explain(self._stream.state())

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
                node=self._stream.node,
                phase="learning the baseline" if status.learning else "watching",
                elapsed=now - self._started_s,
                duration=self._duration,
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
