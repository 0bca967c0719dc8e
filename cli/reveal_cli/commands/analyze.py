"""``reveal analyze``: the findings of recordings and tables, the same each time."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from reveal_cli.errors import USAGE, CliError
from reveal_cli.interrupt import Interrupt
from reveal_cli.options import add_judging, add_table, length
from reveal_cli.output_files import jsonl, print_findings, write_parts, write_whole
from reveal_cli.summary_text import exit_code, width
from reveal_contract.finding import Finding

if TYPE_CHECKING:
    from reveal_cli.analysis import Judged


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "analyze",
        help="judge recordings made by scan or record, or tables of anyone's",
        description="Judges recordings as `reveal scan` would have: second by second and once"
        " more as a whole; and wide tables (CSV, plain, .gz or .zst, or Parquet: a row a sample, a"
        " column a metric) of any period. The same input and flags give the same findings; no"
        " labels are read. docs/reference/analyze.md tells the formats.",
    )
    parser.add_argument(
        "files", metavar="FILE", nargs="+", type=Path,
        help="a recording (.rvl) or a table, told apart by content",
    )  # fmt: skip
    parser.add_argument(
        "--findings", metavar="FILE.jsonl", type=Path, help="write the findings to this file, too"
    )
    parser.add_argument(
        "--scores", metavar="FILE.csv", type=Path,
        help="write a row for each sample of the one FILE, in its order: time, score, threshold,"
        " anomalous, and what each method said; of a recording the live score, a row a second",
    )  # fmt: skip
    parser.add_argument(
        "--json", action="store_true",
        help="print findings as JSON, one a line, instead of the table",
    )  # fmt: skip
    parser.add_argument(
        "--baseline", metavar="FILE", type=Path,
        help="a healthy recording or table to learn from what is normal",
    )  # fmt: skip
    add_table(parser)
    for name, usual in (("window", "3s in recordings"), ("stride", "1s in recordings")):
        parser.add_argument(
            f"--{name}", metavar="LENGTH", type=length,
            help=f"{name} of the detectors that see windows, in samples (30) or time (3s)"
            f" (default {usual})",
        )  # fmt: skip
    add_judging(parser, whole=True)
    _add_selection(parser)
    parser.set_defaults(run=run)


def _add_selection(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("selected metrics (recordings only)")
    group.add_argument(
        "--selection", metavar="FILE.yaml", type=Path,
        help="what `reveal select` wrote: evidence names those it kept, in place of the others",
    )  # fmt: skip
    group.add_argument(
        "--score-selected",
        action="store_true",
        help="let scores see only what it kept, too (weaker: other metrics are not watched)",
    )


def run(arguments: argparse.Namespace, interrupt: Interrupt) -> int:
    if arguments.scores and len(arguments.files) > 1:
        raise CliError("--scores takes one FILE: its rows are that one's samples", USAGE)
    found: list[Finding] = []
    with interrupt.raising():
        for path in arguments.files:
            judged = _judge(path, arguments)
            found += [*judged.findings, *judged.hints]
            for warning in judged.warnings:
                print(f"reveal: {warning}", file=sys.stderr)
            if not arguments.json:
                title = [f"{path}:"] if len(arguments.files) > 1 else []
                print("\n".join([*title, *judged.lines(width())]))
            if arguments.scores:
                write_parts(arguments.scores, judged.scores())
    if arguments.json:
        print_findings(found)
    if arguments.findings:
        write_whole(arguments.findings, jsonl(found))
    return exit_code(found, arguments.fail_on)


def _judge(path: Path, arguments: argparse.Namespace) -> Judged:
    """By content: a recording, else a table."""
    from reveal_cli.analysis import FileKind, kind  # noqa: PLC0415 - needs an extra

    if kind(path) is FileKind.RECORDING:
        from reveal_cli import recording_input  # noqa: PLC0415

        return recording_input.judge(path, arguments)
    if arguments.selection or arguments.score_selected:
        raise CliError(f"--selection is made of recordings: {path} is a table", USAGE)
    from reveal_cli import table_input  # noqa: PLC0415 - heavy

    return table_input.judge(path, arguments)
