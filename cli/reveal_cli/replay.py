"""From slices to the final list of findings: live ones kept, the whole judged, both merged.

The analyzer's modules are imported where they are used: they are heavy, and `--help`,
`catalog` and a wrong flag need none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from reveal_cli.finding_log import FindingLog, in_order
from reveal_cli.recordings import Slices
from reveal_contract.channels import ChannelTable
from reveal_contract.finding import Finding
from reveal_contract.settings import AnalyzerSettings
from reveal_contract.wire import Message

if TYPE_CHECKING:
    from reveal_analyzer.node import NodeAnalyzer
    from reveal_analyzer.selection.applied import AppliedSelection


def replay(
    slices: Slices,
    settings: AnalyzerSettings,
    *,
    baseline: Callable[[str], Iterable[tuple[Message, ChannelTable]]] | None = None,
    each: Callable[[NodeAnalyzer, Message], None] | None = None,
    shown: AppliedSelection | None = None,
) -> Replay:
    """Judge a recording second by second, exactly as it would have been judged live.

    What is normal for a node is learned from its ``baseline`` first; ``each`` is called after
    every second.  ``shown`` is a selection of metrics.
    """
    from reveal_analyzer.node import NodeAnalyzer  # noqa: PLC0415 - heavy
    from reveal_analyzer.selection.applied import NO_SELECTION  # noqa: PLC0415

    result = Replay()
    for message, table in slices:
        analyzer = result.analyzers.get(message.node)
        if analyzer is None:
            subjects = partial(slices.subjects, message.node)
            analyzer = NodeAnalyzer(
                message.node, settings, subjects=subjects, selection=shown or NO_SELECTION
            )
            result.analyzers[message.node] = analyzer
            for earlier in baseline(message.node) if baseline else ():
                analyzer.analyze(*earlier, silent=True)
        result.finding_log.take(analyzer.analyze(message, table))
        result.count(message, table)
        if each is not None:
            each(analyzer, message)
    for analyzer in result.analyzers.values():
        result.finding_log.take(analyzer.finish())
    return result


class Replay:
    """What a pass over a recording saw and found."""

    def __init__(self) -> None:
        self.finding_log = FindingLog()
        self.analyzers: dict[str, NodeAnalyzer] = {}
        self.slices = 0
        self.channels = 0
        self.lost = 0
        self.first_ns = 0
        self.last_ns = 0
        self._sequences: dict[tuple[str, bytes], int] = {}

    def count(self, message: Message, table: ChannelTable) -> None:
        stretch = (message.node, message.boot)
        before = self._sequences.get(stretch, message.sequence - 1)
        self.lost += max(0, message.sequence - before - 1)
        self._sequences[stretch] = message.sequence
        self.slices += 1
        self.channels = len(table.fast) + len(table.slow)
        self.first_ns = self.first_ns or message.start_ns
        self.last_ns = message.start_ns


def judge_whole(
    path: Path,
    live: list[Finding],
    settings: AnalyzerSettings,
    shown: AppliedSelection | None = None,
) -> list[Finding]:
    """The live findings joined with those that the recording as a whole shows.

    A recording may hold several nodes: each is judged by itself.
    """
    from reveal_analyzer.offline import recording  # noqa: PLC0415 - heavy
    from reveal_analyzer.selection.applied import NO_SELECTION  # noqa: PLC0415

    findings: list[Finding] = []
    for node in sorted({message.node for message, _ in Slices(path)}):
        slices = Slices(path)
        of_node = (pair for pair in slices if pair[0].node == node)
        known = [finding for finding in live if finding.node_name == node]
        subjects = partial(slices.subjects, node)
        whole = recording.judge(of_node, settings, subjects, shown or NO_SELECTION)
        findings += recording.merge(known, whole)
    return in_order(findings)
