"""``python -m soak --minutes 30``: 0 where nothing was found and nothing grew, else 1.

On the cluster that is up, whose release is brought up to date; its results stand in ``--output``
after each minute, also of a run that is interrupted.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from benchmark_report import RESULTS
from cluster import handle, machine
from cluster.daemons import StartError
from cluster.handle import Cluster
from soak.result import Result
from soak.running import Soak
from support.cluster_release import Release, install, now
from support.faulty_pods import namespace_of_jobs
from support.helm_chart import NAMESPACE

_CALM_S = 600.0


def main(arguments: Sequence[str] | None = None) -> int:
    chosen = _parser().parse_args(arguments)
    if why := machine.missing():
        sys.stderr.write(f"error: {why}\n")
        return 1
    signal.signal(signal.SIGTERM, _end)
    try:
        with handle.running(3, _log) as cluster:
            return _soak(cluster, chosen)
    except KeyboardInterrupt:
        return 1
    except (StartError, AssertionError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--output", type=Path, default=RESULTS, metavar="FOLDER")
    return parser


def _soak(cluster: Cluster, chosen: argparse.Namespace) -> int:
    watched = _watched(cluster)
    chosen.output.mkdir(parents=True, exist_ok=True)
    result = Result(chosen.minutes, now())
    with namespace_of_jobs(watched) as namespace:
        soak = Soak(watched, namespace, chosen.output, result, _log)
        try:
            soak.run()
        except KeyboardInterrupt:
            _log("interrupted: what there is by now is kept")
        finally:
            soak.close()
            result.save(chosen.output)
    _log(f"\n{result.markdown()}")
    return 0 if result.good else 1


def _watched(cluster: Cluster) -> Release:
    """All nodes watched and learned, by pods that are not about to be replaced."""
    _log("installing or upgrading the release, then learning")
    with tempfile.TemporaryDirectory() as folder:
        watched = install(cluster, Path(folder))
    watched.watch(*cluster.nodes)
    for kind in ("deployments", "daemonsets"):
        for item in cluster.kubectl("-n", NAMESPACE, "get", kind, "-o", "name").split():
            cluster.kubectl("-n", NAMESPACE, "rollout", "status", item, "--timeout=180s")
    watched.watch(*cluster.nodes)  # a pod that was replaced meanwhile learns again
    watched.calm(_CALM_S)
    return watched


def _log(text: str) -> None:
    sys.stdout.write(f"{time.strftime('%H:%M:%S')} {text}\n")
    sys.stdout.flush()


def _end(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
