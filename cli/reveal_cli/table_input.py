"""Tables of anyone's as ``analyze`` and ``explain`` use them: read, scored, told."""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from reveal_analyzer.tables.findings import Case
from reveal_analyzer.tables.findings import findings as findings_of
from reveal_analyzer.tables.ingest.open import FileKind, TableFileError
from reveal_analyzer.tables.ingest.reader import Dataset, NodeTable, Options, read
from reveal_analyzer.tables.scoring.api import (
    SampleSettings,
    Table,
    TooLargeError,
    score,
    usual_cut,
)
from reveal_analyzer.tables.scoring.online import warm_up_rows
from reveal_cli import scores_csv
from reveal_cli.analysis import Judged, kind
from reveal_cli.errors import USAGE, CliError
from reveal_cli.findings_table import findings_table
from reveal_cli.options import clock
from reveal_contract.finding import Finding
from reveal_contract.sensitivity import SENSITIVITIES

Findings = dict[str, list[Finding]]


def load(
    path: Path, arguments: argparse.Namespace, counters: frozenset[str] | None = None
) -> Dataset:
    """Read a table with the flags that say how; raises ``CliError``.

    ``counters`` are the metrics to be taken as rates (``None``: found).
    """
    options = Options(arguments.time or "", arguments.period or 0, counters=counters)
    try:
        return read(path, options)
    except TableFileError as error:
        raise CliError(str(error)) from None


@dataclass(frozen=True)
class Against:
    """A node's table and the healthy one it is held against."""

    node: str
    table: Table
    baseline: Table | None


def against(data: Dataset, path: Path | None, arguments: argparse.Namespace) -> list[Against]:
    """Each node with its baseline out of a file; with ``path`` ``None`` there is none."""
    if path is None:
        return [Against(part.node, part.table, None) for part in data.nodes]
    if kind(path) is FileKind.RECORDING:
        raise CliError(f"--baseline {path} is a recording: a table needs a table", USAGE)
    healthy = load(path, arguments, data.counters)
    return [_held_against(part, data, healthy) for part in data.nodes]


def _held_against(part: NodeTable, data: Dataset, healthy: Dataset) -> Against:
    lone = len(data.nodes) == len(healthy.nodes) == 1
    fitting = [one.table for one in healthy.nodes if lone or one.node == part.node]
    if not fitting:
        raise CliError(f"--baseline {healthy.path} holds nothing of {part.node}")
    if not set(fitting[0].names) & set(part.table.names):
        raise CliError(f"--baseline {healthy.path} and {data.path} have no column in common")
    return Against(part.node, part.table, fitting[0])


def judge(path: Path, arguments: argparse.Namespace) -> Judged:
    """Score a table and tell what stands out of it."""
    data = load(path, arguments)
    cases = [_case(one, path, arguments) for one in against(data, arguments.baseline, arguments)]
    findings = {case.node: findings_of(case) for case in cases}
    return Judged(
        findings=[finding for some in findings.values() for finding in some],
        lines=partial(_lines, data, cases, findings),
        scores=partial(scores_csv.of_table, data, [case.scores for case in cases]),
        warnings=[f"{path}: {note}" for note in data.notes],
    )


def _case(one: Against, path: Path, arguments: argparse.Namespace) -> Case:
    mode = arguments.mode or "report"
    window, stride = (
        wanted.at(one.table.period_ns) if wanted else None
        for wanted in (arguments.window, arguments.stride)
    )
    usual = usual_cut(mode, beside_baseline=bool(one.baseline and len(one.baseline)))
    factor = SENSITIVITIES[arguments.sensitivity].table_factor
    cut = None if mode == "paper" else factor * usual  # the paper's is a number of votes
    try:
        settings = SampleSettings(window, stride, cut)
        scores = score(one.table, mode, one.baseline, settings)
    except TooLargeError as error:
        raise CliError(f"{path}: {error}") from None
    except ValueError as error:
        raise CliError(str(error), USAGE) from None
    return Case(one.node, one.table, mode, scores, one.baseline)


def _lines(data: Dataset, cases: Sequence[Case], findings: Findings, columns: int) -> list[str]:
    """The findings of each node as a table, and what was looked at."""
    lines = []
    for node, some in findings.items():
        if some:
            title = [f"{node}:"] if len(findings) > 1 else []
            lines += [*title, *findings_table(some, columns), ""]
    verdict = _verdict(data, cases, sum(map(len, findings.values())))
    return lines + textwrap.wrap(verdict, columns)


def _verdict(data: Dataset, cases: Sequence[Case], count: int) -> str:
    table = data.nodes[0].table
    seconds = (int(table.times_ns[-1]) - int(table.times_ns[0]) + table.period_ns) / 1e9
    metrics = sum(len(part.table.names) for part in data.nodes)
    nodes = f" of {len(data.nodes)} nodes" if len(data.nodes) > 1 else ""
    looked = f"{len(data.rows)} samples of {metrics} metrics{nodes}"
    if len(table) > 1:
        looked += f", one every {table.period_ns / 1e9:g} s"
    if (learned := _learned(cases)) == len(table):
        return f"Nothing was judged: {looked}; {_why_nothing(cases[0])}."
    if learned:
        looked += f", the first {_lasting(learned, table)} learned from: their score is 0"
    if not count:
        return f"Nothing stands out in {clock(seconds)}: {looked}."
    return f"{count} finding{'s' if count > 1 else ''} in {clock(seconds)}: {looked}."


def _why_nothing(case: Case) -> str:
    known = len(case.table) + (len(case.baseline) if case.baseline else 0)
    needed = warm_up_rows(case.table.period_ns)
    if case.mode == "online" and known <= needed:
        return (
            f"--mode online learns from the first {_lasting(needed, case.table)}"
            " before it judges one; --mode report needs no such time"
        )
    return "these are too few, or nothing in them ever changes"


def _lasting(samples: int, table: Table) -> str:
    """``1440 samples (24h00m)``."""
    return f"{samples} samples ({clock(samples * table.period_ns / 1e9)})"


def _learned(cases: Sequence[Case]) -> int:
    """Rows at the beginning without a score: they were learned from, or cannot be judged."""
    return min(
        int(np.argmax(case.scores.score > 0)) if case.scores.score.any() else len(case.table)
        for case in cases
    )
