"""Findings of a recording for ``analyze``; a recording read as a table for ``explain``."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from reveal_analyzer.node import NodeAnalyzer
from reveal_analyzer.offline.recording_table import RecordingTable
from reveal_analyzer.selection.applied import NO_SELECTION, AppliedSelection
from reveal_analyzer.selection.file import SelectionError, load
from reveal_cli.analysis import Analysis, baseline_recording
from reveal_cli.collector_state import missing_sources, no_ledger
from reveal_cli.configuration_hints import ConfigurationHints
from reveal_cli.errors import USAGE, CliError
from reveal_cli.lost_time_text import ByNode, node_rows
from reveal_cli.options import OFFLINE, TABLE_FLAGS, Length, analyzer_settings
from reveal_cli.recording_index import RecordingIndex
from reveal_cli.recordings import Slices
from reveal_cli.replay import Replay, judge_whole, replay
from reveal_cli.scores_csv import LiveScores
from reveal_cli.summary_text import Coverage, summary_blocks
from reveal_contract.channels import ChannelTable
from reveal_contract.finding import Finding
from reveal_contract.settings import AnalyzerSettings
from reveal_contract.time_units import NS_PER_SECOND
from reveal_contract.wire import Message

_TICK_NS = 100_000_000


@dataclass(frozen=True)
class JudgedRecording:
    """The findings of a recording, its configuration hints, and what they are based on."""

    findings: Sequence[Finding]
    hints: Sequence[Finding]
    coverage: Coverage
    truncated: bool


@dataclass(frozen=True)
class JudgeOptions:
    """How a recording is judged beside its settings; ``whole_only`` ignores the live judgement."""

    whole_only: bool = False
    baseline: Path | None = None
    on_second: Callable[[NodeAnalyzer, Message], None] | None = None
    selection: AppliedSelection = NO_SELECTION


def analyze(path: Path, arguments: argparse.Namespace) -> Analysis:
    """Judge a recording second by second as ``scan`` would have, and as a whole."""
    settings = _settings(arguments)
    live = LiveScores()
    options = JudgeOptions(
        whole_only=arguments.mode == OFFLINE,
        baseline=arguments.baseline,
        on_second=live.add if arguments.scores else None,
        selection=_selection(arguments),
    )
    judged = judge(path, settings, options)
    return Analysis(
        findings=judged.findings,
        hints=judged.hints,
        blocks=lambda: summary_blocks(judged.findings, judged.coverage, judged.hints),
        scores=live.lines,
        lost_time=node_rows(judged.coverage.lost_time),
        warnings=[f"{path} is incomplete; it is judged up to its end"] if judged.truncated else [],
    )


def judge(
    path: Path, settings: AnalyzerSettings, options: JudgeOptions | None = None
) -> JudgedRecording:
    """Judge a recording second by second, and as a whole; raises ``CliError``."""
    chosen = options or JudgeOptions()
    slices = Slices(path)
    replayed = replay(
        slices,
        settings,
        baseline=_baseline_reader(chosen.baseline),
        on_second=chosen.on_second,
        selection=chosen.selection,
    )
    if not replayed.slices:
        raise CliError(f"{path} holds no slices: nothing to judge")
    hints = ConfigurationHints()
    for facts, time_ns in slices.facts:
        hints.update(facts, time_ns or replayed.first_ns)
    known = [] if chosen.whole_only else replayed.finding_log.findings
    findings = judge_whole(path, known, settings, chosen.selection)
    coverage = _coverage(replayed, slices, settings, has_baseline=bool(chosen.baseline))
    return JudgedRecording(findings, hints.findings, coverage, slices.truncated)


def _baseline_reader(
    path: Path | None,
) -> Callable[[str], Iterator[tuple[Message, ChannelTable]]] | None:
    return partial(_node_slices, RecordingIndex(baseline_recording(path))) if path else None


def _node_slices(index: RecordingIndex, node: str) -> Iterator[tuple[Message, ChannelTable]]:
    """Return the slices of a node, or of the only node where a file has one of another name."""
    if node in index.nodes:
        return iter(index.slices(node))
    if len(index.nodes) != 1:
        raise CliError(f"--baseline {index.path} has no data of {node}")
    return iter(index.slices(index.nodes[0]))


def node_tables(path: Path) -> dict[str, RecordingTable]:
    """Return the seconds of each node of a recording as a table; raises ``CliError``."""
    nodes: dict[str, RecordingTable] = {}
    for message, table in Slices(path):
        nodes.setdefault(message.node, RecordingTable()).push(message, table)
    if not nodes:
        raise CliError(f"{path} holds no slices: nothing to explain")
    return nodes


def _selection(arguments: argparse.Namespace) -> AppliedSelection:
    """Return the metrics that findings name and scores use; raises ``CliError``."""
    if arguments.selection is None:
        if arguments.score_selected:
            raise CliError("--score-selected needs a --selection", USAGE)
        return NO_SELECTION
    if arguments.mode == "paper" and not arguments.score_selected:
        raise CliError(
            "--mode paper names the metrics of its detectors: --selection needs --score-selected",
            USAGE,
        )
    try:
        return AppliedSelection(load(arguments.selection), scored=arguments.score_selected)
    except SelectionError as error:
        raise CliError(str(error)) from None


def refuse_table_flags(arguments: argparse.Namespace) -> None:
    """Raise ``CliError`` for flags that say how a table is read."""
    for flag in TABLE_FLAGS:
        if getattr(arguments, flag.replace("-", "_")) not in (None, "", False, []):
            raise CliError(f"--{flag} is for tables: a recording has times of its own", USAGE)


def _settings(arguments: argparse.Namespace) -> AnalyzerSettings:
    """Return the settings of the flags; raises ``CliError`` for flags of tables only."""
    refuse_table_flags(arguments)
    if arguments.scores and arguments.mode == "paper":
        raise CliError(
            "--scores of a recording needs --mode online or offline: it writes the live score",
            USAGE,
        )
    if arguments.baseline and arguments.mode == OFFLINE:
        raise CliError(
            "--mode offline compares a recording with itself: --baseline needs --mode online or"
            " paper",
            USAGE,
        )
    lengths = {
        f"{flag}Seconds": _whole_seconds(flag, length)
        for flag in ("window", "stride")
        if (length := getattr(arguments, flag)) is not None
    }
    return analyzer_settings(arguments, **lengths)


def _whole_seconds(flag: str, length: Length) -> int:
    seconds, rest = divmod(_nanoseconds(length), NS_PER_SECOND)
    if rest:
        raise CliError(f"--{flag} of a recording must be whole seconds: slices are 1s long", USAGE)
    return seconds


def _nanoseconds(length: Length) -> int:
    return length.ns or length.samples * _TICK_NS


def _lost_time(replayed: Replay) -> ByNode:
    return {node: analyzer.lost_time() for node, analyzer in replayed.analyzers.items()}


def _coverage(
    replayed: Replay, slices: Slices, settings: AnalyzerSettings, *, has_baseline: bool
) -> Coverage:
    collector: dict[str, Any] = next(
        (note["collector"] for note in slices.notes if "collector" in note), {}
    )
    analyzers = replayed.analyzers.values()
    watched = (replayed.last_ns - replayed.first_ns) / 1e9 + 1
    learning = 0 if has_baseline else settings.warmup_seconds
    judged = any(not analyzer.status().learning for analyzer in analyzers)
    return Coverage(
        watched=watched,
        judged=max(0.0, watched - learning) if judged else 0.0,
        warmup=settings.warmup_seconds,
        slices=replayed.slices,
        channels=replayed.channels,
        lost=replayed.lost,
        load={
            name: amount
            for analyzer in analyzers
            for name, amount in analyzer.status().warmup_load.items()
        },
        lost_time=_lost_time(replayed),
        no_ledger=no_ledger(collector),
        missing_sources=len(missing_sources(collector)),
        recorded=True,
    )
