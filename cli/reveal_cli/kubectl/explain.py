"""``kubectl reveal explain``: what was abnormal on a node, with or without a finding."""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from reveal_cli.errors import DONE
from reveal_cli.interrupt import Interrupt
from reveal_cli.kubectl import flags
from reveal_cli.kubectl.cluster import Cluster, connect
from reveal_cli.kubectl.node_history import recorded
from reveal_cli.kubectl.top import analyzers_of, stream_of
from reveal_cli.time_spans import Span, recent, span
from reveal_contract.finding import rfc3339
from reveal_contract.time_units import NS_PER_SECOND

if TYPE_CHECKING:
    from reveal_cli.ranking import SpanRanking

_LATEST = Span("90", "120")  # seconds of the two minutes that the stream keeps
_STREAM_NS = 110 * NS_PER_SECOND
_BEFORE_NS, _AFTER_NS = 3600 * NS_PER_SECOND, 600 * NS_PER_SECOND  # the baseline of a span


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
        node = _Node(connect(arguments), arguments)
        rankings = [node.ranked(each) for each in arguments.span or [_LATEST]]
        print_rankings(rankings, as_json=arguments.output == flags.JSON)
    return DONE


class _Node:
    """The node that was asked for; its stream is read once."""

    def __init__(self, cluster: Cluster, arguments: argparse.Namespace) -> None:
        self._cluster, self._name = cluster, str(arguments.name)
        self._where = arguments.profile, arguments.reveal_namespace
        self._latest: bytes | None = None

    def ranked(self, asked: Span) -> SpanRanking:
        """Return the ranking of a span; raises ``CliError``."""
        now_ns = time.time_ns()
        found = recent(asked, now_ns)
        if found is None or found[0] > now_ns - _STREAM_NS:
            return self._explained(self._stream(), asked)
        begin_ns, end_ns = found
        data = recorded(
            analyzers_of(self._cluster, *self._where), self._name,
            begin_ns - _BEFORE_NS, min(end_ns + _AFTER_NS, now_ns),
        )  # fmt: skip
        return self._explained(data, Span(rfc3339(begin_ns), rfc3339(end_ns)))

    def _stream(self) -> bytes:
        if self._latest is None:
            self._latest = stream_of(self._cluster, self._name, *self._where).recording()
        return self._latest

    def _explained(self, data: bytes, asked: Span) -> SpanRanking:
        from reveal_cli.ranking import explain_recording  # noqa: PLC0415 - heavy

        with tempfile.TemporaryDirectory(prefix="reveal-") as folder:
            recording = Path(folder) / f"{quote(self._name, safe='')}.rvl"
            recording.write_bytes(data)
            [ranking], _ = explain_recording(recording, [asked])
        return ranking
