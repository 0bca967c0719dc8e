"""The fault bench: injects real faults into real workloads and judges what Reveal says.

    bench/faults --record DIR [--healthy MINUTES]     as root; can be interrupted and resumed
    bench/faults --replay DIR                         judges the same recordings again
    bench/faults --list

A case is 8 s of quiet, 14 s of fault and 12 s of rest, after a warm-up of 75 s that cases of a
session share: each is judged by a fresh analyzer that has seen the warm-up and the case only
(``--chained``: one that lives through the whole session).  The fault's own cgroup is hidden
from detection, not from the naming of subjects.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import astuple
from functools import partial
from pathlib import Path
from typing import Any

# each process judges one session; threads of BLAS would only get in each other's way
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent))

from faultbench import other_detector, summary
from faultbench.evaluation import judge
from faultbench.npz_recordings import HostFaultsError
from faultbench.recorder import Recorder, RecordError, Timing
from faultbench.recording_index import IndexFileError
from faultbench.sessions import NothingToJudgeError, Session, sessions
from faultbench.step_loss import STEPPING, STEPS
from host_cleanup import interruptible, log
from reveal_cli.faults import (
    FAULTS,
    Fault,
    FaultError,
    FaultTarget,
    LedgerError,
    UnknownFaultError,
    find,
)
from reveal_cli.faults.cgroups import Cgroup
from reveal_cli.workloads import NAMES, Workload, WorkloadError
from reveal_contract.recording import RecordingError
from reveal_contract.settings import MODES, SENSITIVITIES, AnalyzerSettings

RESULTS = Path(__file__).parent / "results" / "faults.json"
ERRORS = (
    RecordError, WorkloadError, FaultError, LedgerError, UnknownFaultError, NothingToJudgeError,
    HostFaultsError, IndexFileError, RecordingError, other_detector.BesideError, OSError,
)  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code 0 done, 1 error, 2 usage, 130 interrupted (everything undone)."""
    asked = _parser().parse_args(argv)
    interruptible()
    try:
        faults = _chosen(asked.only, asked.weak)
        if asked.list:
            _list(faults, asked.scratch)
        if asked.record is not None:
            _record(asked, faults)
        if asked.replay is not None:
            _replay(asked, {fault.name for fault in faults} if asked.only else None)
    except ERRORS as error:
        print(f"faults: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("faults: interrupted; everything is undone", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bench/faults", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--list", action="store_true", help="the faults, and whether they work here"
    )
    parser.add_argument("--record", type=Path, metavar="DIR", help="record what is missing in DIR")
    parser.add_argument(
        "--replay", type=Path, metavar="DIR", help="judge recordings (npz ones too)"
    )
    parser.add_argument("--only", nargs="+", metavar="FAULT", help="these faults")
    parser.add_argument("--workloads", nargs="*", choices=NAMES, default=["train", "server"])
    parser.add_argument("--weak", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--healthy", type=float, default=0.0, metavar="MINUTES")
    parser.add_argument(
        "--timing", type=float, nargs=4, default=astuple(Timing()),
        metavar=("WARMUP", "LEAD", "FAULT", "REST"), help="seconds of each part of a recording",
    )  # fmt: skip
    parser.add_argument("--chained", action="store_true", help="one analyzer a session")
    parser.add_argument("--beside", type=Path, metavar="FILE.py", help="another detector, npz only")
    parser.add_argument("--sensitivity", choices=SENSITIVITIES, default="Low")
    parser.add_argument("--mode", choices=MODES, default="online")
    parser.add_argument("--scratch", type=Path, default=Path("/var/tmp"), metavar="DIR")
    parser.add_argument("--out", type=Path, default=RESULTS, metavar="FILE")
    return parser


def _chosen(only: Sequence[str] | None, weak: bool) -> list[Fault]:
    if only:
        return [find(name) for name in only]
    return [fault for fault in FAULTS if weak or not fault.weak]


def _list(faults: Sequence[Fault], scratch: Path) -> None:
    target = FaultTarget(workload=Cgroup("reveal-work-train"), scratch=scratch)
    for fault in faults:
        where = "/".join(sorted(fault.subsystems))
        strength = "weak" if fault.weak else ""
        works = fault.unsupported_reason(target) or fault.about
        print(f"{fault.name:<16}{strength:<6}{where:<16}{fault.kind:<34}{works}")


def _record(asked: argparse.Namespace, faults: Sequence[Fault]) -> None:
    timing = Timing(*asked.timing)
    for workload in asked.workloads:
        job = partial(Workload, log=asked.record / STEPS) if workload in STEPPING else Workload
        Recorder(asked.record, asked.scratch, timing, log, job).faults(workload, faults)
    if asked.healthy:
        Recorder(asked.record, asked.scratch, timing, log).healthy(asked.healthy)


def _replay(asked: argparse.Namespace, only: set[str] | None) -> None:
    chosen = [_only(session, only) for session in sessions(asked.replay)]
    settings = AnalyzerSettings(sensitivity=asked.sensitivity, mode=asked.mode)
    judged = _each(partial(judge, settings=settings, chained=asked.chained), chosen)
    others = []
    if asked.beside is not None:
        other_detector.load(asked.beside)
        old = [each for each in chosen if each.path.suffix == ".npz"]
        others = _each(partial(other_detector.judge, detector=asked.beside), old)
    for line in (
        *summary.table(judged), *summary.false_lines(judged), *summary.reduced_lines(judged),
        *summary.lines(summary.totals(judged)),
    ):  # fmt: skip
        print(line)
    if others:
        print(summary.beside_line(others))
    summary.write(asked.out, judged, others)


def _only(session: Session, names: set[str] | None) -> Session:
    return session if names is None else session.of(names)


def _each(work: Callable[[Session], Any], chosen: Sequence[Session]) -> list[Any]:
    with ProcessPoolExecutor(min(os.cpu_count() or 1, max(len(chosen), 1))) as pool:
        return list(pool.map(work, chosen))


if __name__ == "__main__":
    sys.exit(main())
