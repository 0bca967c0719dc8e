"""``kubectl reveal silence``: no Events and no node condition for a report, until a time."""

from __future__ import annotations

import argparse
import math

from reveal_cli.errors import DONE, CliError
from reveal_cli.interrupt import Interrupt
from reveal_cli.kubectl import flags
from reveal_cli.kubectl.cluster import Cluster, connect
from reveal_cli.kubectl.report_json import print_item
from reveal_cli.kubectl.report_text import silence_text
from reveal_cli.kubectl.reports import ClusterReport
from reveal_cli.options import duration
from reveal_cli.terminal import show
from reveal_contract.kube.silence import MAX_REASON_BYTES, Silence
from reveal_contract.time_units import NS_PER_SECOND

MAX_DAYS = 30


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb and its flags."""
    parser = verbs.add_parser(
        "silence",
        help="stop Events and the node condition of an open report for a while",
        description="Silences an open report: it causes no new Event and no node condition until"
        " the time is over. It is still written and listed, and alerts on metrics still fire.",
    )
    parser.add_argument("name", metavar="REPORT", help="the name of the report")
    parser.add_argument(
        "--for", dest="seconds", metavar="TIME", type=length, required=True,
        help=f"how long, such as 90m or 2h; at most {MAX_DAYS * 24}h",
    )  # fmt: skip
    parser.add_argument(
        "--because", metavar="TEXT", type=reason, required=True, help="why, for others to read"
    )
    flags.add_common(parser)
    flags.add_output(parser)
    parser.set_defaults(run=run)


def length(text: str) -> float:
    """Return the seconds of a silence."""
    seconds = duration(text)
    if math.isinf(seconds) or seconds > MAX_DAYS * 86_400:
        raise argparse.ArgumentTypeError(f"a silence has an end: at most {MAX_DAYS * 24}h")
    return seconds


def reason(text: str) -> str:
    """Return why there is a silence, on one line."""
    line = " ".join(text.split())
    if not line:
        raise argparse.ArgumentTypeError("must not be empty")
    if len(line.encode(errors="replace")) > MAX_REASON_BYTES:
        raise argparse.ArgumentTypeError(f"must have at most {MAX_REASON_BYTES} bytes")
    return line


def run(arguments: argparse.Namespace, interrupt: Interrupt) -> int:
    """Silence a report and print until when."""
    with interrupt.raising():
        cluster = connect(arguments)
        item = silence(cluster, arguments.name, arguments.seconds, arguments.because)
        if arguments.output == flags.JSON:
            print_item(item, cluster.now_ns)
        else:
            show(f"{item.name} is silenced {silence_text(item, cluster.now_ns)}")
    return DONE


def silence(cluster: Cluster, name: str, seconds: float, because: str) -> ClusterReport:
    """Silence an open report, counted from now by the server's clock; return the report."""
    if not cluster.report(name).report.open:
        raise CliError(f"the finding of report {name} is resolved: there is nothing to silence")
    until_ns = cluster.now_ns + round(seconds * NS_PER_SECOND)
    return cluster.annotate(name, Silence(until_ns, because).to_annotations())
