"""``reveal explain``: what was abnormal in a span of time, with or without a finding."""

from __future__ import annotations

import argparse
from pathlib import Path

from reveal_cli.errors import DONE
from reveal_cli.interrupt import Interrupt
from reveal_cli.options import add_table
from reveal_cli.stderr_lines import note
from reveal_cli.time_spans import span


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its flags."""
    parser = commands.add_parser(
        "explain",
        help="rank every metric of a recording or table for a span of time",
        description="Answers: it was slow between 10:02 and 10:05, what was abnormal then? Ranks"
        " every metric by how far it left its baseline in each span. The baseline is the whole"
        " input, or a healthy file.",
        epilog="Example: reveal explain node-1.csv --span 10:02/10:05",
    )
    parser.add_argument(
        "input", metavar="INPUT", type=Path, help="a recording (.rvl) or a table (CSV, Parquet)"
    )
    parser.add_argument(
        "--span", metavar="FROM/TO", type=span, action="append", required=True,
        help="a span: 10:02/10:05 (in the zone of the texts in a table, else of this machine),"
        " 120/180 (seconds since the start), 2m/3m, or two times in RFC 3339; can be given several"
        " times",
    )  # fmt: skip
    parser.add_argument(
        "--baseline", metavar="FILE", type=Path,
        help="a recording or table of a healthy time to compare with",
    )  # fmt: skip
    parser.add_argument(
        "--json", action="store_true", help="print one JSON line for each span, with all metrics"
    )
    add_table(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, interrupt: Interrupt) -> int:
    """Rank the metrics and print the rankings."""
    with interrupt.raising():
        from reveal_cli.ranking import explain  # noqa: PLC0415 - heavy, and needs an extra
        from reveal_cli.ranking_table import print_rankings  # noqa: PLC0415

        rankings, warnings = explain(arguments)
        for warning in warnings:
            note(warning)
        print_rankings(rankings, as_json=arguments.json)
    return DONE
