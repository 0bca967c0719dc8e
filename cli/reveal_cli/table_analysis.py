"""Findings of a table for ``analyze``; a table and its baseline for ``explain``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC
from functools import partial
from pathlib import Path

import numpy as np
from rich.console import RenderableType

from reveal_analyzer.tables.findings import ScoredTable
from reveal_analyzer.tables.findings import findings as findings_of
from reveal_analyzer.tables.ingest.formats import format_names
from reveal_analyzer.tables.ingest.open import FileKind, TableFileError
from reveal_analyzer.tables.ingest.reader import Dataset, NodeTable, ReadOptions, read
from reveal_analyzer.tables.ingest.time_texts import DayOrder
from reveal_analyzer.tables.scoring.api import (
    SampleSettings,
    Table,
    TooLargeError,
    default_threshold,
    score,
)
from reveal_analyzer.tables.scoring.online import warm_up_rows
from reveal_cli import scores_csv, table_understanding
from reveal_cli.analysis import Analysis, file_kind
from reveal_cli.errors import USAGE, CliError
from reveal_cli.findings_table import FindingsTable
from reveal_cli.options import OFFLINE, format_duration
from reveal_cli.stderr_lines import note
from reveal_cli.table_progress import TableProgress
from reveal_contract.finding import Finding
from reveal_contract.sensitivity import SENSITIVITIES

Findings = dict[str, list[Finding]]


def load(
    path: Path, arguments: argparse.Namespace, counters: frozenset[str] | None = None
) -> Dataset:
    """Read a table as the flags say; raises ``CliError``.

    ``counters`` are the metrics to convert to rates (``None``: detect them).
    """
    options = ReadOptions(
        arguments.time or "",
        arguments.period or 0,
        counters=counters,
        entities=tuple(arguments.entity),
        values=tuple(arguments.value),
        order=_day_order(arguments),
        excel=arguments.excel_dates,
        format=_known_format(arguments.format),
    )
    try:
        return read(path, options)
    except TableFileError as error:
        raise CliError(str(error)) from None


def _day_order(arguments: argparse.Namespace) -> DayOrder:
    if arguments.day_first:
        return DayOrder.DAY_FIRST
    return DayOrder.MONTH_FIRST if arguments.month_first else DayOrder.NONE


def _known_format(name: str) -> str:
    if name and name not in format_names():
        raise CliError(f"--format {name} is not known: {', '.join(format_names())}", USAGE)
    return name


@dataclass(frozen=True)
class NodeInput:
    """The table of one node, and the healthy one that it is compared with."""

    node: str
    table: Table
    baseline: Table | None


def with_baselines(
    data: Dataset, path: Path | None, arguments: argparse.Namespace
) -> list[NodeInput]:
    """Return each node with its baseline from a file, or none where ``path`` is ``None``."""
    if path is None:
        return [NodeInput(part.node, part.table, None) for part in data.nodes]
    if file_kind(path) is FileKind.RECORDING:
        raise CliError(
            f"--baseline {path} is a recording: the baseline of a table must be a table", USAGE
        )
    healthy = load(path, arguments, data.counters)
    return [_with_baseline(part, data, healthy) for part in data.nodes]


def _with_baseline(part: NodeTable, data: Dataset, healthy: Dataset) -> NodeInput:
    # with one node each, a table and its baseline belong together under any name
    single = len(data.nodes) == len(healthy.nodes) == 1
    matching = [node.table for node in healthy.nodes if single or node.node == part.node]
    if not matching:
        raise CliError(f"--baseline {healthy.path} has no data of {part.node}")
    if not set(matching[0].names) & set(part.table.names):
        raise CliError(f"--baseline {healthy.path} and {data.path} have no column in common")
    return NodeInput(part.node, part.table, matching[0])


def analyze(path: Path, arguments: argparse.Namespace) -> Analysis:
    """Score a table and return its findings."""
    with TableProgress(path.name) as progress:
        data = load(path, arguments)
        if arguments.dry_run:
            return Analysis(
                findings=[],
                blocks=lambda: list(table_understanding.blocks(data)),
                scores=partial(iter, ()),
            )
        note(f"{path}: {table_understanding.in_a_line(data)}")
        nodes = with_baselines(data, arguments.baseline, arguments)
        cases = [_case(node, path, arguments, progress) for node in nodes]
        progress.step("ranking")
        findings = {case.node: findings_of(case, progress.update) for case in cases}
    return Analysis(
        findings=[finding for some in findings.values() for finding in some],
        blocks=partial(_blocks, data, cases, findings),
        scores=partial(scores_csv.table_lines, data, [case.scores for case in cases]),
        warnings=[f"{path}: {note}" for note in data.notes],
    )


def _case(
    node: NodeInput, path: Path, arguments: argparse.Namespace, progress: TableProgress
) -> ScoredTable:
    mode = arguments.mode or OFFLINE  # the default for tables
    window, stride = (
        length.in_samples(node.table.period_ns) if length else None
        for length in (arguments.window, arguments.stride)
    )
    default = default_threshold(mode, with_baseline=bool(node.baseline and len(node.baseline)))
    factor = SENSITIVITIES[arguments.sensitivity].table_factor
    threshold = None if mode == "paper" else factor * default  # the paper's counts detectors
    try:
        settings = SampleSettings(window, stride, threshold)
        progress.step(f"scoring {node.node}")
        scores = score(node.table, mode, node.baseline, settings, progress.update)
    except TooLargeError as error:
        raise CliError(f"{path}: {error}") from None
    except ValueError as error:
        raise CliError(str(error), USAGE) from None
    return ScoredTable(node.node, node.table, mode, scores, node.baseline)


def _blocks(
    data: Dataset, cases: Sequence[ScoredTable], findings: Findings
) -> list[RenderableType]:
    """Return a table of the findings of each node, and what was judged."""
    blocks: list[RenderableType] = []
    for node, some in findings.items():
        if some:
            title = [f"{node}:"] if len(findings) > 1 else []
            # as the file has them, and ``explain --span`` takes them
            zone, period_s = data.clock.zone or UTC, data.nodes[0].table.period_ns / 1e9
            rows = FindingsTable(some, zone, not data.clock.has_time_of_day, period_s)
            blocks += [*title, rows, ""]
    return [*blocks, _verdict(data, cases, sum(map(len, findings.values())))]


def _verdict(data: Dataset, cases: Sequence[ScoredTable], count: int) -> str:
    table = data.nodes[0].table
    seconds = (int(table.times_ns[-1]) - int(table.times_ns[0]) + table.period_ns) / 1e9
    metrics = sum(len(part.table.names) for part in data.nodes)
    nodes = f" of {len(data.nodes)} nodes" if len(data.nodes) > 1 else ""
    extent = f"{len(table)} samples of {metrics} metrics{nodes}"
    if len(table) > 1:
        extent += f", one every {table.period_ns / 1e9:g} s"
    if (learned := _learned(cases)) == len(table):
        return f"Nothing was judged: {extent}; {_why_nothing(cases[0])}."
    if learned:
        extent += f"; the first {_samples(learned, table)} are the baseline and have score 0"
    if not count:
        return f"Nothing is abnormal in {format_duration(seconds)}: {extent}."
    zone = f" Times are in {data.clock.zone or UTC}." if data.clock.absolute else ""
    return (
        f"{count} finding{'s' if count > 1 else ''} in {format_duration(seconds)}: {extent}.{zone}"
    )


def _why_nothing(case: ScoredTable) -> str:
    known = len(case.table) + (len(case.baseline) if case.baseline else 0)
    needed = warm_up_rows(case.table.period_ns)
    if case.mode == "online" and known <= needed:
        return (
            f"--mode online learns from the first {_samples(needed, case.table)}"
            " before it judges; --mode offline needs no such time"
        )
    return "there are too few samples, or no value ever changes"


def _samples(count: int, table: Table) -> str:
    """Return ``1440 samples (24h00m)``."""
    return f"{count} samples ({format_duration(count * table.period_ns / 1e9)})"


def _learned(cases: Sequence[ScoredTable]) -> int:
    """Return the number of first rows without a score: the baseline, or too few to judge."""
    return min(
        int(np.argmax(case.scores.score > 0)) if case.scores.score.any() else len(case.table)
        for case in cases
    )
