"""The table of faults on a real cluster, of rows that its tests wrote.

    REVEAL_FAULT_ROWS=rows.jsonl make e2e FOLDER=e2e/faults     as often as wanted
    python bench/cluster_faults.py rows.jsonl

Writes ``bench/results/cluster_faults.json`` and prints the table in Markdown.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results" / "cluster_faults.json"
COLUMNS = ("found", "node", "subsystem", "pod", "hypothesis")
COUNTS = ("reports", "events")
Row = dict[str, Any]


def main(argv: Sequence[str] | None = None) -> int:
    asked = _parser().parse_args(argv)
    rows = [json.loads(line) for line in asked.rows.read_text().splitlines()]
    faults = [row for row in rows if "fault" in row]
    healthy = [row for row in rows if "healthy" in row]
    if not faults:
        print(f"no faults in {asked.rows}", file=sys.stderr)
        return 1
    totals = total(faults)
    result = {"faults": faults, "healthy": healthy, "totals": totals}
    asked.out.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")
    tables = [*table(faults), "", *(healthy_table(healthy) if healthy else ()), ""]
    for line in (*tables, *_summary_lines(totals)):
        print(line)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rows", type=Path, help="what REVEAL_FAULT_ROWS named")
    parser.add_argument("--out", type=Path, default=RESULTS, metavar="FILE")
    return parser


def total(rows: Sequence[Row]) -> Row:
    """Share of rows that are right in each column, and the seconds that nineteen of twenty hold."""
    shares = {name: _share(bool(row[name]) for row in rows) for name in COLUMNS}
    shares |= {name: _share(row[name] == 1 for row in rows) for name in COUNTS}
    shares["resolved"] = _share(row["resolved_s"] is not None for row in rows)
    late = percentile([_seconds(row) for row in rows], 95)
    return {**shares, "p95_s": late if late < math.inf else None, "runs": len(rows)}


def table(rows: Iterable[Row]) -> list[str]:
    """A line a fault; of runs that differ, how many were right."""
    lines = [
        "| fault | watched | found | node | subsystem | pod | hypothesis | reports | Events"
        " | seconds | resolved after |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, runs in _grouped(rows, "fault").items():
        right = [_of(bool(run[column]) for run in runs) for column in COLUMNS]
        counts = [_span([float(run[column]) for run in runs]) for column in COUNTS]
        spans = [_span([_seconds(run) for run in runs]), _span([_ended(run) for run in runs])]
        cells = [name, str(runs[0]["watched"]), *right, *counts, *spans]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def healthy_table(rows: Iterable[Row]) -> list[str]:
    lines = ["| healthy case | runs | minutes | findings |", "|---|---|---|---|"]
    for name, runs in _grouped(rows, "healthy").items():
        minutes = sum(run["seconds"] for run in runs) / 60
        lines.append(
            f"| {name} | {len(runs)} | {minutes:.1f} | {sum(run['findings'] for run in runs)} |"
        )
    return lines


def percentile(values: Sequence[float], percent: int) -> float:
    """The least value that so many percent are not over."""
    ranked = sorted(values)
    return ranked[max(0, math.ceil(len(ranked) * percent / 100) - 1)]


def _grouped(rows: Iterable[Row], key: str) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row[key], []).append(row)
    return found


def _summary_lines(totals: Row) -> list[str]:
    names = (*COLUMNS, *COUNTS, "resolved")
    shares = [f"{name} {100 * totals[name]:.0f} %" for name in names]
    late = "never" if totals["p95_s"] is None else f"{totals['p95_s']:.1f} s"
    return [f"{totals['runs']} runs; {', '.join(shares)}; p95 {late}"]


def _share(right: Iterable[bool]) -> float:
    return statistics.fmean(map(float, right))


def _of(right: Iterable[bool]) -> str:
    every = list(right)
    return f"{sum(every)}/{len(every)}"


def _span(values: Sequence[float]) -> str:
    low, high = (f"{value:g}" for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def _seconds(row: Row) -> float:
    """Never is later than anything."""
    return math.inf if row["seconds"] is None else float(row["seconds"])


def _ended(row: Row) -> float:
    return math.inf if row["resolved_s"] is None else float(row["resolved_s"])


if __name__ == "__main__":
    sys.exit(main())
