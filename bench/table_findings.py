"""Findings on tables whose truth is known: false ones of healthy series, and faults found.

    bench/table_findings [--runs N] [--seed N] [--mode MODE] [--only NAME...]

Each of ``tablesbench/series.py`` is drawn N times from the seed.  Columns:

  tables     how many were judged
  silent     share of tables without a false finding
  false      false findings a table: those that do not meet the fault
  found      share of faults that a finding meets; of a level that changes and stays: by a single
             finding, which is Open and begins with the change
"""

from __future__ import annotations

import argparse
import sys
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from benchmark_report import Row, report
from reveal_analyzer.tables.findings import ScoredTable, findings
from reveal_analyzer.tables.scoring.api import MODES, score
from reveal_contract.finding import Finding, State
from tablesbench.series import FAULTY, HEALTHY, Random, Series

_NEAR = 0.02  # share of a run within which the beginning of a change is right


@dataclass(frozen=True)
class Verdict:
    """What the findings on a series are worth."""

    false: int
    found: bool


def main(argv: Sequence[str] | None = None) -> int:
    """Judge the series and report."""
    asked = _parser().parse_args(argv)
    drawn = {**HEALTHY, **FAULTY}
    rows = [
        _row(name, drawn[name], asked.mode, asked.seed, asked.runs) for name in asked.only or drawn
    ]
    report("table_findings", rows, seed=asked.seed, mode=asked.mode)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bench/table_findings", description=__doc__,
        formatter_class=argparse.RawTextHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--runs", type=int, default=20, metavar="N", help="tables of each series")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    parser.add_argument("--mode", choices=MODES, default="offline")
    parser.add_argument("--only", nargs="+", choices=[*HEALTHY, *FAULTY], metavar="NAME")
    return parser


def _row(name: str, draw: Callable[[Random], Series], mode: str, seed: int, runs: int) -> Row:
    # each series has a stream of its own, whichever others are drawn
    random = np.random.default_rng([seed, zlib.crc32(name.encode())])
    verdicts = [judged(draw(random), mode) for _ in range(runs)]
    row: Row = {
        "series": name,
        "tables": runs,
        "silent": sum(each.false == 0 for each in verdicts) / runs,
        "false": sum(each.false for each in verdicts) / runs,
    }
    return row | ({"found": sum(each.found for each in verdicts) / runs} if name in FAULTY else {})


def judged(series: Series, mode: str) -> Verdict:
    """Judge a series and compare the findings with its truth."""
    scored = ScoredTable("node", series.table, mode, score(series.table, mode))
    times = series.table.times_ns
    if series.fault is None:
        return Verdict(len(findings(scored)), found=False)
    first_ns, last_ns = int(times[series.fault[0]]), int(times[series.fault[1] - 1])
    hits, false = [], 0
    for finding in findings(scored):
        meets = finding.first_observed_ns <= last_ns and finding.last_observed_ns >= first_ns
        hits += [finding] if meets else []
        false += not meets
    if series.stays:
        near_ns = int(_NEAR * int(times[-1] - times[0]))
        return Verdict(false, len(hits) == 1 and _is_change(hits[0], first_ns, near_ns))
    return Verdict(false, bool(hits))


def _is_change(finding: Finding, first_ns: int, near_ns: int) -> bool:
    near = abs(finding.first_observed_ns - first_ns) <= near_ns
    return finding.state is State.OPEN and near


if __name__ == "__main__":
    sys.exit(main())
