"""``kubectl reveal``: the open findings of a cluster by job, the worst first."""

from __future__ import annotations

import argparse
import sys

from reveal_cli.errors import DONE
from reveal_cli.interrupt import Interrupt
from reveal_cli.kubectl import flags
from reveal_cli.kubectl.cluster import Cluster, connect
from reveal_cli.kubectl.report_json import print_items
from reveal_cli.kubectl.report_text import open_lines, worst_first
from reveal_cli.kubectl.reports import ReportList


def run(arguments: argparse.Namespace, interrupt: Interrupt) -> int:
    """Print the open findings."""
    with interrupt.raising():
        print_open(connect(arguments), as_json=arguments.output == flags.JSON)
    return DONE


def print_open(cluster: Cluster, *, as_json: bool) -> None:
    """Print the open findings of a cluster."""
    listed = cluster.open_reports()
    items = worst_first([item for item in listed.reports if item.report.open])
    if as_json:
        print_items(items, cluster.now_ns)
    elif items:
        print("\n".join(open_lines(items, cluster.now_ns)))
    else:
        print("No open findings.")
    warn_of_unreadable(listed)


def warn_of_unreadable(listed: ReportList) -> None:
    """Print a line to stderr if reports are left out."""
    if listed.unreadable:
        number = listed.unreadable
        count = "1 report is" if number == 1 else f"{number} reports are"
        print(
            f"kubectl reveal: {count} left out: of a version of Reveal that this program cannot"
            " read",
            file=sys.stderr,
        )
