"""An upgrade under load, and its rollback: slices and findings while two versions run together.

    python bench/rolling_upgrade.py --earlier REF [--nodes 120] [--groups 6]

REF is a commit or tag of this repository whose collectors and analyzers run first.  As on a
cluster, two analyzers are replaced one after the other, each when its successor is ready, then the
collectors in groups; the rollback does the same.  Each node has a fault of 15 s once a minute.  A
slice is lost if no analyzer got it, or one could not use it.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from analyzer_process import MeasuredAnalyzer, totals
from benchmark_report import Row, report
from failoverbench import senders
from failoverbench.findings import Findings, compared
from failoverbench.fleet import CYCLE_S, WARMUP_S, Fault
from support.redis_server import launcher

ROOT = Path(__file__).parents[1]
PACKAGES = ("contract", "collector", "analyzer")
BETWEEN_S = 10.0  # from one replacement to the next
_COUNTS = ("slices", "slices_missing", "messages_refused", "messages_trimmed", "slices_repeated")
_ENDS_S = 60.0


@dataclass(frozen=True)
class Version:
    """The packages of a commit."""

    name: str
    root: Path

    @property
    def environment(self) -> dict[str, str]:
        paths = os.pathsep.join(str(self.root / package) for package in PACKAGES)
        return {**os.environ, "PYTHONPATH": paths}


class Senders:
    """The collectors of a group of nodes, as a process of a version."""

    def __init__(self, url: str, nodes: tuple[int, int, int], began_s: float, folder: Path) -> None:
        first = nodes[0]
        state = folder / f"sent-{first}.json"
        self._flags = [url, *map(str, nodes), str(began_s), str(state)]
        self._process: subprocess.Popen[str] | None = None
        self.ended: list[dict[str, Any]] = []

    def run(self, version: Version) -> None:
        """Replace the process by one of this version."""
        self.end()
        command = [sys.executable, senders.__file__, *self._flags]
        self._process = subprocess.Popen(
            command, env=version.environment, stdout=subprocess.PIPE, text=True
        )

    def end(self) -> None:
        """End the process; harmless after the end."""
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            output, _ = self._process.communicate(timeout=_ENDS_S)
            self.ended.append(json.loads(output))
            self._process = None


class Installation:
    """Two analyzers and groups of collectors on one Redis."""

    def __init__(self, url: str, folder: Path, nodes: int, groups: int) -> None:
        self._url, self._folder = url, folder
        self.found, self._replaced = Findings(), list[float]()
        self._counts: Counter[str] = Counter()
        self._analyzers: list[MeasuredAnalyzer] = []
        each, began_s = nodes // groups, time.time()
        self._groups = [
            Senders(url, (number * each, each, nodes), began_s, folder) for number in range(groups)
        ]

    def start(self, version: Version) -> None:
        for _ in range(2):
            self._add_analyzer(version)
        for group in self._groups:
            group.run(version)

    def replace_analyzers(self, version: Version) -> None:
        for before in list(self._analyzers):
            self._add_analyzer(version)
            self._replaced.append(time.time())
            self._analyzers.remove(before)
            self._end_analyzer(before)
            self.found.follow(BETWEEN_S)

    def replace_collectors(self, version: Version) -> None:
        for group in self._groups:
            self._replaced.append(time.time())
            group.run(version)
            self.found.follow(BETWEEN_S)

    def end(self) -> None:
        """End all; harmless after the end."""
        for group in self._groups:
            group.end()
        self.found.follow(5.0)  # the last slices are analyzed
        while self._analyzers:
            self._end_analyzer(self._analyzers.pop())

    def row(self) -> Row:
        ended = [end for group in self._groups for end in group.ended]
        faults = [Fault(*each) for end in ended for each in end["faults"]]
        return {
            "sent": sum(end["sent"] for end in ended),
            "not delivered": sum(end["dropped"] + end["buffered"] for end in ended),
            **{name.replace("_", " "): self._counts[name] for name in _COUNTS},
            **compared(faults, self.found, self._replaced),
        }

    def _add_analyzer(self, version: Version) -> None:
        settings = {"warmupSeconds": WARMUP_S}
        added = MeasuredAnalyzer(
            self._url, self._folder, settings=settings, environment=version.environment
        )
        self._analyzers.append(added)
        self.found.add(added.file)
        added.await_ready()

    def _end_analyzer(self, analyzer: MeasuredAnalyzer) -> None:
        """End an analyzer; add what it counted."""
        metrics = analyzer.metrics()
        analyzer.end()
        self._counts += totals(metrics, _COUNTS)


def extracted(ref: str, folder: Path) -> Version:
    """Return a commit of this repository as it was."""
    archive = subprocess.run(
        ["git", "archive", ref, *PACKAGES], cwd=ROOT, stdout=subprocess.PIPE, check=True
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(folder, filter="data")
    return Version(ref, folder)


def measure(ref: str, nodes: int, groups: int) -> Row:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        earlier, current = extracted(ref, folder / "earlier"), Version("current", ROOT)
        server = stack.enter_context(launcher())()
        site = Installation(f"unix://{server.socket}", folder, nodes, groups)
        stack.callback(site.end)
        site.start(earlier)
        site.found.follow(2 * WARMUP_S + CYCLE_S)
        for step, version in (("upgrade", current), ("rollback", earlier)):
            print(f"{step}: {len(site.found.reported)} findings until now", flush=True)
            site.replace_analyzers(version)
            site.replace_collectors(version)
            site.found.follow(CYCLE_S)
        site.end()
        row = site.row()
    return {"earlier": ref, "nodes": nodes, "groups": groups, **row}


def main() -> int:
    """Exit code 0 done."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--earlier", required=True, metavar="REF")
    parser.add_argument("--nodes", type=int, default=120)
    parser.add_argument("--groups", type=int, default=6)
    asked = parser.parse_args()
    report("rolling_upgrade", [measure(asked.earlier, asked.nodes, asked.groups)])
    return 0


if __name__ == "__main__":
    sys.exit(main())
