"""``kubectl reveal history``: the values that were kept of a node, as a recording."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import quote

from reveal_cli.atomic_file import write_atomically
from reveal_cli.errors import DONE, CliError
from reveal_cli.interrupt import Interrupt
from reveal_cli.kubectl import flags
from reveal_cli.kubectl.cluster import connect
from reveal_cli.kubectl.pod_samples import AnalyzerPods, NoSamplesError
from reveal_cli.kubectl.top import analyzers_of
from reveal_cli.stderr_lines import note
from reveal_cli.time_spans import Span, recent, span
from reveal_contract.finding import rfc3339
from reveal_contract.foreign_names import printable
from reveal_contract.time_units import NS_PER_HOUR

SPAN_HELP = (
    "a span of the last 24 hours by the clock of this machine: 03:10/03:15, or two times in"
    " RFC 3339"
)


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb and its flags."""
    parser = verbs.add_parser(
        "history",
        help="write what was kept of a node in a span of time",
        description="Writes one value a second of each metric of a node to a recording, which"
        " `reveal explain`, `export`, `report` and `analyze` read. The profile must keep them:"
        " spec.evidence.historyHours.",
    )
    parser.add_argument("name", metavar="NODE", help="the name of the node")
    parser.add_argument(
        "--span", metavar="FROM/TO", type=span, required=True, help=SPAN_HELP,
    )  # fmt: skip
    parser.add_argument(
        "-f", "--file", metavar="FILE", type=Path, help="the file to write (default: NODE.rvl)"
    )
    flags.add_profile_of_node(parser)
    flags.add_reveal_namespace(parser)
    flags.add_common(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, interrupt: Interrupt) -> int:
    """Write the recording."""
    with interrupt.raising():
        asked: Span = arguments.span
        found = recent(asked, time.time_ns())
        if found is None:
            raise CliError(f"--span {asked} has no time of day: write it as 03:10/03:15")
        profiles = analyzers_of(connect(arguments), arguments.profile, arguments.reveal_namespace)
        data = recorded(profiles, arguments.name, *found)
        file: Path = arguments.file or Path(f"{quote(arguments.name, safe='')}.rvl")
        write_atomically(file, [data])
        note(f"{file} is written", "kubectl reveal")
    return DONE


def recorded(profiles: Iterable[AnalyzerPods], node: str, begin_ns: int, end_ns: int) -> bytes:
    """Return a recording of what the first profile that has some kept of a span.

    Raises ``CliError`` with a sentence if there is nothing.
    """
    from reveal_analyzer.node_history.recorded import recording, slices  # noqa: PLC0415 - numpy

    hours = range(begin_ns // NS_PER_HOUR, end_ns // NS_PER_HOUR + 1)
    reason = ""
    for pods in profiles:
        try:
            if found := slices(_kept(pods, node, hours), begin_ns, end_ns):
                return recording(found)
        except NoSamplesError as error:
            reason = reason or str(error)
    when = f"{rfc3339(begin_ns)} to {rfc3339(end_ns)}"
    raise CliError(f"nothing is kept of node {printable(node)} from {when}: {reason or 'a gap'}")


def _kept(pods: AnalyzerPods, node: str, hours: Iterable[int]) -> Iterator[bytes]:
    """Yield the hours that are kept; raises ``NoSamplesError`` if none is."""
    problem: NoSamplesError | None = None
    is_empty = True
    for hour in hours:
        try:
            data = pods.get(f"/history/{quote(node, safe='')}?hour={hour}")
        except NoSamplesError as error:
            problem = error
            continue
        is_empty = False
        yield data
    if problem is not None and is_empty:
        raise problem
