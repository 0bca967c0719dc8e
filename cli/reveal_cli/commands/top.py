"""``reveal top``: who loses time on this host now, to what and to whom."""

from __future__ import annotations

import argparse
import math
import os
import sys

from reveal_cli.collector_process import host_flags
from reveal_cli.errors import DONE, ERROR, USAGE, CliError
from reveal_cli.interrupt import Interrupt
from reveal_cli.options import add_host, add_redis, check_host, with_login
from reveal_cli.recordings import NoRecording
from reveal_cli.terminal import console, show
from reveal_contract.names import REDIS_VARIABLE
from reveal_contract.settings import AnalyzerSettings

_ONCE_SECONDS = 12.0  # the window of the frame, and the first reading


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its flags."""
    parser = commands.add_parser(
        "top",
        help="show who loses time on this host now, to what and to whom",
        description="Shows live how much of the time that it wanted each busy pod, unit, job and"
        " process group lost in the last 10 s, for which reason and to whom, how near each"
        " subsystem is to a finding, and the step times of jobs. Lost time needs root, or CAP_BPF"
        " and CAP_PERFMON (docs/explanation/lost-time-ledger.md). Ctrl-C ends it.",
        epilog="Without a terminal it prints one frame, as with --once.",
    )
    parser.add_argument(
        "--once", action="store_true", help="watch for 12 s, print one frame and end"
    )
    add_redis(parser)
    parser.add_argument(
        "--profile", metavar="NAME",
        help="watch a node of this profile through --redis instead of this host: that of --node;"
        " nothing in Redis is changed",
    )  # fmt: skip
    add_host(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, interrupt: Interrupt) -> int:
    """Show frames until the user interrupts, or one."""
    from reveal_cli.live_session import LiveSession, ScanPlan  # noqa: PLC0415 - numpy
    from reveal_cli.top_screen import LastFrame, LiveScreen, frame  # noqa: PLC0415

    check_host(arguments)
    if arguments.profile is not None:
        return _of_node(arguments, interrupt)
    once = arguments.once or not sys.stdout.isatty()
    screen = LastFrame() if once else LiveScreen(console(sys.stdout))
    plan = ScanPlan(
        node=arguments.node,
        duration=_ONCE_SECONDS if once else math.inf,
        settings=AnalyzerSettings(),
        host_flags=tuple(host_flags(arguments)),
        redis_url=with_login(arguments.redis),
    )
    session = LiveSession(plan, NoRecording(), screen, interrupt, lambda _, __: None)
    try:
        session.run()
    finally:
        screen.stop()
    if screen.view is not None:
        show(frame(screen.view))
    return ERROR if session.state.failed else DONE


def _of_node(arguments: argparse.Namespace, interrupt: Interrupt) -> int:
    """Show frames of a node that others watch, by its stream."""
    from reveal_cli.node_stream import RedisNodeStream  # noqa: PLC0415 - numpy
    from reveal_cli.node_top import show_node  # noqa: PLC0415
    from reveal_contract.redis_address import AddressError  # noqa: PLC0415

    url = arguments.redis or os.environ.get(REDIS_VARIABLE, "")
    if not url:
        raise CliError(f"--profile needs --redis URL or {REDIS_VARIABLE}", USAGE)
    try:
        stream = RedisNodeStream(arguments.node, arguments.profile, with_login(url))
    except AddressError as error:
        raise CliError(f"--redis: {error}", USAGE) from None
    show_node(stream, interrupt, once=arguments.once)
    return DONE
