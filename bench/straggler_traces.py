"""Published mini-batch times of real jobs as windows of ranks: which worker is named, and when.

    python bench/straggler_traces.py DIR        with pai-job-N.csv (alibaba/clusterdata, CC BY 4.0)

A row of a trace is the time that one worker needed for a mini-batch at one moment.  Each moment
becomes a window of a synchronous job: a step takes as long as its slowest worker, and each worker
computes for its own time of it.  The truth is what the trace itself says: the worker whose time
grew most against the first tenth of the trace, and how much longer the slowest worker became.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

import pandas as pd

from benchmark_report import Row, report
from host_cleanup import log
from reveal_analyzer.gangs.judge import RankJudge
from reveal_analyzer.gangs.rank import Rank
from reveal_contract.finding import FindingChange, FindingUpdate

_EXCHANGE = 0.05  # of a step, in which nobody computes
_FIRST = 0.1  # part of the trace that is learned
_START = 100  # number of the first window


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
    """Return what is said of one trace beside what it says itself."""
    times = pd.read_csv(file).pivot_table(index="time", columns="worker", values="batch_time_norm")
    times = times.dropna()
    judge, opened = RankJudge(), list[FindingUpdate]()
    for ranks in windows(times):
        updates = judge.add({rank.node: [rank] for rank in ranks})
        opened += [update for update in updates if update.change is FindingChange.OPENED]
    first, last = _ends(times)
    growth = last / first
    named = [update.finding.subjects[0].name for update in opened]
    percents = [
        update.finding.delayed_job.slowdown_percent
        for update in opened
        if update.finding.delayed_job
    ]
    return {
        "trace": file.stem, "workers": times.shape[1], "windows": len(times),
        "grew most": f"worker-{growth.idxmax()}", "by %": round(100 * (growth.max() - 1), 1),
        "slower %": round(100 * (last.max() / first.max() - 1), 1),
        "named": " ".join(dict.fromkeys(named)), "said %": round(max(percents, default=0.0), 1),
    }  # fmt: skip


def windows(times: pd.DataFrame) -> Iterator[list[Rank]]:
    """Yield the ranks of each moment."""
    steps = times.max(axis=1) * (1 + _EXCHANGE)
    learned = median(steps.iloc[: max(3, int(_FIRST * len(steps)))])
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


def _ends(times: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    """Return the median times of each worker in the first and in the last tenth."""
    count = max(3, int(_FIRST * len(times)))
    return times.iloc[:count].median(), times.iloc[-count:].median()


if __name__ == "__main__":
    sys.exit(main())
