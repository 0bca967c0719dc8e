"""The paper's own experiments on real workloads of this machine, its figures beside ours.

bench/paper.py --record DIR     as root, twelve minutes: training and inference of numpy and
                                scikit-learn (and JAX where it is installed), three runs each
bench/paper.py --replay DIR     Figure 4 (metric selection), Table 2 (window settings) and the
                                reproducibility test over those recordings
bench/paper.py --cycle FILE     Table 2 and the reproducibility test over a healthy session of
                                bench/faults (mixed-N.session.json), whose jobs come and go in
                                a cycle of five minutes: sets of jobs are workloads, cycles runs
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent))

from benchmark_report import Row, report
from faultbench.recording_index import IndexFileError, read_index
from host_cleanup import interruptible, log
from paperbench import recorder, reproducibility, traces, window_settings, workloads
from reveal_cli import metric_selection
from reveal_cli.commands.select import as_json
from reveal_cli.errors import CliError
from reveal_cli.faults import LedgerError
from reveal_cli.workloads import WorkloadError

ERRORS = (
    recorder.RecordError, traces.TracesError, IndexFileError, CliError, LedgerError,
    WorkloadError, OSError,
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
    interruptible()
    try:
        if asked.record:
            here = str(Path(__file__).parent)
            others = filter(None, [os.environ.get("PYTHONPATH")])
            os.environ["PYTHONPATH"] = os.pathsep.join([here, *others])
            names = tuple(asked.only or workloads.names())
            plan = recorder.Plan(names, asked.runs, asked.seconds)
            recorder.record(asked.record, asked.scratch, plan, log)
        if asked.replay or asked.cycle:
            _replay(asked.replay, asked.cycle)
    except ERRORS as error:
        print(f"paper: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("paper: interrupted; everything is undone", file=sys.stderr)
        return 130
    if not (asked.record or asked.replay or asked.cycle):
        _parser().print_help()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--record", type=Path, metavar="DIR", help="record what is missing in DIR")
    parser.add_argument("--replay", type=Path, metavar="DIR", help="judge recordings")
    parser.add_argument(
        "--cycle", type=Path, metavar="SESSION.json", help="judge a healthy session"
    )
    parser.add_argument("--only", nargs="+", choices=workloads.names(), metavar="WORKLOAD")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=36.0, help="length of a run")
    parser.add_argument("--scratch", type=Path, default=Path("/var/tmp"), metavar="DIR")
    return parser


def _replay(directory: Path | None, session: Path | None) -> None:
    rows: list[Row] = []
    notes: dict[str, Any] = {}
    if directory:
        runs = recorder.read(directory)
        files = [(run.workload, run.number, directory / run.recording) for run in runs]
        notes["alone"] = _judged("alone", traces.load(files), rows)
        notes["alone"]["neighbourCores"] = [run.neighbour_cores for run in runs]
        notes["selection"] = _selection(files)
    if session:
        index = read_index(session)
        recorded = traces.cycles(session.parent / index.recording, index.start_ns)
        notes["cycle"] = _judged("cycle", recorded, rows)
        notes["cycle"]["neighbourCores"] = [index.neighbour_cores]
    report("paper", rows, paper=_PAPER, **notes)


def _judged(name: str, recorded: traces.Traces, rows: list[Row]) -> dict[str, Any]:
    """Table 2 as rows of the report; the reproducibility test printed and given back."""
    compared, counts = window_settings.compare(recorded)
    rows += [{"recordings": name, **each.row()} for each in compared]
    tested = reproducibility.judge(recorded)
    metrics = sum(each.metrics for each in tested)
    significant = sum(each.significant for each in tested)
    for each in tested:
        print(each.row())
    print(f"{name}: {significant} of {metrics} workload-metric pairs are significant")
    return {
        "workloads": list(recorded.workloads),
        "runs": len(recorded.runs),
        "seconds": recorded.samples / window_settings.SAMPLES_A_SECOND,
        "stretchesMarked": counts,
        "workloadMetricPairs": metrics,
        "significantShare": round(significant / max(metrics, 1), 4),
        "byWorkload": [each.row() for each in tested],
        "notSignificant": {each.workload: list(each.not_compared) for each in tested},
    }


def _selection(recordings: Sequence[tuple[str, int, Path]]) -> dict[str, Any]:
    """What ``reveal select`` makes of the recordings, without the names."""
    files: dict[str, list[Path]] = {}
    for workload, _, path in recordings:
        files.setdefault(workload, []).append(path)
    workloads, _ = metric_selection.correlated(files, traces.SAMPLE_NS)
    selection, points, knee = metric_selection.chosen(workloads, THRESHOLD)
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
        "knee": knee,
        "curves": as_json(selection, points, knee)["curves"],
    }


if __name__ == "__main__":
    sys.exit(main())
