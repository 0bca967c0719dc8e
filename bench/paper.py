"""The paper's own experiments on real workloads of this machine, its figures beside ours.

bench/paper.py --record DIR     as root, twelve minutes: training and inference of numpy and
                                scikit-learn (and JAX where it is installed), three runs each
bench/paper.py --replay DIR     Figure 4 (metric selection), Table 2 (window settings) and the
                                reproducibility test over those recordings
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent))

from paperbench import jobs, recorder, reproducibility, settings_compared, traces
from report import report
from reveal_cli import selecting
from reveal_cli.commands.select import as_json
from reveal_cli.exits import CliError
from reveal_cli.faults import LedgerError
from reveal_cli.workloads import WorkloadError

ERRORS = (
    recorder.RecordError, traces.TracesError, CliError, LedgerError, WorkloadError, OSError,
)  # fmt: skip
THRESHOLD = 0.5
_PAPER = {
    "keptShareAtHalf": 0.6,
    "knee": 0.5,
    "significantShare": 0.9975,
    "byCount": {"3/1 s vs 1.5/0.5 s": 0.92, "3/1 s vs 5/2 s": 0.75, "1.5/0.5 s vs 5/2 s": 0.67},
    "byLength": {"3/1 s vs 1.5/0.5 s": 0.72, "3/1 s vs 5/2 s": 0.72, "1.5/0.5 s vs 5/2 s": 0.66},
    "iouMedian": {"3/1 s vs 1.5/0.5 s": 0.5, "3/1 s vs 5/2 s": 0.53, "1.5/0.5 s vs 5/2 s": 0.39},
}


def main(argv: Sequence[str] | None = None) -> int:
    asked = _parser().parse_args(argv)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    try:
        if asked.record:
            here = str(Path(__file__).parent)
            others = filter(None, [os.environ.get("PYTHONPATH")])
            os.environ["PYTHONPATH"] = os.pathsep.join([here, *others])
            names = tuple(asked.only or jobs.names())
            plan = recorder.Plan(names, asked.runs, asked.seconds)
            recorder.record(asked.record, asked.scratch, plan, _say)
        if asked.replay:
            _replay(asked.replay)
    except ERRORS as error:
        print(f"paper: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("paper: interrupted; everything is undone", file=sys.stderr)
        return 130
    if not (asked.record or asked.replay):
        _parser().print_help()
    return 0


def _parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    made.add_argument("--record", type=Path, metavar="DIR", help="record what DIR lacks")
    made.add_argument("--replay", type=Path, metavar="DIR", help="judge recordings")
    made.add_argument("--only", nargs="+", choices=jobs.names(), metavar="WORKLOAD")
    made.add_argument("--runs", type=int, default=3)
    made.add_argument("--seconds", type=float, default=36.0, help="length of a run")
    made.add_argument("--scratch", type=Path, default=Path("/var/tmp"), metavar="DIR")
    return made


def _replay(directory: Path) -> None:
    runs = recorder.read(directory)
    loaded = traces.load([(run.workload, run.number, directory / run.recording) for run in runs])
    compared, counts = settings_compared.compare(loaded)
    tested = reproducibility.judge(loaded)
    metrics = sum(each.metrics for each in tested)
    significant = sum(each.significant for each in tested)
    for each in tested:
        print(each.row())
    print(f"significant: {significant} of {metrics} workload-metric pairs")
    selection = _selection(directory, runs)
    print({name: selection[name] for name in ("kept", "dropped", "knee")})
    report(
        "paper",
        [each.row() for each in compared],
        paper=_PAPER,
        workloads={
            "training": [name for name in loaded.workloads if name in jobs.TRAINING],
            "inference": [name for name in loaded.workloads if name in jobs.INFERENCE],
        },
        runs=len(loaded.runs),
        seconds=loaded.samples / settings_compared.SAMPLES_A_SECOND,
        neighbourCores=[run.neighbour_cores for run in runs],
        stretchesMarked=counts,
        reproducibility={
            "workloadMetricPairs": metrics,
            "significantShare": round(significant / max(metrics, 1), 4),
            "byWorkload": [each.row() for each in tested],
            "notSignificant": {each.workload: list(each.not_told) for each in tested},
        },
        selection=selection,
    )


def _selection(directory: Path, runs: Sequence[recorder.Run]) -> dict[str, Any]:
    """What ``reveal select`` makes of the recordings, without the names."""
    files: dict[str, list[Path]] = {}
    for run in runs:
        files.setdefault(run.workload, []).append(directory / run.recording)
    workloads, _ = selecting.correlated(files, traces.SAMPLE_NS)
    selection, points, bend = selecting.chosen(workloads, THRESHOLD)
    moved = {
        item.label
        for each in workloads
        for item, moves in zip(each.items, each.moved, strict=True)
        if moves
    }
    return {
        "threshold": THRESHOLD,
        "moved": len(moved),
        "kept": sum(each.metric in moved for each in selection.kept),
        "dropped": len(selection.dropped),
        "stoodStill": len(selection.kept) + len(selection.dropped) - len(moved),
        "knee": bend,
        "curves": as_json(selection, points, bend)["curves"],
    }


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _interrupt(number: int, frame: object) -> None:
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)  # undoing is not to be interrupted again
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
