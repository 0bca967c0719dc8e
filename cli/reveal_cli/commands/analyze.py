"""``reveal analyze``: the findings of recordings and tables, the same for the same input."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reveal_cli.atomic_file import write_atomically
from reveal_cli.errors import USAGE, CliError
from reveal_cli.interrupt import Interrupt
from reveal_cli.options import add_judging, add_table, length
from reveal_cli.output_files import jsonl, print_findings
from reveal_cli.output_paths import check_outputs
from reveal_cli.stderr_lines import note
from reveal_cli.summary_text import exit_code
from reveal_cli.terminal import show
from reveal_contract.finding import Finding

if TYPE_CHECKING:
    from reveal_cli.analysis import Analysis


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its flags."""
    parser = commands.add_parser(
        "analyze",
        help="find what is wrong in a recording, or in a table from another tool",
        description="Judges recordings as `reveal scan` does: second by second, and once more as a"
        " whole. Judges tables of any period: CSV (plain, .gz or .zst) or Parquet, one row for each"
        " sample, one column for each metric. The same input and flags give the same findings; no"
        " labels are needed. docs/reference/analyze.md describes the formats.",
        epilog="Example: reveal analyze out/recording.rvl node-1.csv --fail-on high",
    )
    parser.add_argument(
        "files", metavar="FILE", nargs="+", type=Path,
        help="a recording (.rvl) or a table, recognized by its content",
    )  # fmt: skip
    parser.add_argument(
        "--findings", metavar="FILE.jsonl", type=Path, help="also write the findings to this file"
    )
    parser.add_argument(
        "--lost-time", metavar="FILE.jsonl", type=Path,
        help="write what each busy pod, unit or job of a recording lost to this file, one a line,"
        " as `lostTime` of summary.json has it",
    )  # fmt: skip
    parser.add_argument(
        "--scores", metavar="FILE.csv", type=Path,
        help="write one row for each sample of the only FILE, in its order: time, score,"
        " threshold, anomalous, and the score of each method; for a recording the live score, one"
        " row a second",
    )  # fmt: skip
    parser.add_argument(
        "--json", action="store_true",
        help="print findings as JSON, one a line, instead of the table",
    )  # fmt: skip
    parser.add_argument(
        "--baseline", metavar="FILE", type=Path,
        help="a recording or table of a healthy time, from which the baseline is learned",
    )  # fmt: skip
    add_table(parser)
    parser.add_argument(
        "--dry-run", action="store_true",
        help="only print what is understood of a table: rows, times, entities, columns, units, and"
        " the first values",
    )  # fmt: skip
    for name, default in (("window", "3s"), ("stride", "1s")):
        parser.add_argument(
            f"--{name}", metavar="LENGTH", type=length,
            help=f"{name} of the detectors that use windows, in samples (30) or time (3s)"
            f" (default for recordings: {default})",
        )  # fmt: skip
    add_judging(parser, offline=True)
    _add_selection(parser)
    parser.set_defaults(run=run)


def _add_selection(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("selected metrics (recordings only)")
    group.add_argument(
        "--selection", metavar="FILE.yaml", type=Path,
        help="a file from `reveal select`: evidence names the metrics it keeps instead of those"
        " they stand for",
    )  # fmt: skip
    group.add_argument(
        "--score-selected",
        action="store_true",
        help="score the kept metrics only (weaker: the other metrics are not watched)",
    )


def run(arguments: argparse.Namespace, interrupt: Interrupt) -> int:
    """Judge the files and print their findings."""
    if arguments.dry_run and (arguments.json or arguments.scores or arguments.findings):
        raise CliError("--dry-run judges nothing: it has no findings and no scores", USAGE)
    if arguments.scores and len(arguments.files) > 1:
        raise CliError("--scores takes one FILE: its rows are the samples of that file", USAGE)
    outputs = {
        "--findings": arguments.findings,
        "--lost-time": arguments.lost_time,
        "--scores": arguments.scores,
    }
    check_outputs(outputs, _inputs(arguments))
    found: list[Finding] = []
    lost: list[Mapping[str, Any]] = []
    with interrupt.raising():
        for path in arguments.files:
            analysis = _analyze(path, arguments)
            found += [*analysis.findings, *analysis.hints]
            lost += analysis.lost_time
            for warning in analysis.warnings:
                note(warning)
            if not arguments.json:
                title = [f"{path}:"] if len(arguments.files) > 1 else []
                show(*title, *analysis.blocks())
            if arguments.scores:
                write_atomically(arguments.scores, analysis.scores())
    if arguments.json:
        print_findings(found)
    if arguments.findings:
        write_atomically(arguments.findings, [jsonl(found)])
    if arguments.lost_time:
        write_atomically(arguments.lost_time, [f"{json.dumps(row)}\n" for row in lost])
    return exit_code(found, arguments.fail_on)


def _inputs(arguments: argparse.Namespace) -> list[Path]:
    optional = [path for path in (arguments.baseline, arguments.selection) if path is not None]
    return [*arguments.files, *optional, *arguments.hypotheses]


def _analyze(path: Path, arguments: argparse.Namespace) -> Analysis:
    """Judge a recording or a table, whichever the content of the file is."""
    from reveal_cli.analysis import FileKind, file_kind  # noqa: PLC0415 - needs an extra

    if file_kind(path) is FileKind.RECORDING:
        if arguments.dry_run:
            raise CliError(f"--dry-run is for tables: {path} is a recording", USAGE)
        from reveal_cli import recording_analysis  # noqa: PLC0415

        return recording_analysis.analyze(path, arguments)
    if arguments.selection or arguments.score_selected:
        raise CliError(f"--selection is for recordings: {path} is a table", USAGE)
    if arguments.lost_time:
        raise CliError(f"--lost-time is for recordings: {path} is a table", USAGE)
    from reveal_cli import table_analysis  # noqa: PLC0415 - heavy

    return table_analysis.analyze(path, arguments)
