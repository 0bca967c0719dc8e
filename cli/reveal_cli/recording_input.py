"""Recordings for ``analyze`` and ``explain``: judged live and as a whole, or read as tables."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from reveal_analyzer.offline.recording_table import RecordingTable
from reveal_analyzer.selection.applied import NO_SELECTION, AppliedSelection
from reveal_analyzer.selection.file import SelectionError, load
from reveal_cli.analysis import Judged, healthy_recording
from reveal_cli.configuration_hints import Hints
from reveal_cli.errors import USAGE, CliError
from reveal_cli.options import Length, analyzer_settings
from reveal_cli.output_files import missing
from reveal_cli.recordings import Slices
from reveal_cli.replay import Replay, judge_whole, replay
from reveal_cli.scores_csv import LiveScores
from reveal_cli.summary_text import Seen, closing
from reveal_contract.channels import ChannelTable
from reveal_contract.settings import AnalyzerSettings
from reveal_contract.time_units import NS_PER_SECOND
from reveal_contract.wire import Message

_TICK_NS = 100_000_000


def judge(path: Path, arguments: argparse.Namespace) -> Judged:
    """Judge second by second as ``scan`` would have, and once more as a whole."""
    settings = _settings(arguments)
    shown = selected(arguments)
    slices = Slices(path)
    live = LiveScores()
    seen = replay(
        slices,
        settings,
        baseline=_learned_from(arguments.baseline),
        each=live.note if arguments.scores else None,
        shown=shown,
    )
    if not seen.slices:
        raise CliError(f"{path} holds no slices: nothing to judge")
    hints = Hints()
    for facts, at_ns in slices.facts:
        hints.take(facts, at_ns or seen.first_ns)
    known = [] if arguments.mode == "report" else seen.finding_log.findings
    findings = judge_whole(path, known, settings, shown)
    extent = _extent(seen, slices, settings, learned=bool(arguments.baseline))
    return Judged(
        findings=findings,
        hints=hints.findings,
        lines=lambda columns: closing(findings, extent, columns, hints.findings),
        scores=live.lines,
        warnings=[f"{path} is cut off; it is judged up to there"] if slices.truncated else [],
    )


def _learned_from(
    path: Path | None,
) -> Callable[[str], Iterator[tuple[Message, ChannelTable]]] | None:
    return partial(_healthy, healthy_recording(path)) if path else None


def _healthy(path: Path, node: str) -> Iterator[tuple[Message, ChannelTable]]:
    """What a baseline holds of a node; of another one where that is all it holds."""
    names = {message.node for message, _ in Slices(path)}
    wanted = node if node in names else next(iter(names), "")
    if node not in names and len(names) != 1:
        raise CliError(f"--baseline {path} holds nothing of {node}")
    return ((message, table) for message, table in Slices(path) if message.node == wanted)


def tables(path: Path) -> dict[str, RecordingTable]:
    """The seconds of each node of a recording as a table; raises ``CliError``."""
    nodes: dict[str, RecordingTable] = {}
    for message, table in Slices(path):
        nodes.setdefault(message.node, RecordingTable()).push(message, table)
    if not nodes:
        raise CliError(f"{path} holds no slices: nothing to explain")
    return nodes


def selected(arguments: argparse.Namespace) -> AppliedSelection:
    """What of the metrics findings tell and scores see; raises ``CliError``."""
    if arguments.selection is None:
        if arguments.score_selected:
            raise CliError("--score-selected needs a --selection", USAGE)
        return NO_SELECTION
    if arguments.mode == "paper" and not arguments.score_selected:
        raise CliError(
            "--mode paper tells what its detectors see: --selection goes with --score-selected",
            USAGE,
        )
    try:
        return AppliedSelection(load(arguments.selection), scored=arguments.score_selected)
    except SelectionError as error:
        raise CliError(str(error)) from None


def refuse_table_flags(arguments: argparse.Namespace) -> None:
    """Raises ``CliError`` for flags that say how a table is read."""
    for flag in ("time", "period"):
        if getattr(arguments, flag) is not None:
            raise CliError(f"--{flag} is for tables: a recording tells its times itself", USAGE)


def _settings(arguments: argparse.Namespace) -> AnalyzerSettings:
    """The flags' settings; what only tables can do is refused."""
    refuse_table_flags(arguments)
    if arguments.scores and arguments.mode == "paper":
        raise CliError(
            "--scores of a recording is the live score: it goes with --mode online or report", USAGE
        )
    if arguments.baseline and arguments.mode == "report":
        raise CliError(
            "--mode report holds a recording against itself: --baseline goes with online or paper",
            USAGE,
        )
    if arguments.stride is not None and _nanoseconds(arguments.stride) != NS_PER_SECOND:
        raise CliError("--stride of a recording is 1s: it is judged slice by slice", USAGE)
    if arguments.window is None:
        return analyzer_settings(arguments)
    window, rest = divmod(_nanoseconds(arguments.window), NS_PER_SECOND)
    if rest:
        raise CliError("--window of a recording must be whole seconds, as its slices are", USAGE)
    return analyzer_settings(arguments, windowSeconds=window)


def _nanoseconds(wanted: Length) -> int:
    return wanted.ns or wanted.samples * _TICK_NS


def _extent(seen: Replay, slices: Slices, settings: AnalyzerSettings, *, learned: bool) -> Seen:
    collector: dict[str, Any] = next(
        (note["collector"] for note in slices.notes if "collector" in note), {}
    )
    watched = (seen.last_ns - seen.first_ns) / 1e9 + 1
    judged = any(not analyzer.status().learning for analyzer in seen.analyzers.values())
    return Seen(
        watched=watched,
        judged=max(0.0, watched - (0 if learned else settings.warmup_seconds)) if judged else 0.0,
        warmup=settings.warmup_seconds,
        slices=seen.slices,
        channels=seen.channels,
        lost=seen.lost,
        load={
            name: amount
            for analyzer in seen.analyzers.values()
            for name, amount in analyzer.status().warmup_load.items()
        },
        missing=missing(collector),
    )
