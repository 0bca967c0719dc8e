"""Judges recordings: second by second as a live scan would, and as a whole.

The analyzer's modules are imported where they are used: they are heavy, and ``--help``, ``catalog``
and a wrong flag need none of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from reveal_analyzer.stream.sequence import NodeSequence
from reveal_cli.finding_log import FindingLog, by_onset
from reveal_cli.recording_index import RecordingIndex
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
    on_second: Callable[[NodeAnalyzer, Message], None] | None = None,
    selection: AppliedSelection | None = None,
) -> Replay:
    """Judge a recording second by second, exactly as a live scan would have judged it.

    A node learns its ``baseline`` first; ``on_second`` is called after each second.
    """
    from reveal_analyzer.gangs.local import LocalRanks  # noqa: PLC0415 - heavy
    from reveal_analyzer.node import Announced, NodeAnalyzer  # noqa: PLC0415
    from reveal_analyzer.selection.applied import NO_SELECTION  # noqa: PLC0415

    result, ranks = Replay(), LocalRanks()
    for message, table in slices:
        analyzer = result.analyzers.get(message.node)
        if analyzer is None:
            announced = Announced(
                partial(slices.subjects, message.node), partial(slices.shares, message.node)
            )
            analyzer = NodeAnalyzer(
                message.node, settings, announced=announced, selection=selection or NO_SELECTION
            )
            result.analyzers[message.node] = analyzer
            for earlier in baseline(message.node) if baseline else ():
                analyzer.analyze(*earlier, silent=True)
        updates = analyzer.analyze(message, table)
        of_jobs = ranks.add(analyzer.ranks.pop_ended(), message.start_ns)
        result.finding_log.update([*updates, *of_jobs])
        result.count(message, table)
        if on_second is not None:
            on_second(analyzer, message)
    for analyzer in result.analyzers.values():
        result.finding_log.update(analyzer.finish())
    result.finding_log.update(ranks.finish())
    return result


class Replay:
    """The findings and counts of one pass over a recording."""

    def __init__(self) -> None:
        self.finding_log = FindingLog()
        self.analyzers: dict[str, NodeAnalyzer] = {}
        self.slices = 0
        self.channels = 0
        self.lost = 0
        self.first_ns = 0
        self.last_ns = 0
        self._sequences: defaultdict[str, NodeSequence] = defaultdict(NodeSequence)

    def count(self, message: Message, table: ChannelTable) -> None:
        """Count a slice, and the slices lost since the one before it of the same boot."""
        self.lost += self._sequences[message.node].accept(message).gap
        self.slices += 1
        self.channels = len(table.fast) + len(table.slow)
        self.first_ns = self.first_ns or message.start_ns
        self.last_ns = message.start_ns


def judge_whole(
    path: Path,
    live: list[Finding],
    settings: AnalyzerSettings,
    selection: AppliedSelection | None = None,
) -> list[Finding]:
    """Return the live findings merged with those of the recording judged as a whole.

    Each node of the recording is judged by itself, from its own part of the file.
    """
    from reveal_analyzer.offline import judgement  # noqa: PLC0415 - heavy
    from reveal_analyzer.selection.applied import NO_SELECTION  # noqa: PLC0415

    known: defaultdict[str, list[Finding]] = defaultdict(list)
    for finding in live:
        known[finding.node_name].append(finding)
    index, findings = RecordingIndex(path), list[Finding]()
    for node in index.nodes:
        subjects = partial(index.subjects, node)
        whole = judgement.judge(index.slices(node), settings, subjects, selection or NO_SELECTION)
        findings += judgement.merge(known[node], whole)
    return by_onset(findings)
