"""``kubectl reveal top``: a node of the cluster, live."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from reveal_cli.errors import DONE, CliError
from reveal_cli.interrupt import Interrupt
from reveal_cli.kubectl import flags
from reveal_cli.kubectl.cluster import Cluster, connect
from reveal_cli.kubectl.mentions import near
from reveal_cli.kubectl.pod_samples import AnalyzerPods
from reveal_contract.foreign_names import printable

if TYPE_CHECKING:
    from reveal_cli.kubectl.pod_stream import PodNodeStream


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the verb and its flags."""
    parser = verbs.add_parser(
        "top",
        help="show who loses time on a node now, to what and to whom",
        description="Shows a node live: how much of the time that it wanted each pod lost in the"
        " last 10 s, for which reason and to whom, how near each subsystem is to a finding, and the"
        " step times of jobs. Ctrl-C ends it.",
        epilog="Without a terminal it prints one frame, as with --once.",
    )
    parser.add_argument("name", metavar="NODE", help="the name of the node")
    flags.add_profile_of_node(parser)
    parser.add_argument("--once", action="store_true", help="print one frame and end")
    flags.add_reveal_namespace(parser)
    flags.add_common(parser)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace, interrupt: Interrupt) -> int:
    """Show frames until the user interrupts, or one."""
    from reveal_cli.node_top import show_node  # noqa: PLC0415 - numpy

    with interrupt.raising():
        stream = stream_of(
            connect(arguments), arguments.name, arguments.profile, arguments.reveal_namespace
        )
    show_node(stream, interrupt, once=arguments.once)
    return DONE


def stream_of(cluster: Cluster, node: str, profile: str, namespace: str) -> PodNodeStream:
    """Return the stream of a node; raises ``CliError`` where no profile has it."""
    from reveal_cli.kubectl.pod_stream import PodNodeStream  # noqa: PLC0415 - numpy

    streams = [PodNodeStream(node, pods) for pods in analyzers_of(cluster, profile, namespace)]
    if len(streams) == 1:  # its sentence on a wrong name has the names of its nodes
        return streams[0]
    return _first_known(streams, node)


def analyzers_of(cluster: Cluster, profile: str, namespace: str) -> list[AnalyzerPods]:
    """Return the analyzers of a profile, or of each; raises ``CliError`` where there is none."""
    profiles = cluster.profiles()
    if profile and profile not in profiles:
        hint = near(profile, profiles)
        raise CliError(f"there is no RevealProfile {printable(profile)}{hint}")
    chosen = [profile] if profile else profiles
    if not chosen:
        raise CliError("there is no RevealProfile: nothing is watched in this cluster")
    return [AnalyzerPods(cluster.requests, name, namespace) for name in chosen]


def _first_known(streams: Sequence[PodNodeStream], node: str) -> PodNodeStream:
    """Return the first stream that is known; a profile without analyzers stops no search."""
    problem: CliError | None = None
    for stream in streams:
        try:
            if stream.is_known:
                return stream
        except CliError as error:
            problem = error
    raise problem or CliError(f"no RevealProfile has a node {printable(node)}")
