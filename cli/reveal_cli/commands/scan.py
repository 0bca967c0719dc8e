"""``reveal scan``: watch this host, judge it live and as a whole, print what is wrong."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from reveal_cli.baseline import read_baseline
from reveal_cli.collector_process import host_flags
from reveal_cli.collector_state import missing_sources, no_ledger, unanswered_sources
from reveal_cli.errors import ERROR, USAGE, CliError
from reveal_cli.interrupt import Interrupt
from reveal_cli.live_session import ScanPlan, ScanState
from reveal_cli.options import (
    add_host,
    add_judging,
    add_redis,
    analyzer_settings,
    check_host,
    duration,
    format_duration,
    with_login,
)
from reveal_cli.output_files import judged_seconds, print_findings
from reveal_cli.progress import open_progress
from reveal_cli.summary_text import Coverage, exit_code, summary_blocks
from reveal_cli.terminal import show

if TYPE_CHECKING:
    from reveal_analyzer.state.codec import SavedState


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its flags."""
    parser = commands.add_parser(
        "scan",
        help="watch this host and report what is wrong with it",
        description="Learns the baseline of this host, then watches it and reports which subsystem"
        " lost performance, by which metrics, and which program causes it. Needs no set-up; as root"
        " it reads more. Ctrl-C ends it at any time.",
        epilog="Example: reveal scan --duration 10m --output out --fail-on high. Exit codes:"
        " 0 done, 1 error, 2 wrong usage, 3 with --fail-on when such a finding exists.",
    )
    parser.add_argument(
        "--duration", metavar="TIME", type=duration, default=duration("3m"),
        help="how long to watch, warm-up included (default 3m; 0 or forever: until Ctrl-C)",
    )  # fmt: skip
    parser.add_argument(
        "--output", metavar="DIR", type=Path,
        help="write findings.jsonl, recording.rvl, summary.json, state.rvs (what was learned),"
        " evidence/ (the samples of each finding) and report.html (a page for people) to this"
        " directory",
    )  # fmt: skip
    parser.add_argument(
        "--baseline", metavar="DIR", type=Path,
        help="start from what an earlier scan of this host learned, without a warm-up: DIR is the"
        " --output directory of that scan",
    )  # fmt: skip
    parser.add_argument(
        "--json", action="store_true",
        help="print findings as JSON, one a line, instead of the table",
    )  # fmt: skip
    add_redis(parser)
    add_judging(parser)
    add_host(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, interrupt: Interrupt) -> int:
    """Scan this host and print the findings."""
    from reveal_cli.scan_runner import run_scan  # noqa: PLC0415 - numpy, for --help too

    plan = scan_plan(arguments)
    check_host(arguments)
    result = run_scan(plan, arguments.output, open_progress(), interrupt)
    hints = result.state.hints.findings
    if arguments.json:
        print_findings([*result.findings, *hints])
    else:
        show(*summary_blocks(result.findings, coverage(plan, result.state), hints))
    return ERROR if result.failed else exit_code([*result.findings, *hints], arguments.fail_on)


def scan_plan(arguments: argparse.Namespace) -> ScanPlan:
    """Return the plan of these flags; raises ``CliError`` where nothing could be judged."""
    settings = analyzer_settings(arguments)
    baseline = _baseline(arguments)
    if baseline is None and arguments.duration <= settings.warmup_seconds:
        raise CliError(
            f"--duration {format_duration(arguments.duration)} must be longer than --warmup"
            f" {format_duration(settings.warmup_seconds)}: nothing would be judged",
            USAGE,
        )
    return ScanPlan(
        node=arguments.node,
        duration=arguments.duration,
        settings=settings,
        host_flags=tuple(host_flags(arguments)),
        redis_url=with_login(arguments.redis),
        baseline=baseline,
    )


def _baseline(arguments: argparse.Namespace) -> SavedState | None:
    if arguments.baseline is None:
        return None
    if arguments.mode == "paper":
        raise CliError(
            "--baseline needs --mode online: the detectors of the paper learn in each scan", USAGE
        )
    return read_baseline(arguments.baseline, arguments.node)


def coverage(plan: ScanPlan, state: ScanState) -> Coverage:
    """Return what the findings of a scan are based on."""
    return Coverage(
        watched=state.seconds,
        judged=judged_seconds(plan, state),
        warmup=plan.warmup,
        slices=state.slices,
        channels=state.channels,
        lost=state.lost,
        redis_away=state.redis_away_seconds,
        load=state.warmup_load,
        lost_time={plan.node: state.lost_time},
        no_ledger=no_ledger(state.collector),
        missing_sources=len(missing_sources(state.collector)),
        unanswered=unanswered_sources(state.collector),
    )
