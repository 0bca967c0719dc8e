"""``kubectl reveal unsilence``: end the silence of a report before its time."""

from __future__ import annotations

import argparse

from reveal_cli.errors import DONE
from reveal_cli.interrupt import Interrupt
from reveal_cli.kubectl import flags
from reveal_cli.kubectl.cluster import Cluster, connect
from reveal_cli.kubectl.report_json import print_item
from reveal_cli.kubectl.reports import ClusterReport
from reveal_cli.terminal import show
from reveal_contract.kube.silence import NO_SILENCE


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb and its flags."""
    parser = verbs.add_parser(
        "unsilence",
        help="end the silence of a report",
        description="Ends the silence of a report before its time. A report without a silence"
        " stays as it is.",
    )
    parser.add_argument("name", metavar="REPORT", help="the name of the report")
    flags.add_common(parser)
    flags.add_output(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, interrupt: Interrupt) -> int:
    """End the silence of a report."""
    with interrupt.raising():
        cluster = connect(arguments)
        item = unsilence(cluster, arguments.name)
        if arguments.output == flags.JSON:
            print_item(item, cluster.now_ns)
        else:
            show(f"{item.name} is not silenced")
    return DONE


def unsilence(cluster: Cluster, name: str) -> ClusterReport:
    """Remove the annotations of the silence; return the report."""
    cluster.report(name)  # its error of a wrong name has similar ones
    return cluster.annotate(name, NO_SILENCE)
