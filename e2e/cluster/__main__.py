"""``python -m cluster build | up | pin``: the control plane by hand; ``nodes``: a whole cluster."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from cluster import binaries, building, handle, pinning, plane
from cluster.daemons import StartError
from cluster.golang import BuildError
from cluster.handle import Cluster
from cluster.network import NUMBERS


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit codes: 0 done, 1 could not; wrong usage is argparse's 2."""
    chosen = _parser().parse_args(arguments)
    signal.signal(signal.SIGTERM, _end)
    try:
        chosen.run(chosen)
    except (BuildError, StartError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    except KeyboardInterrupt:
        return 0
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m cluster", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    build = commands.add_parser("build", help="build what is missing of the programs")
    build.set_defaults(run=_build)
    up = commands.add_parser("up", help="run a control plane until Ctrl-C")
    up.add_argument("--audit", action="store_true", help="keep an audit log")
    up.set_defaults(run=_up)
    pin = commands.add_parser("pin", help="write go.mod and go.sum for another version")
    pin.add_argument("--kubernetes", default="", metavar="v1.X.Y")
    pin.add_argument("--helm", default="", metavar="v3.X.Y")
    pin.add_argument("--coredns", default="", metavar="v1.X.Y")
    pin.set_defaults(run=_pin)
    whole = commands.add_parser(
        "nodes", help="a cluster with real nodes, which stays up"
    ).add_subparsers(required=True, metavar="DO")
    for name, run in (("up", _nodes_up), ("down", _nodes_down), ("status", _nodes_status)):
        subparser = whole.add_parser(name)
        subparser.add_argument("--folder", type=Path, default=handle.default_folder())
        subparser.set_defaults(run=run)
        if name == "up":
            subparser.add_argument("--count", type=int, default=3, choices=NUMBERS, metavar="N")
            subparser.add_argument(
                "--vms", type=int, default=0, choices=range(3), metavar="N",
                help="further nodes with kernels of their own",
            )  # fmt: skip
    for name in ("start", "stop", "kill", "disconnect", "join", "remove", "exec"):
        subparser = whole.add_parser(name)
        subparser.add_argument("node", metavar="NODE")
        subparser.add_argument("--folder", type=Path, default=handle.default_folder())
        subparser.set_defaults(run=_node, do=name)
        if name == "exec":
            subparser.add_argument("command", nargs=argparse.REMAINDER)
    return parser


def _build(_: argparse.Namespace) -> None:
    began = time.monotonic()
    building.build(_log)
    _log(f"all of {', '.join(binaries.ALL)} are there ({time.monotonic() - began:.0f} s)")
    for name, path in binaries.find().paths.items():
        _log(f"  {name:<24} {path}")


def _up(chosen: argparse.Namespace) -> None:
    building.build(_log)
    began = time.monotonic()
    with plane.running(plane.Options(audit=chosen.audit)) as running:
        folder = running.programs["kubectl"].parent
        _log(f"ready after {time.monotonic() - began:.1f} s, logs in {running.folder}; Ctrl-C ends")
        _log(f"export KUBECONFIG={running.kubeconfig} PATH={folder}:$PATH")
        while running.api.running:
            time.sleep(1)
        raise StartError(f"the API server ended; its log ends:\n{running.api.tail()}")


def _pin(chosen: argparse.Namespace) -> None:
    pinning.pin(
        binaries.cache().parent.parent / "go", chosen.kubernetes, chosen.helm, chosen.coredns
    )


def _nodes_up(chosen: argparse.Namespace) -> None:
    began = time.monotonic()
    images = handle.prepare(_log, chosen.vms)
    _log(f"programs and images: {time.monotonic() - began:.1f} s")
    desired = handle.plan(images, chosen.count, chosen.vms)
    cluster = handle.up(chosen.folder, desired, _log, bound=False)
    _log(cluster.kubectl("get", "nodes", "-o", "wide").rstrip())
    _log(f"ready after {time.monotonic() - began:.1f} s, logs in {cluster.folder}")
    _log(f"export KUBECONFIG={cluster.kubeconfig} PATH={cluster.program('')}:$PATH")


def _nodes_down(chosen: argparse.Namespace) -> None:
    began = time.monotonic()
    if left := handle.down(chosen.folder):
        raise StartError(f"could not be removed: {' '.join(map(str, left))}")
    _log(f"the cluster is gone ({time.monotonic() - began:.1f} s)")


def _nodes_status(chosen: argparse.Namespace) -> None:
    cluster = Cluster(chosen.folder)
    if not cluster.running:
        raise StartError(f"no cluster runs in {chosen.folder}")
    _log(cluster.kubectl("get", "nodes", "-o", "wide").rstrip())


def _node(chosen: argparse.Namespace) -> None:
    cluster = Cluster(chosen.folder)
    if chosen.do == "exec":
        _log(cluster.execute(chosen.node, *chosen.command).rstrip())
    else:
        getattr(cluster, chosen.do)(chosen.node)


def _log(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _end(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
