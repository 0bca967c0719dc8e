"""``kubectl reveal explain``: what is abnormal on a node, with or without a finding."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from urllib.parse import quote

from reveal_cli.errors import DONE
from reveal_cli.interrupt import Interrupt
from reveal_cli.kubectl import flags
from reveal_cli.kubectl.cluster import connect
from reveal_cli.kubectl.top import stream_of
from reveal_cli.time_spans import Span, span

_LATEST = Span("90", "120")  # seconds of the two minutes that the stream keeps


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb and its flags."""
    parser = verbs.add_parser(
        "explain",
        help="rank every metric of a node in the last two minutes",
        description="Answers: something is slow on this node now, what is abnormal? Ranks every"
        " metric by how far it left its baseline, which is the last two minutes. For an earlier"
        " time, see the samples of a finding: kubectl reveal report.",
    )
    parser.add_argument("name", metavar="NODE", help="the name of the node")
    parser.add_argument(
        "--span", metavar="FROM/TO", type=span, action="append",
        help="a span of the last two minutes: 60/90 (seconds since their begin), or two times in"
        " RFC 3339 (default: 90/120); can be given several times",
    )  # fmt: skip
    flags.add_profile_of_node(parser)
    flags.add_reveal_namespace(parser)
    flags.add_common(parser)
    flags.add_output(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, interrupt: Interrupt) -> int:
    """Print the rankings."""
    from reveal_cli.ranking import explain_recording  # noqa: PLC0415 - heavy
    from reveal_cli.ranking_table import print_rankings  # noqa: PLC0415

    with interrupt.raising(), tempfile.TemporaryDirectory(prefix="reveal-") as folder:
        stream = stream_of(
            connect(arguments), arguments.name, arguments.profile, arguments.reveal_namespace
        )
        recording = Path(folder) / f"{quote(arguments.name, safe='')}.rvl"
        recording.write_bytes(stream.recording())
        rankings, _ = explain_recording(recording, arguments.span or [_LATEST])
        print_rankings(rankings, as_json=arguments.output == flags.JSON)
    return DONE
