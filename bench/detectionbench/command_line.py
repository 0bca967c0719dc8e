"""The same through the command line, as anyone would use it: CSV in, CSV and JSON lines out."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from detectionbench.detectors import Detector, Judged
from detectionbench.metrics import Span
from reveal_analyzer.tables.scoring.table import Table

_REVEAL = (sys.executable, "-m", "reveal_cli")
_SECOND = 10**9


class CommandError(RuntimeError):
    """``reveal`` failed; the text is what it said."""


@dataclass(frozen=True)
class Command:
    """``reveal analyze`` and ``reveal explain`` in one mode."""

    mode: str
    trained: bool = False

    def judge(self, train: Table, table: Table, spans: Sequence[Span]) -> Judged:
        with TemporaryDirectory(prefix="reveal-bench-") as folder:
            run, healthy, scores = (Path(folder, name) for name in ("run.csv", "h.csv", "s.csv"))
            _write(run, table)
            baseline: list[str] = []
            if self.trained:
                _write(healthy, train)
                baseline = ["--baseline", str(healthy)]
            _run("analyze", str(run), "--mode", self.mode, "--scores", str(scores), *baseline)
            with scores.open(newline="") as file:
                rows = list(csv.DictReader(file))
            rankings = _explained(run, table, spans, baseline)
        return Judged(
            np.array([float(row["score"]) for row in rows]),
            np.array([row["anomalous"] == "1" for row in rows]),
            rankings,
        )


DETECTORS: dict[str, Detector] = {
    "reveal report, CLI": Command("report"),
    "reveal online, CLI": Command("online", trained=True),
    "paper, on the run, CLI": Command("paper"),
}


def _explained(
    run: Path, table: Table, spans: Sequence[Span], baseline: Sequence[str]
) -> list[list[int]]:
    if not spans:
        return []
    asked = [f"--span={_seconds(table, first)}/{_seconds(table, end - 1)}" for first, end in spans]
    output = _run("explain", str(run), "--json", *asked, *baseline)
    positions = {name: index for index, name in enumerate(table.names)}
    lines = [json.loads(line)["ranking"] for line in output.splitlines()]
    return [[positions[entry["metric"]] for entry in ranking] for ranking in lines]


def _seconds(table: Table, row: int) -> int:
    """Since the start, in whole seconds, as minute data has them."""
    return int(table.times_ns[row] - table.times_ns[0]) // _SECOND


def _write(path: Path, table: Table) -> None:
    with path.open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["time", *table.names])
        seconds = (table.times_ns // _SECOND).tolist()
        out.writerows(
            [second, *row] for second, row in zip(seconds, table.values.tolist(), strict=True)
        )


def _run(*arguments: str) -> str:
    done = subprocess.run([*_REVEAL, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise CommandError(f"reveal {arguments[0]}: {done.stderr.strip()}")
    return done.stdout
