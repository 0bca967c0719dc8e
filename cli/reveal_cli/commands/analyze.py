"""``reveal analyze``: the findings of recordings, the same each time."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from reveal_cli.closing import Seen, closing, exit_code, width
from reveal_cli.exits import CliError
from reveal_cli.hints import Hints
from reveal_cli.interrupt import Interrupt
from reveal_cli.options import add_judging, analyzer_settings
from reveal_cli.output import jsonl, missing, print_findings, write_whole
from reveal_cli.recordings import Slices
from reveal_cli.verdict import Replay, judge_whole, replay
from reveal_contract.finding import Finding
from reveal_contract.settings import AnalyzerSettings


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "analyze",
        help="judge recordings made by scan or record",
        description="Judges recordings as `reveal scan` would have: second by second and once"
        " more as a whole. The same recording and flags give the same findings.",
    )
    parser.add_argument("files", metavar="FILE", nargs="+", type=Path, help="a recording (.rvl)")
    parser.add_argument(
        "--findings", metavar="FILE.jsonl", type=Path, help="write the findings to this file, too"
    )
    parser.add_argument(
        "--json", action="store_true",
        help="print findings as JSON, one a line, instead of the table",
    )  # fmt: skip
    add_judging(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, interrupt: Interrupt) -> int:
    settings = analyzer_settings(arguments)
    found: list[Finding] = []
    with interrupt.raising():
        for path in arguments.files:
            findings, hints, seen = _one(path, settings)
            found += [*findings, *hints]
            if not arguments.json:
                title = [f"{path}:"] if len(arguments.files) > 1 else []
                print("\n".join([*title, *closing(findings, seen, width(), hints)]))
    if arguments.json:
        print_findings(found)
    if arguments.findings:
        write_whole(arguments.findings, jsonl(found))
    return exit_code(found, arguments.fail_on)


def _one(path: Path, settings: AnalyzerSettings) -> tuple[list[Finding], list[Finding], Seen]:
    """Anomalies, hints on how the nodes are set up, and how far both reach."""
    slices = Slices(path)
    seen = replay(slices, settings)
    if not seen.slices:
        raise CliError(f"{path} holds no slices: nothing to judge")
    if slices.truncated:
        print(f"reveal: {path} is cut off; it is judged up to there", file=sys.stderr)
    hints = Hints()
    for facts, at_ns in slices.facts:
        hints.take(facts, at_ns or seen.first_ns)
    findings = judge_whole(path, seen.ledger.findings, settings)
    return findings, hints.findings, _extent(seen, slices, settings)


def _extent(seen: Replay, slices: Slices, settings: AnalyzerSettings) -> Seen:
    collector: dict[str, Any] = next(
        (note["collector"] for note in slices.notes if "collector" in note), {}
    )
    watched = (seen.last_ns - seen.first_ns) / 1e9 + 1
    judged = any(not analyzer.status().learning for analyzer in seen.analyzers.values())
    return Seen(
        watched=watched,
        judged=max(0.0, watched - settings.warmup_seconds) if judged else 0.0,
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
