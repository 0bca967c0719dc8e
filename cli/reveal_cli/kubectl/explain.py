"""``kubectl reveal explain``: what was abnormal on a node, with or without a finding."""

from __future__ import annotations

import argparse

from reveal_cli.errors import DONE
from reveal_cli.interrupt import Interrupt
from reveal_cli.kubectl import flags
from reveal_cli.kubectl.cluster import connect
from reveal_cli.kubectl.ranked_node import LATEST, RankedNode
from reveal_cli.time_spans import span


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb and its flags."""
    parser = verbs.add_parser(
        "explain",
        help="rank every metric of a node for a span of time",
        description="Answers: something was slow on this node, what was abnormal then? Ranks every"
        " metric by how far it left its baseline. That is the last two minutes, or for an earlier"
        " span the hour before it and the ten minutes after it: the profile must keep them"
        " (spec.evidence.historyHours).",
    )
    parser.add_argument("name", metavar="NODE", help="the name of the node")
    parser.add_argument(
        "--span", metavar="FROM/TO", type=span, action="append",
        help="a span of the last 24 hours by the clock of this machine: 03:10/03:15, or two times"
        " in RFC 3339, or seconds of the last two minutes (default: 90/120); can be given several"
        " times",
    )  # fmt: skip
    flags.add_profile_of_node(parser)
    flags.add_reveal_namespace(parser)
    flags.add_common(parser)
    flags.add_output(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, interrupt: Interrupt) -> int:
    """Print the rankings."""
    from reveal_cli.ranking_table import print_rankings  # noqa: PLC0415 - heavy

    with interrupt.raising():
        node = RankedNode(
            connect(arguments), arguments.name, arguments.profile, arguments.reveal_namespace
        )
        rankings = [node.ranking(each) for each in arguments.span or [LATEST]]
        print_rankings(rankings, as_json=arguments.output == flags.JSON)
    return DONE
