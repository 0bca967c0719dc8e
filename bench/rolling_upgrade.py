"""An upgrade under load, and its rollback: slices and findings while two versions run together.

    python bench/rolling_upgrade.py --earlier REF [--nodes 120] [--groups 6]

REF is a commit or tag of this repository whose collectors and analyzers run first.  Two analyzers
are replaced one after the other, then the collectors in groups, as the operator does; the rollback
goes the other way.  Each node has a fault of 15 s once a minute.  What a collector delivered and no
analyzer analyzed is a lost slice.
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
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.request import urlopen

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from benchmark_report import Row, report
from failoverbench import fleet
from failoverbench.findings import Findings, compared
from failoverbench.fleet import CYCLE_S, WARMUP_S, Fault
from support.component_processes import free_port
from support.redis_server import launcher

ROOT = Path(__file__).parents[1]
BETWEEN_S = 15  # from one replacement to the next
PACKAGES = ("contract", "collector", "analyzer")
_ANALYZED = "reveal_slices_total"


@dataclass
class Version:
    """The packages of a commit."""

    name: str
    root: Path

    @property
    def environment(self) -> dict[str, str]:
        paths = os.pathsep.join(str(self.root / package) for package in PACKAGES)
        return os.environ | {"PYTHONPATH": paths}


@dataclass
class Analyzer:
    """A process of a version; ``analyzed`` is what it had counted when it ended."""

    version: Version
    owner: str
    url: str
    folder: Path
    port: int = field(default_factory=free_port)

    def __post_init__(self) -> None:
        self.file = self.folder / f"{self.owner}-{time.time_ns()}.jsonl"
        self.file.touch()
        settings = self.folder / "settings.json"
        settings.write_text(json.dumps({"warmupSeconds": WARMUP_S}))
        log = self.file.with_suffix(".log").open("wb")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "reveal_analyzer", "--redis", self.url, "--jsonl", self.file,
             "--settings", settings, "--metrics-port", str(self.port), "--owner", self.owner],
            env=self.version.environment, stderr=log,
        )  # fmt: skip

    def end(self) -> float:
        """End it; return how many slices it analyzed until just before."""
        analyzed = self._analyzed()
        self._process.terminate()
        self._process.wait(60)
        return analyzed

    def _analyzed(self) -> float:
        with urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=5) as answer:
            lines = answer.read().decode().splitlines()
        [found] = [line for line in lines if line.startswith(f"{_ANALYZED} ")]
        return float(found.split()[1])


class Senders:
    """The collectors of a group of nodes, as a process of a version."""

    def __init__(self, url: str, first: int, count: int, every: int, phase: float) -> None:
        self._flags = [url, str(first), str(count), str(every), str(phase)]
        self._process: subprocess.Popen[str] | None = None
        self.ended: list[dict[str, Any]] = []

    def run(self, version: Version) -> None:
        """Replace the process by one of this version."""
        self.end()
        command = [sys.executable, fleet.__file__, *self._flags]
        self._process = subprocess.Popen(
            command, env=version.environment, stdout=subprocess.PIPE, text=True
        )

    def end(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            output, _ = self._process.communicate(timeout=60)
            self.ended.append(json.loads(output))
            self._process = None

    def sum(self, name: str) -> int:
        return sum(each[name] for each in self.ended)


class Installation:
    """Two analyzers and groups of collectors on one Redis."""

    def __init__(self, url: str, folder: Path, asked: argparse.Namespace) -> None:
        self._url, self._folder = url, folder
        self.found, self.replaced = Findings(), list[float]()
        self.analyzed = 0.0
        self._analyzers: dict[str, Analyzer] = {}
        each, phase = asked.nodes // asked.groups, time.time()
        self.groups = [
            Senders(url, number * each, each, asked.nodes, phase) for number in range(asked.groups)
        ]

    def start(self, version: Version) -> None:
        self.replace_analyzers(version, lambda: None)
        for group in self.groups:
            group.run(version)

    def replace_analyzers(self, version: Version, between: Callable[[], None]) -> None:
        for owner in ("a", "b"):
            if before := self._analyzers.pop(owner, None):
                self.replaced.append(time.time())
                self.analyzed += before.end()
            self._analyzers[owner] = Analyzer(version, owner, self._url, self._folder)
            self.found.add(self._analyzers[owner].file)
            between()

    def replace_collectors(self, version: Version, between: Callable[[], None]) -> None:
        for group in self.groups:
            self.replaced.append(time.time())
            group.run(version)
            between()

    def end(self) -> None:
        """End all; harmless after the end."""
        for group in self.groups:
            group.end()
        self.found.follow(5)  # the last slices are analyzed
        while self._analyzers:
            self.analyzed += self._analyzers.popitem()[1].end()

    def row(self) -> Row:
        faults = [
            Fault(*each) for group in self.groups for end in group.ended for each in end["faults"]
        ]
        delivered = sum(group.sum("delivered") for group in self.groups)
        return {
            "slices sent": sum(group.sum("sent") for group in self.groups),
            "delivered": delivered, "lost": delivered - int(self.analyzed),
            **{f"findings {name}" if name == "lost" else name: value
               for name, value in compared(faults, self.found, self.replaced).items()},
        }  # fmt: skip


def extracted(ref: str, folder: Path) -> Version:
    """Return a commit of this repository as it was."""
    archive = subprocess.run(
        ["git", "archive", ref, *PACKAGES], cwd=ROOT, stdout=subprocess.PIPE, check=True
    ).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(folder, filter="data")
    return Version(ref, folder)


def measure(asked: argparse.Namespace) -> Row:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        earlier, current = extracted(asked.earlier, folder / "earlier"), Version("current", ROOT)
        server = stack.enter_context(launcher())()
        site = Installation(f"unix://{server.socket}", folder, asked)
        stack.callback(site.end)

        def between() -> None:
            site.found.follow(BETWEEN_S)

        site.start(earlier)
        site.found.follow(2 * WARMUP_S + CYCLE_S)
        for step, version in (("upgrade", current), ("rollback", earlier)):
            print(f"{step}: {len(site.found.reported)} findings", flush=True)
            parts = [site.replace_analyzers, site.replace_collectors]
            for replace in parts if version is current else reversed(parts):
                replace(version, between)
            site.found.follow(CYCLE_S)
        site.end()
        row = site.row()
    return {"earlier": asked.earlier, "nodes": asked.nodes, "groups": asked.groups, **row}


def main() -> int:
    """Exit code 0 done."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--earlier", required=True, metavar="REF")
    parser.add_argument("--nodes", type=int, default=120)
    parser.add_argument("--groups", type=int, default=6)
    report("rolling_upgrade", [measure(parser.parse_args())])
    return 0


if __name__ == "__main__":
    sys.exit(main())
