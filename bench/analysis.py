"""How fast the analysis is, in one run on one core.

Features beside tsfresh, the forest beside scikit-learn, what a second of a node costs, and the
whole analyzer on a live Redis: nodes a core, and how soon after the close of a slice its verdict
is there.  "Mode online" looks at the paper's three where there is something to explain, "mode
paper" at every window, with models of each node's own.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import warnings
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: figures are for one core

from analysisbench import analyzed_nodes, features, forest, live_analyzer
from benchmark_report import Row, report, use_single_core
from reveal_analyzer.kernels import backend
from reveal_analyzer.kernels.selection import use_fastest
from reveal_contract.settings import MODES, AnalyzerSettings
from slice_sources import Slice, slices

_IMAGE = Path(__file__).parents[1] / "Dockerfile.analyzer"
FOREST = 4800  # features: 400 metrics with twelve each
AGES = 10  # nodes of different ages, whose ranges are refitted every tenth second


def main() -> None:
    given = parser().parse_args()
    as_in_the_image()
    warnings.simplefilter("ignore")
    use_single_core()
    tiers = [backend.NUMPY]
    item = use_fastest()
    print(item)
    if backend.current() is not backend.NUMPY:
        tiers.append(backend.current())
    rows: list[Row] = []
    if not given.only_live:
        for channels in (given.channels, 700):
            rows += features.compare(channels, tiers)
        rows += features.family_costs(given.channels)
        for width, windows in ((FOREST, 1), (FOREST, 256), (33 * given.channels, 1)):
            rows += forest.compare(width, windows, tiers)
    recorded = of_same_table(slices(given.recording, given.recorded, given.channels))
    rows += analyzed_nodes.costs(recorded, MODES)
    theirs = {} if given.only_live else papers_window(rows)
    for mode, count in (("online", given.nodes), ("paper", given.paper_nodes)):
        rows += on_redis(recorded, mode, count, given.seconds, theirs) if count else []
    report("analysis", rows, tier=item, goals=GOALS)


GOALS = {
    "features times tsfresh": 4000,
    "forest times scikit-learn, one window": 500,
    "nodes a core": 4000,
    "live times tsfresh and scikit-learn": 2880,  # 4,000 nodes where theirs take .72 s a window
    "p99 ms": 250,
}


def of_same_table(recorded: list[Slice]) -> list[Slice]:
    """Equal tables are the same object, as the reader of a stream hands them out."""
    table = recorded[0][1]
    return [(message, table) for message, _ in recorded]


def papers_window(rows: list[Row]) -> Row:
    """What the paper's method takes a window of a node: tsfresh, and scikit-learn's forest."""
    first = ("33 features", f"forest, 1 windows of {FOREST}")
    parts = [next(row for row in rows if str(row["what"]).startswith(what)) for what in first]
    return {"others us": sum(float(part["others us"]) for part in parts)}


def on_redis(recorded: list[Slice], mode: str, count: int, seconds: int, theirs: Row) -> list[Row]:
    settings = AnalyzerSettings(mode=mode)
    warm = [
        analyzed_nodes.Node(recorded, settings, analyzed_nodes.HISTORY_S + age)
        for age in range(AGES)
    ]
    channels = len(recorded[0][1].fast) + len(recorded[0][1].slow)
    row: Row = {"what": f"live Redis, mode {mode}", "channels": channels, **theirs}
    row |= live_analyzer.live(recorded, warm, count, seconds)
    if theirs:
        row["times"] = float(row["others us"]) / float(row["reveal us"])
    return [row]


def as_in_the_image() -> None:
    """Restart with the image's settings of the C library, which it reads at process start."""
    name, value = re.findall(r"\b(GLIBC_TUNABLES)=(\S+)", _IMAGE.read_text())[0]
    if name not in os.environ:
        os.execve(sys.executable, sys.orig_argv, {**os.environ, name: value})


def parser() -> argparse.ArgumentParser:
    argument_parser = argparse.ArgumentParser(description=__doc__)
    argument_parser.add_argument(
        "recording", type=Path, nargs="?", help="recording; default: this host now"
    )
    argument_parser.add_argument(
        "--recorded", type=int, default=67,
        help="seconds that come round; no part of the past's 300, or each meets itself there",
    )  # fmt: skip
    argument_parser.add_argument("--channels", type=int, default=400)
    argument_parser.add_argument("--nodes", type=int, default=3000, help="on the live Redis")
    argument_parser.add_argument(
        "--paper-nodes", type=int, default=300, help="of them in mode paper"
    )
    argument_parser.add_argument(
        "--seconds", type=int, default=60, help="whole minutes: each node is summed up once in one"
    )
    argument_parser.add_argument("--only-live", action="store_true")
    return argument_parser


if __name__ == "__main__":
    main()
