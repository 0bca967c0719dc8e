"""``reveal scan``: watch this host, judge it live and once more as a whole, say what is wrong."""

from __future__ import annotations

import argparse
from pathlib import Path

from reveal_cli.collector_process import host_flags
from reveal_cli.errors import ERROR, USAGE, CliError
from reveal_cli.interrupt import Interrupt
from reveal_cli.live_session import Plan, Watched
from reveal_cli.options import (
    add_host,
    add_judging,
    analyzer_settings,
    check_host,
    clock,
    duration,
)
from reveal_cli.output_files import judged_seconds, missing, print_findings
from reveal_cli.progress import open_progress
from reveal_cli.scan_runner import scan
from reveal_cli.summary_text import Seen, closing, exit_code, width


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "scan",
        help="watch this host and say what is wrong with it",
        description="Learns for a while what is normal on this host, then watches it and says"
        " which subsystem, metric and program lost performance to what. Needs no set-up;"
        " run as root it sees more. End it at any time with Ctrl-C.",
        epilog="Exit codes: 0 done, 1 error, 2 wrong usage, 3 with --fail-on when one was found.",
    )
    parser.add_argument(
        "--duration", metavar="TIME", type=duration, default=duration("3m"),
        help="how long to watch, learning included (default 3m; 0 or forever: until Ctrl-C)",
    )  # fmt: skip
    parser.add_argument(
        "--output", metavar="DIR", type=Path,
        help="keep findings.jsonl, recording.rvl and summary.json in this directory",
    )  # fmt: skip
    parser.add_argument(
        "--json", action="store_true",
        help="print findings as JSON, one a line, instead of the table",
    )  # fmt: skip
    parser.add_argument(
        "--redis", metavar="URL", default="",
        help="use this Redis (redis://host:6379/0, unix:///path) instead of a private one",
    )  # fmt: skip
    add_judging(parser)
    add_host(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, interrupt: Interrupt) -> int:
    plan = plan_of(arguments)
    check_host(arguments)
    result = scan(plan, arguments.output, open_progress(), interrupt)
    hints = result.watched.hints.findings
    if arguments.json:
        print_findings([*result.findings, *hints])
    else:
        print("\n".join(closing(result.findings, seen(plan, result.watched), width(), hints)))
    return ERROR if result.failed else exit_code([*result.findings, *hints], arguments.fail_on)


def plan_of(arguments: argparse.Namespace) -> Plan:
    """The plan these flags ask for; a usage error where nothing could be judged."""
    settings = analyzer_settings(arguments)
    if arguments.duration <= settings.warmup_seconds:
        raise CliError(
            f"--duration {clock(arguments.duration)} is not longer than --warmup"
            f" {clock(settings.warmup_seconds)}: nothing would be judged",
            USAGE,
        )
    return Plan(
        node=arguments.node,
        duration=arguments.duration,
        settings=settings,
        host_flags=tuple(host_flags(arguments)),
        redis_url=arguments.redis,
    )


def seen(plan: Plan, watched: Watched) -> Seen:
    """How far the findings of a scan reach."""
    return Seen(
        watched=watched.seconds,
        judged=judged_seconds(plan, watched),
        warmup=plan.settings.warmup_seconds,
        slices=watched.slices,
        channels=watched.channels,
        lost=watched.lost,
        away=watched.away_seconds,
        load=watched.warmup_load,
        missing=missing(watched.collector),
    )
