"""The lost-time ledger beside the jobs' own steps, and findings about those who take the time.

    python bench/lost_time.py --record DIR [--quick]    as root; can be interrupted and resumed
    python bench/lost_time.py --evaluate DIR            evaluates the same recordings again
    python bench/lost_time.py --list

Jobs that write down their steps run on a quiet host, beside two half-core neighbours, and while
compilers use all CPUs.  Each job in each host state is a session of one collector with one fault
after the other.  What a job lost is 1 - (the time that its steps need) / (the time that they took).
They need their CPU time and the waits that the job causes itself, which are those on a quiet host.
The findings are those of one analyzer that lives through the session: with the ledger, with
recordings from which its channels were removed, and in the mode of the paper on those.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import astuple
from functools import partial
from pathlib import Path

# each process evaluates one session; threads of BLAS would only get in each other's way
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from benchmark_report import Row, formatted, report
from faultbench.recorder import Recorder, RecordError, Timing
from faultbench.recording_index import IndexFileError
from faultbench.sessions import NothingToJudgeError, sessions
from host_cleanup import interruptible, log
from ledgerbench.host_states import STATES
from ledgerbench.stepping_job import JOBS, SteppingJob, log_path, parts_of, session_name
from ledgerbench.truth_evaluation import Evaluation, SessionResult, own_waits
from ledgerbench.truth_faults import COSTLY, EXPECTED, FAULTS, QUICK
from ledgerbench.truth_summary import details, row, totals
from reveal_cli.faults import Fault, FaultError, LedgerError
from reveal_cli.workloads import WorkloadError
from reveal_contract.recording import RecordingError
from reveal_contract.settings import AnalyzerSettings

TIMING = Timing(warmup=62.0, lead=6.0, fault=12.0, rest=4.0)
MOST_BUSY = 0.4  # CPUs that others use on a quiet host: the collector, and clients of the job
ERRORS = (
    RecordError, WorkloadError, FaultError, LedgerError, NothingToJudgeError, IndexFileError,
    RecordingError, OSError,
)  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code 0 done, 1 error, 2 usage, 130 interrupted (everything undone)."""
    asked = parser().parse_args(argv)
    interruptible()
    try:
        faults = [fault for fault in FAULTS if fault.name in (asked.only or EXPECTED)]
        if asked.list:
            print_faults(faults)
        if asked.record is not None:
            record(asked, faults)
        if asked.evaluate is not None:
            evaluate(asked.evaluate, asked.warmup, asked.jobs, asked.hosts)
    except ERRORS as error:
        print(f"lost_time: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("lost_time: interrupted; everything is undone", file=sys.stderr)
        return 130
    return 0


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    result.add_argument("--record", type=Path, metavar="DIR", help="record what is missing in DIR")
    result.add_argument("--evaluate", type=Path, metavar="DIR", help="evaluate recordings")
    result.add_argument("--list", action="store_true", help="the faults, and what is expected")
    result.add_argument("--quick", action="store_true", help=f"only {', '.join(QUICK)}")
    result.add_argument("--only", nargs="+", metavar="FAULT", choices=EXPECTED, help="these faults")
    result.add_argument("--jobs", nargs="+", choices=JOBS, default=list(JOBS))
    result.add_argument("--hosts", nargs="+", choices=STATES, default=list(STATES))
    result.add_argument(
        "--timing", type=float, nargs=4, default=astuple(TIMING),
        metavar=("WARMUP", "LEAD", "FAULT", "REST"), help="seconds of each part of a recording",
    )  # fmt: skip
    result.add_argument(
        "--warmup", type=int, default=AnalyzerSettings.warmup_seconds, metavar="S",
        help="how long the analyzer learns",
    )  # fmt: skip
    result.add_argument("--scratch", type=Path, default=Path("/var/tmp"), metavar="DIR")
    return result


def print_faults(faults: Sequence[Fault]) -> None:
    for fault in faults:
        expected = EXPECTED[fault.name]
        print(f"{fault.name:<14}{expected.culprit:<10}{fault.about}")
        print(f"{'':<24}{', '.join(sorted(expected.causes))}")


def record(asked: argparse.Namespace, faults: Sequence[Fault]) -> None:
    """Record the sessions that the directory does not have, all jobs of a host state together."""
    chosen = [fault for fault in faults if not asked.quick or fault.name in QUICK]
    timing = Timing(*asked.timing)
    for state in asked.hosts:
        for job in asked.jobs:
            name = session_name(job, state)
            make = partial(_job, log=log_path(asked.record, name))
            Recorder(asked.record, asked.scratch, timing, log, make).faults(
                name, chosen, last=COSTLY
            )


def _job(name: str, scratch: Path, log: Path) -> SteppingJob:
    return SteppingJob(name, scratch, log)


def evaluate(
    directory: Path, warmup_s: int, jobs: Sequence[str] = JOBS, hosts: Sequence[str] = tuple(STATES)
) -> None:
    """Print and write what the recordings of a directory say."""
    every = sessions(directory)
    chosen = [
        each
        for each in every
        if (of := parts_of(each.workload))[0] in jobs and of[1] in hosts and each.cases
    ]
    evaluation = Evaluation(directory, own_waits(directory, every), warmup_s)
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(evaluation.of, chosen))
    rows = [row(case) for result in results for case in result.cases]
    cases = [details(case) for result in results for case in result.cases]
    sums = totals(results)
    report(
        "lost_time", rows, totals=sums, own_waits_s=evaluation.own_waits,
        sessions=[_session(result) for result in results], cases=cases,
    )  # fmt: skip
    _print_totals(sums)
    for result in results:
        if result.busy_cores > MOST_BUSY and parts_of(result.name)[1].startswith("quiet"):
            print(f"  not quiet: {result.name}: others used {result.busy_cores:.2f} CPUs")
        for name, lines in result.others.items():
            for line in lines:
                print(f"  no fault: {result.name}, {name}: {line}")


def _session(result: SessionResult) -> dict[str, object]:
    return {
        "name": result.name, "seconds": result.seconds, "skipped": dict(result.skipped),
        "busy_cores": round(result.busy_cores, 3),
        "findings_without_fault": {name: list(lines) for name, lines in result.others.items()},
    }  # fmt: skip


def _print_totals(sums: Sequence[Row]) -> None:
    """Print the totals as columns: a figure in each line, a host state in each column."""
    for name in sums[0] if sums else ():
        print(f"{name:<24}" + "".join(f"{formatted(each[name]):>14}" for each in sums))


if __name__ == "__main__":
    sys.exit(main())
