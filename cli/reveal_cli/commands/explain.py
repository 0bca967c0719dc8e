"""``reveal explain``: what was odd in a span of time, whether or not a finding was raised."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from reveal_cli.errors import DONE
from reveal_cli.interrupt import Interrupt
from reveal_cli.options import add_table
from reveal_cli.summary_text import width
from reveal_cli.time_spans import span

if TYPE_CHECKING:
    from reveal_cli.ranking import Explained

_SHOWN = 15


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "explain",
        help="rank every metric of a recording or table for a span of time",
        description='"It was slow between 10:02 and 10:05: what was odd then?" Ranks every metric'
        " for each span by how far it left its usual range, against all of the input or against"
        " a healthy baseline.",
    )
    parser.add_argument(
        "input", metavar="INPUT", type=Path, help="a recording (.rvl) or a table (CSV, Parquet)"
    )
    parser.add_argument(
        "--span", metavar="FROM/TO", type=span, action="append", required=True,
        help="from when to when: 10:02/10:05, 120/180 (seconds since the start), 2m/3m or RFC 3339;"
        " may be given again",
    )  # fmt: skip
    parser.add_argument(
        "--baseline", metavar="FILE", type=Path,
        help="a healthy recording or table to compare with",
    )  # fmt: skip
    parser.add_argument(
        "--json", action="store_true", help="print one JSON line a span, its ranking complete"
    )
    add_table(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, interrupt: Interrupt) -> int:
    with interrupt.raising():
        from reveal_cli.ranking import explain  # noqa: PLC0415 - heavy, and needs an extra

        explained, warnings = explain(arguments)
        for warning in warnings:
            print(f"reveal: {warning}", file=sys.stderr)
        if arguments.json:
            for one in explained:
                print(json.dumps(one.to_dict()))
        else:
            print("\n".join(_text(explained, width())))
    return DONE


def _text(explained: Sequence[Explained], columns: int) -> list[str]:
    """A table for each span of what left its usual range most."""
    lines: list[str] = []
    for one in explained:
        lines += [*([""] if lines else []), f"{one.begin} to {one.end}"]
        shown = one.ranking[:_SHOWN]
        rows = [
            (
                f"{entry.node}: {entry.metric}" if entry.node else entry.metric,
                entry.feature,
                entry.subsystem.value if entry.subsystem else "-",
                f"{entry.percent} %",
                *entry.told,
            )
            for entry in shown
        ]
        lines += _aligned(
            ("METRIC", "FEATURE", "SUBSYSTEM", "SCORE", "VALUE", "USUAL"), rows, columns
        )
        if len(one.ranking) > _SHOWN:
            lines.append(f"and {len(one.ranking) - _SHOWN} more (--json shows all)")
    return lines


def _aligned(titles: Sequence[str], rows: Sequence[Sequence[str]], columns: int) -> list[str]:
    """Columns as wide as needed; a name too long for the rest of the line is cut."""
    table = [titles, *rows]
    widths = [max(len(row[at]) for row in table) for at in range(len(titles))]
    rest = sum(widths[1:]) + 2 * (len(widths) - 1)
    widths[0] = max(len(titles[0]), min(widths[0], columns - rest))
    return [
        "  ".join(
            _cut(cell, size).ljust(size) for cell, size in zip(row, widths, strict=True)
        ).rstrip()
        for row in table
    ]


def _cut(text: str, size: int) -> str:
    return text if len(text) <= size else f"{text[: size - 1]}…"
