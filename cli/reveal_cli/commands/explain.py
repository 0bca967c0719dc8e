"""``reveal explain``: what was abnormal in a span of time, with or without a finding."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import RenderableType
from rich.table import Column

from reveal_cli.errors import DONE
from reveal_cli.interrupt import Interrupt
from reveal_cli.options import add_table
from reveal_cli.terminal import show, table
from reveal_cli.time_spans import span

if TYPE_CHECKING:
    from reveal_cli.ranking import SpanRanking

_ROWS = 15


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

        rankings, warnings = explain(arguments)
        for warning in warnings:
            print(f"reveal: {warning}", file=sys.stderr)
        if arguments.json:
            for ranking in rankings:
                print(json.dumps(ranking.to_dict()))
        else:
            show(*_blocks(rankings))
    return DONE


def _blocks(rankings: Sequence[SpanRanking]) -> Iterator[RenderableType]:
    """Yield a table of the most abnormal metrics for each span."""
    for number, span_ranking in enumerate(rankings):
        if number:
            yield ""
        yield f"{span_ranking.begin} to {span_ranking.end}"
        # only names wrap on a narrow terminal
        rows = table(
            "METRIC",
            *(Column(title, no_wrap=True) for title in ("FEATURE", "SUBSYSTEM")),
            *(Column(title, no_wrap=True) for title in ("SCORE", "VALUE", "BASELINE")),
        )
        for metric in span_ranking.ranking[:_ROWS]:
            rows.add_row(
                f"{metric.node}: {metric.metric}" if metric.node else metric.metric,
                metric.feature,
                metric.subsystem.value if metric.subsystem else "-",
                f"{metric.percent} %",
                metric.value_text,
                metric.baseline_text,
            )
        yield rows
        if len(span_ranking.ranking) > _ROWS:
            yield f"and {len(span_ranking.ranking) - _ROWS} more (--json prints all)"
