"""Jobs of several ranks, one of which is delayed: which one is named, when, and at what cost.

    python bench/gangs.py --record DIR [--kinds ring star] [--only quota hog]     as root
    python bench/gangs.py --evaluate DIR

Each job runs for a while, then a fault delays one of its ranks.  The truth is the log of the steps:
how much longer they take in the fault than before it.  Each job has two ranks on this host, each on
a CPU of its own, in cgroups that are named as units of one template.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from benchmark_report import Row, report
from gangbench.gang_faults import FAULTS
from gangbench.running_gang import RunningGang
from host_cleanup import interruptible, log
from reveal_analyzer.gangs.local import LocalRanks
from reveal_analyzer.node import Announced, NodeAnalyzer
from reveal_cli.recordings import Slices
from reveal_contract.finding import FindingChange, FindingUpdate
from reveal_contract.settings import AnalyzerSettings

SIZE = 2
STEPS_MS = {"ring": (60, 90), "star": (80, 60), "pipeline": (50, 70)}  # CPU time, then sleep
SETTLE_S, FAULT_S, REST_S = 50.0, 45.0, 5.0
_RECORDING, _RUNS = "gangs.rvl", "runs.json"


@dataclass(frozen=True)
class Run:
    """One job with one fault; times are s since the epoch."""

    name: str
    kind: str
    fault: str
    rank: int
    started: float
    began: float
    ended: float


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code 0 done, 130 interrupted."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--record", type=Path, metavar="DIR")
    parser.add_argument("--evaluate", type=Path, metavar="DIR")
    parser.add_argument("--kinds", nargs="+", choices=STEPS_MS, default=list(STEPS_MS))
    parser.add_argument("--only", nargs="+", choices=FAULTS, default=list(FAULTS))
    asked = parser.parse_args(argv)
    interruptible()
    try:
        if asked.record is not None:
            record(asked.record, asked.kinds, asked.only)
        if asked.evaluate is not None:
            evaluate(asked.evaluate)
    except KeyboardInterrupt:
        return 130
    return 0


def record(directory: Path, kinds: Sequence[str], faults: Sequence[str]) -> None:
    """Play all jobs and faults while the collector records."""
    directory.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "reveal_cli", "record", str(directory / _RECORDING),
               "--duration", "forever"]  # fmt: skip
    recorder = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        time.sleep(REST_S)
        runs = [
            play(directory, kind, fault, number % SIZE)
            for number, (kind, fault) in enumerate((k, f) for k in kinds for f in faults)
        ]
    finally:
        recorder.send_signal(signal.SIGINT)
        recorder.wait()
    (directory / _RUNS).write_text(json.dumps([asdict(run) for run in runs]))


def play(directory: Path, kind: str, fault: str, rank: int) -> Run:
    """Run one job, and delay one of its ranks."""
    name = f"{kind}-{fault}"
    log(f"{name}: rank {rank}")
    started = time.time()
    with RunningGang(name, kind, SIZE, directory, STEPS_MS[kind]) as gang:
        time.sleep(SETTLE_S)
        with FAULTS[fault](gang, rank):
            began = time.time()
            time.sleep(FAULT_S)
            ended = time.time()
        time.sleep(REST_S)
    time.sleep(REST_S)
    return Run(name, kind, fault, rank, started, began, ended)


def evaluate(directory: Path) -> None:
    """Print what was said of each run."""
    runs = [Run(**row) for row in json.loads((directory / _RUNS).read_text())]
    found = opened(directory / _RECORDING)
    rows = [row(directory, run, found) for run in runs]
    faults = [each for each in rows if each["fault"] != "healthy"]
    right = [each for each in faults if each["right"]]
    log(f"{len(right)} of {len(faults)} right; {sum(int(each['others']) for each in rows)} others")
    report("gangs", rows)


def opened(recording: Path) -> list[tuple[float, FindingUpdate]]:
    """Return the findings of jobs that were opened or resolved, each with its time."""
    slices, ranks, found = Slices(recording), LocalRanks(), []
    analyzers: dict[str, NodeAnalyzer] = {}
    for message, table in slices:
        node = message.node
        if node not in analyzers:
            announced = Announced(lambda node=node: slices.subjects(node))  # type: ignore[misc]
            analyzers[node] = NodeAnalyzer(node, AnalyzerSettings(), announced=announced)
        analyzers[node].analyze(message, table)
        for update in ranks.add(analyzers[node].ranks.pop_ended(), message.start_ns):
            found.append((message.start_ns / 1e9, update))
    return found


def row(directory: Path, run: Run, found: Sequence[tuple[float, FindingUpdate]]) -> Row:
    """Return what was said of one run beside its truth."""
    own = [(time_s, update.finding) for time_s, update in found
           if update.change is FindingChange.OPENED and run.started <= time_s <= run.ended + 30.0
           and update.finding.delayed_job is not None
           and run.name in update.finding.delayed_job.name]  # fmt: skip
    named = [
        (time_s, each)
        for time_s, each in own
        if each.subjects[0].name.endswith(f"@{run.rank}.service")
    ]
    right = [(time_s, each) for time_s, each in named if run.began <= time_s <= run.ended + 20.0]
    last = [update.finding for time_s, update in found
            if right and update.finding.id == right[0][1].id]  # fmt: skip
    delayed = last[-1].delayed_job if last else None
    return {
        "job": run.kind, "fault": run.fault, "right": int(bool(right) and run.fault != "healthy"),
        "seconds": round(right[0][0] - run.began, 1) if right else "",
        "said %": round(delayed.slowdown_percent, 1) if delayed else "",
        "true %": round(slowdown(directory, run), 1),
        "others": len(own) - len(right[:1]) if run.fault != "healthy" else len(own),
    }  # fmt: skip


def slowdown(directory: Path, run: Run) -> float:
    """Return by how many percent steps take longer in the fault than before it, by their log."""
    lines = (directory / f"{run.name}-0.steps").read_text().splitlines()
    steps = [(float(end), float(took)) for end, took in map(str.split, lines)]
    before = [took for end, took in steps if run.began - 20 <= end < run.began]
    within = [end for end, _ in steps if run.began <= end < run.ended]
    if len(within) < 2 or not before:
        return float("nan")
    return 100 * ((within[-1] - within[0]) / (len(within) - 1) / median(before) - 1)


if __name__ == "__main__":
    sys.exit(main())
