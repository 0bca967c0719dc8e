"""``kubectl reveal ui``: the findings of a cluster in a browser of this machine."""

from __future__ import annotations

import argparse

from reveal_cli.errors import DONE
from reveal_cli.interrupt import Interrupt
from reveal_cli.kubectl import flags
from reveal_cli.kubectl.cluster import connect


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb and its flags."""
    parser = verbs.add_parser(
        "ui",
        help="show the findings of the cluster in a browser",
        description="Serves the findings on 127.0.0.1 with the rights of your kubeconfig, for a"
        " browser of this machine: nodes by their health, findings with filters, jobs, and a page"
        " with the samples that were kept of each finding. The printed address has a token. Ctrl-C"
        " ends it.",
    )
    parser.add_argument(
        "--port", metavar="PORT", type=int, default=0, help="the port (default: any free one)"
    )
    flags.add_reveal_namespace(parser)
    flags.add_common(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, interrupt: Interrupt) -> int:
    """Serve until the user interrupts."""
    from reveal_cli.kubectl.cluster_findings import ClusterFindings  # noqa: PLC0415 - heavy
    from reveal_cli.ui.serving import serve  # noqa: PLC0415

    cluster = connect(arguments)
    with interrupt.raising():
        cluster.open_reports()  # the sentence on missing rights is for the terminal
    serve(ClusterFindings(cluster, arguments.reveal_namespace), arguments.port, interrupt)
    return DONE
