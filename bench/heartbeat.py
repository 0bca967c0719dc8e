"""The heartbeat bench: step times read from outside beside what the jobs logged themselves.

bench/heartbeat.py --record DIR     as root, ten minutes: training loops of numpy (and JAX
                                    where it is installed), one and two ranks, on hosts of four
                                    CPUs or more beside a server and a loader; slowed down by
                                    their own code and by CPU hogs
bench/heartbeat.py --replay DIR     judges a recording again
bench/heartbeat.py --healthy DIR    of recordings of the fault bench: false locks, slowdowns
bench/heartbeat.py --synthetic N    synthetic jobs with known steps: N slowdowns of 3 to 200 %, half
                                    of them with gaps, N/4 restarts, N/5 on a node of 40 subjects,
                                    and N/20 hours of healthy jobs whose steps scatter by up to 5 %
                                    (--seeds: other jobs, as many for each seed;
                                    --only KIND: slowdowns, restarts, subjects or healthy)
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).parent))

from benchmark_report import report
from faultbench.sessions import sessions
from faultbench.stats import rate_interval
from heartbeatbench import evaluation, recorder, schedule, step_log, synthetic
from heartbeatbench.evaluation import Detected, Error, Played
from host_cleanup import interruptible, log
from reveal_analyzer.heartbeat.reference import WINDOWS
from reveal_cli.faults import LedgerError
from reveal_cli.workloads import CGROUP_PREFIX, WorkloadError
from slice_sources import recorded

_SIZES = (1.0, 2.0, 3.0, 4.0, 6.0, 10.0)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--record", type=Path, metavar="DIR")
    parser.add_argument("--replay", type=Path, metavar="DIR")
    parser.add_argument("--healthy", type=Path, metavar="DIR", nargs="*", default=[])
    parser.add_argument("--synthetic", type=int, metavar="N")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0], metavar="SEED")
    parser.add_argument("--only", choices=synthetic.KINDS)
    parser.add_argument("--scratch", type=Path, default=Path("/var/tmp"), metavar="DIR")
    parser.add_argument("--seconds", type=float, help="record for no longer")
    asked = parser.parse_args(argv)
    interruptible()
    try:
        if asked.record:
            os.environ["PYTHONPATH"] = os.pathsep.join(
                [str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])]
            )
            recorder.record(asked.record, asked.scratch, log, asked.seconds)
        if asked.replay:
            _replay(asked.replay, asked.healthy)
        elif asked.synthetic:
            _synthetic(asked.synthetic, asked.seeds, asked.only)
        elif asked.healthy:
            for line in _healthy(asked.healthy):
                print(line)
        elif not asked.record:
            parser.print_help()
    except (recorder.RecordError, LedgerError, WorkloadError, OSError) as error:
        print(f"heartbeat: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("heartbeat: interrupted; everything is undone", file=sys.stderr)
        return 130
    return 0


def _replay(directory: Path, healthy: Sequence[Path]) -> None:
    session = schedule.read(directory / recorder.SESSION)
    played = evaluation.play(recorded(directory / recorder.RECORDING), session.start_ns)
    rows, every, found = [], [], []
    for job in session.jobs:
        row, mine, detected = _judged(directory, session, job, played)
        rows.append(row)
        every += mine
        found += detected
    for line in (*_summary(every, found), *_update_lines(session, played), *_healthy(healthy)):
        print(line)
    windows = {
        str(window): {"p50": round(middle, 2), "p90": round(high, 2), "readings": count}
        for window, (middle, high, count) in evaluation.spread(every).items()
    }
    report("heartbeat", rows, windows=windows, updates=[asdict(item) for item in played.updates])


def _synthetic(count: int, seeds: Sequence[int], only: str | None) -> None:
    kinds = [only] if only else list(synthetic.KINDS)
    played = (synthetic.KINDS[kind](count, seed) for seed in seeds for kind in kinds)
    outcomes = synthetic.all_played(chain.from_iterable(played))
    calm = [outcome for outcome in outcomes if not outcome.scenario.percent]
    false = sum(len(outcome.opened) for outcome in calm)
    hours = sum(outcome.scenario.seconds for outcome in calm) / 3600
    report(
        f"heartbeat_synthetic_{only}" if only else "heartbeat_synthetic",
        synthetic.rows([outcome for outcome in outcomes if outcome.scenario.percent]),
        seeds=list(seeds), healthy_hours=hours, false=false,
    )  # fmt: skip
    print(f"healthy jobs: {false} slowdowns in {hours:g} h")


def _judged(
    directory: Path, session: schedule.Session, job: schedule.JobPlan, played: Played
) -> tuple[dict[str, Any], list[Error], list[Detected]]:
    """One job: a row of figures, its errors, and which of its slowdowns were seen."""
    steps = step_log.read(recorder.log_of(directory, job.name), session.start_ns)
    subject = recorder.cgroup(job.name).path
    read = played.jobs.get(subject, evaluation.Job())
    episodes = [*job.episodes, *([session.hog] if session.hog else [])]
    edges = {edge for episode in episodes for edge in (episode.begin, episode.end)}
    mine = list(evaluation.errors(read, steps, edges))
    detected = [item for each in episodes if (item := evaluation.detected(job.name, mine, each))]
    baseline = steps.mean(0.0, schedule.LEARNED_S)
    false = evaluation.false_slowdowns(played.updates, subject, steps, baseline)
    row: dict[str, Any] = {"job": job.name, "step_s": round(baseline or 0.0, 3)}
    row["locked_s"] = "never" if read.locked is None else round(read.locked)
    row["read_share"] = round(read.seconds / max(played.seconds, 1), 2)
    for window, (middle, high, _) in evaluation.spread(mine).items():
        row |= {f"p50_{window}": round(middle, 2), f"p90_{window}": round(high, 2)}
    row["false"] = len(false)
    return row, mine, detected


def _summary(every: list[Error], found: list[Detected]) -> Iterator[str]:
    for window, (middle, high, count) in evaluation.spread(every).items():
        yield f"{window:>3} s: error p50 {middle:.2f}, p90 {high:.2f} points ({count} readings)"
    for window in WINDOWS:
        slowdowns = [(item.percent, item.by[window]) for item in found if window in item.by]
        parts = []
        for low, high in zip(_SIZES, (*_SIZES[1:], float("inf")), strict=True):
            hits = [hit for percent, hit in slowdowns if low <= percent < high]
            if hits:
                parts.append(f"{low:g}-{high:g} %: {sum(hits)} of {len(hits)}")
        yield f"{window:>3} s: slowdowns seen: {', '.join(parts) or 'none fits'}"


def _update_lines(session: schedule.Session, played: Played) -> Iterator[str]:
    for item in played.updates:
        yield f"  reported at {item.seconds:.0f} s: {item.change} {item.claim}"
    for name in session.bystanders:
        job = played.jobs.get(f"/{CGROUP_PREFIX}{name}")
        yield f"{name}: {job.seconds if job else 0} s with a heartbeat of {played.seconds} s"
    yield from played.last_lines


def _healthy(directories: Sequence[Path]) -> Iterator[str]:
    """False locks and slowdowns over recordings without injected slowdowns of a known size."""
    seconds = locks = 0
    false_alarms = []
    for directory in directories:
        for session in sessions(directory):
            played = evaluation.play(((s.message, s.table) for s in session.read()), 0)
            seconds += played.seconds
            locked = {name: job.seconds for name, job in played.jobs.items() if job.seconds}
            locks += sum(locked.values())
            false_alarms += [each for each in played.updates if each.change == "Opened"]
            yield f"{session.name}: {played.seconds} s, read: {locked or 'nothing'}"
    if directories:
        low, high = rate_interval(len(false_alarms), seconds / 3600)
        yield (
            f"{seconds / 3600:.2f} h: {locks} s with a heartbeat, {len(false_alarms)} slowdowns,"
            f" {low:.1f} to {high:.1f} an hour (95 %)"
        )


if __name__ == "__main__":
    sys.exit(main())
