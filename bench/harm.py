"""Whether stressors that slow a job are reported, and harmless ones are not.

    python bench/harm.py --record DIR [--menu 2] [--threads N] [--only NAME...]     as root
    python bench/harm.py --replay DIR...

Stressors that Reveal was never tuned by run beside a training job, as the faults of ``faults``
do.  Menu 1 has stressors of stress-ng; menu 2 has others of them, and what administrators do.
What each cost is in the job's own log of steps, which Reveal does not see.  A job of one thread
keeps its pace beside most of them; one with a thread on each CPU loses it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmark_report import Row, report
from faultbench.evaluation import Outcome, judge
from faultbench.recorder import Recorder, RecordError, Timing
from faultbench.sessions import sessions
from faultbench.step_loss import HARM, STEPS
from faultbench.untuned_stressors import MENUS
from host_cleanup import interruptible, log
from reveal_cli.faults import Fault, FaultError, LedgerError
from reveal_cli.workloads import Workload, WorkloadError
from reveal_contract.settings import AnalyzerSettings


def main() -> None:
    asked = parser().parse_args()
    interruptible()
    try:
        if asked.record is not None:
            record(asked.record, MENUS[asked.menu], asked.threads, asked.only)
        rows = [row for folder in asked.replay for row in judged(folder)]
    except (RecordError, WorkloadError, FaultError, LedgerError, OSError) as error:
        sys.exit(f"harm: {error}")
    if rows:
        report("harm", rows, sums=sums(rows))
        for line in sums(rows):
            print(line)


def record(folder: Path, menu: Sequence[Fault], threads: int, only: Sequence[str]) -> None:
    """Record what the folder does not have yet; the job's log goes beside the recordings."""
    folder.mkdir(parents=True, exist_ok=True)
    job = partial(Workload, log=folder / STEPS, threads=threads)
    faults = [fault for fault in menu if not only or _short(fault.name) in only]
    Recorder(folder, Path("/var/tmp"), Timing(), log, job).faults("train", faults)


def judged(folder: Path) -> list[Row]:
    """A row for each stressor, those that cost most first."""
    if not (folder / STEPS).exists():
        raise FileNotFoundError(f"{folder} has no {STEPS}: the job's log of its steps")
    outcomes = [
        each for session in sessions(folder) for each in judge(session, AnalyzerSettings()).outcomes
    ]
    outcomes.sort(key=lambda each: -(each.case.lost or 0.0))
    return [row(folder.name, each) for each in outcomes]


def row(folder: str, outcome: Outcome) -> Row:
    return {
        "recordings": folder,
        "stressor": _short(outcome.case.fault),
        "lost %": round(100 * (outcome.case.lost or 0.0), 1),
        "found s": "" if outcome.found is None else round(outcome.found, 1),
        "by": outcome.by,
        "subsystem": verdict(outcome, outcome.subsystem_right),
        "subject": verdict(outcome, bool(outcome.subject_right)),
    }


def _short(name: str) -> str:
    return name.partition("_")[2]  # without "stress" or "script"


def verdict(outcome: Outcome, right: bool) -> str:
    if outcome.found is None:
        return ""
    return "right" if right else "wrong"


def sums(rows: Sequence[Row]) -> list[str]:
    """Of harmful and of harmless stressors: how many were reported, and how well."""
    lines = []
    for name, harmful in ((f"cost at least {HARM:.0%}", True), ("cost less", False)):
        mine = [item for item in rows if (float(item["lost %"]) >= 100 * HARM) is harmful]
        found = [item for item in mine if item["by"]]
        right = [sum(item[what] == "right" for item in found) for what in ("subsystem", "subject")]
        lines.append(
            f"{name}: {len(found)} of {len(mine)} told, "
            f"subsystem right in {right[0]}, subject in {right[1]}"
        )
    return lines


def parser() -> argparse.ArgumentParser:
    argument_parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    argument_parser.add_argument(
        "--record", type=Path, metavar="DIR", help="record what is missing in DIR"
    )
    argument_parser.add_argument(
        "--menu", type=int, choices=sorted(MENUS), default=1, help="which stressors (default: 1)"
    )
    argument_parser.add_argument(
        "--threads", type=int, default=1, help="of the job's linear algebra"
    )
    argument_parser.add_argument(
        "--only", nargs="+", default=[], metavar="NAME", help="these stressors"
    )
    argument_parser.add_argument("--replay", type=Path, nargs="+", default=[], metavar="DIR")
    return argument_parser


if __name__ == "__main__":
    main()
