"""``kubectl reveal why``: the open and recent findings about a pod, a job or a node."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from reveal_cli.errors import DONE, CliError
from reveal_cli.interrupt import Interrupt
from reveal_cli.kubectl import flags
from reveal_cli.kubectl.cluster import Cluster, connect
from reveal_cli.kubectl.mentions import is_about, known_names, near
from reveal_cli.kubectl.open_findings import warn_of_unreadable
from reveal_cli.kubectl.report_json import print_items
from reveal_cli.kubectl.report_text import repeated_lines, report_blocks, worst_first
from reveal_cli.kubectl.reports import ClusterReport
from reveal_cli.terminal import show
from reveal_contract.foreign_names import printable


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb and its flags."""
    parser = verbs.add_parser(
        "why",
        help="explain what slows down a pod, a job or a node",
        description="Shows the open findings about a pod, a job or a node, the worst first, and"
        " then the recent ones: cause, culprit, cost, and what to do. Times are UTC.",
    )
    parser.add_argument(
        "name", metavar="NAME", help="a pod, a job, a node, another subject, or a report"
    )
    parser.add_argument(
        "-n", "--namespace", metavar="NAME", default="",
        help="only pods and jobs of this namespace (default: of all)",
    )  # fmt: skip
    flags.add_common(parser)
    flags.add_output(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, interrupt: Interrupt) -> int:
    """Print the findings about the named pod, job or node."""
    with interrupt.raising():
        print_findings(
            connect(arguments),
            arguments.name,
            arguments.namespace,
            as_json=arguments.output == flags.JSON,
        )
    return DONE


def print_findings(cluster: Cluster, name: str, namespace: str, *, as_json: bool) -> None:
    """Print the findings about a name; raises ``CliError`` where no report mentions it."""
    listed = cluster.reports()
    found = ordered(item for item in listed.reports if is_about(item, name, namespace))
    if not found:
        known = known_names(listed.reports, namespace)
        where = f" in namespace {printable(namespace)}" if namespace else ""
        hint = near(name, known) or ": it has no findings now, or the name is wrong"
        raise CliError(f"no report mentions {printable(name)}{where}{hint}")
    if as_json:
        print_items(found, cluster.now_ns)
    else:
        blocks = [block for item in found for block in report_blocks(item, cluster.now_ns)]
        show(*blocks, *repeated_lines(found))
    warn_of_unreadable(listed)


def ordered(items: Iterable[ClusterReport]) -> list[ClusterReport]:
    """Return open findings, the worst first, then resolved ones, the latest first."""
    found = list(items)
    resolved = [item for item in found if not item.report.open]
    resolved.sort(key=lambda item: item.finding.resolved_ns or 0, reverse=True)
    return [*worst_first([item for item in found if item.report.open]), *resolved]
