"""Published mini-batch times of real jobs as windows of ranks: which worker is named, and rightly?

    python bench/straggler_traces.py DIR        with pai-job-N.csv (alibaba/clusterdata, CC BY 4.0)

A row of a trace is the time that one worker needed for a mini-batch at one moment.  Each moment
becomes a window of a synchronous job: a step takes as long as its slowest worker, and each worker
computes for its own time of it.  The truth is the trace: in the two windows that open a finding,
the named worker is the slowest, and the steps are longer than in the first tenth by so much.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from benchmark_report import Row, report
from host_cleanup import log
from reveal_analyzer.gangs.judge import RankJudge
from reveal_analyzer.gangs.rank import Rank
from reveal_contract.finding import FindingChange

_EXCHANGE = 0.05  # of a step, in which nobody computes
_FIRST = 0.1  # part of the trace that is learned
_START = 100  # number of the first window


class _Report(NamedTuple):
    """A finding: the number of its window, its worker, and by how much the job is slower."""

    window: int
    worker: int
    percent: float


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path, metavar="DIR")
    asked = parser.parse_args(argv)
    files = sorted(asked.directory.glob("pai-job-*.csv"))
    if not files:
        log(f"{asked.directory} has no pai-job-*.csv")
        return 1
    report("straggler_traces", [row(file) for file in files])
    return 0


def row(file: Path) -> Row:
    """Return what was reported of one trace, and how much of it the trace confirms."""
    times = pd.read_csv(file).pivot_table(index="time", columns="worker", values="batch_time_norm")
    times = times.dropna().reset_index(drop=True)
    judge, reports = RankJudge(), list[_Report]()
    for number, ranks in enumerate(windows(times)):
        for update in judge.add({rank.node: [rank] for rank in ranks}):
            job = update.finding.delayed_job
            if update.change is FindingChange.OPENED and job is not None:
                worker = int(update.finding.subjects[0].name.rpartition("-")[2])
                reports.append(_Report(number, worker, job.slowdown_percent))
    right = [each for each in reports if each.worker == times.iloc[each.window].idxmax()]
    names = dict.fromkeys(f"{each.worker}" for each in reports)
    return {
        "trace": file.stem, "workers": times.shape[1], "windows": len(times),
        "opened": len(reports), "right": len(right), "workers named": " ".join(names),
        "slower %": round(max((each.percent for each in reports), default=0.0), 1),
    }  # fmt: skip


def windows(times: pd.DataFrame) -> Iterator[list[Rank]]:
    """Yield the ranks of each moment."""
    steps = times.max(axis=1) * (1 + _EXCHANGE)
    learned = _learned(times) * (1 + _EXCHANGE)
    for number, (moment, works) in enumerate(times.iterrows()):
        step = steps.loc[moment]
        yield [
            Rank(
                job="pai", node=f"n{worker}", window=_START + number, kind="Unit", namespace="",
                name=f"worker-{worker}", uid="", desired=work / step, step_s=step / 1e3,
                slower_percent=100 * (step / learned - 1), lost=(),
            )
            for worker, work in works.items()
        ]  # fmt: skip


def _learned(times: pd.DataFrame) -> float:
    """Return the normal time of the slowest worker."""
    return float(times.max(axis=1).iloc[: max(3, int(_FIRST * len(times)))].median())


if __name__ == "__main__":
    sys.exit(main())
