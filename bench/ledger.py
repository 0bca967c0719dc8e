"""The lost-time ledger: exactness, cost at several switch rates, load time, memory, bytes sent.

With ``step``: how much longer the step of a training loop takes.  With ``crowd``: its cost beside
200 pods of 20 threads, and a million short processes.

Two subjects share the CPUs with whatever else runs: their parts are compared with their lives, with
schedstat and with the CPU time of their cgroups.  The cost is the CPU time of a switching program,
with the programs attached and without, in turn.  Needs root and all that the ledger needs.

    bench/ledger.py
    bench/ledger.py --only exactness --seconds 60
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from benchmark_report import Row, report
from ledgerbench import crowd, live, training_step, wire
from reveal_collector.ledger.programs import State, Totals

_PARTS = ("exactness", "cost", "step", "load", "wire", "crowd")
_ON_OR_OFF = [state for state in State if state not in (State.ALIVE, State.DISK)]
_PAUSES_US = (2000, 200, 20, 0)  # from 1,000 switches a second to as many as there can be
_ROUNDS = 7
_STEP_ROUNDS = 20

Result = TypeVar("Result")


def spread(values: Sequence[float]) -> Row:
    """Return the mean, and how far values lie from 0."""
    sizes = sorted(abs(value) for value in values)
    return {
        "mean": round(statistics.fmean(values), 5),
        "mean_abs": round(statistics.fmean(sizes), 5),
        "p95_abs": round(sizes[int(0.95 * (len(sizes) - 1))], 5),
        "max_abs": round(sizes[-1], 5),
    }


def exactness(seconds: int) -> list[Row]:
    """Return the differences of each second of a subject with two spinners beside a half-core."""
    programs, tree = live.load()
    job, other = live.Subject(3, tree), live.Subject(4, tree)
    found: dict[str, list[float]] = {}
    try:
        for code in (live.SPIN, live.HALF):
            job.start(code)
        other.start(live.SPIN)
        live.attach(programs, (job, other))
        time.sleep(2.0)
        before, used, stats = programs.read(live.USED), job.used_ns(), job.schedstat()
        for _ in range(seconds):
            time.sleep(1.0)
            now, used_now, stats_now = programs.read(live.USED), job.used_ns(), job.schedstat()
            for name, value in differences(before, now, job.slot).items():
                found.setdefault(name, []).append(value)
            run = steps(before, now, job.slot, (State.RUN, State.RECLAIM, State.IRQ))
            wait = steps(before, now, job.slot, (State.WAIT, State.THROTTLED))
            found.setdefault("run - cgroup, s", []).append((run - (used_now - used)) / 1e9)
            found.setdefault("run - schedstat, s", []).append(
                (run - (stats_now[0] - stats[0])) / 1e9
            )
            found.setdefault("wait - schedstat, s", []).append(
                (wait - (stats_now[1] - stats[1])) / 1e9
            )
            before, used, stats = now, used_now, stats_now
    finally:
        job.remove()
        other.remove()
        programs.close()
    return [{"check": name, "seconds": seconds, **spread(found[name])} for name in found]


def steps(before: Totals, now: Totals, slot: int, states: Sequence[State]) -> int:
    return sum(int(now.spent[slot][state] - before.spent[slot][state]) for state in states)


def differences(before: Totals, now: Totals, slot: int) -> dict[str, float]:
    """Return how well the parts of a second add up."""
    alive = steps(before, now, slot, (State.ALIVE,))
    row = sum(now.waited[slot]) - sum(before.waited[slot])
    return {
        "sum of parts / thread time - 1": steps(before, now, slot, _ON_OR_OFF) / alive - 1,
        "thread time / (threads x wall) - 1": alive / (2 * (now.now - before.now)) - 1,
        "row of the matrix - wait, s": (row - steps(before, now, slot, (State.WAIT,))) / 1e9,
    }


def cost(pause_us: int, pingpong: Path) -> Row:
    """Return the cost at a rate: CPU time of each switch with the programs and without."""
    with_ns, without_ns, own_ns, rates = [], [], [], []
    for _ in range(_ROUNDS):
        trips, used = run(pingpong, pause_us)
        without_ns.append(used / trips / 2)
        programs, _ = live.load()
        programs.attach()
        before = programs.read(live.USED)
        trips, used = run(pingpong, pause_us)
        now = programs.read(live.USED)
        programs.close()
        with_ns.append(used / trips / 2)
        switches = now.switches - before.switches
        rates.append(switches / (now.now - before.now) * 1e9)
        own_ns.append((now.cost - before.cost) / max(switches, 1))
    pairs = [a - b for a, b in zip(with_ns, without_ns, strict=True)]
    rate = statistics.median(rates)
    return {
        "switches_per_second_of_host": round(rate),
        "ns_per_switch_without": round(statistics.median(without_ns)),
        "ns_per_switch_with": round(statistics.median(with_ns)),
        "slowdown_ns": round(statistics.median(pairs)),
        "slowdown_ns_least": round(min(pairs)),
        "slowdown_ns_most": round(max(pairs)),
        "own_ns_per_switch": round(statistics.median(own_ns)),
        "own_percent_of_a_core": round(statistics.median(own_ns) * rate / 1e7, 3),
    }


def run(program: Path, pause_us: int) -> tuple[int, int]:
    done = subprocess.run([program, "1", str(pause_us)], check=True, capture_output=True, text=True)
    trips, used = map(int, done.stdout.split())
    return trips, used


def costs(pauses: Sequence[int]) -> list[Row]:
    with live.built("pingpong") as program:
        return [cost(pause_us, program) for pause_us in pauses]


def loading() -> list[Row]:
    """Return how long loading, attaching, reading and closing take, and the memory."""
    rows: list[Row] = []
    for _ in range(3):
        times: Row = {}
        programs, _ = timed(times, "load", live.load)
        timed(times, "attach", programs.attach)
        timed(times, "walk", programs.walk_threads)
        times["map_bytes"] = live.map_bytes()
        timed(times, "read", lambda: programs.read(live.USED))  # noqa: B023 - called at once
        timed(times, "close", programs.close)
        rows.append(times)
    return rows


def timed(times: Row, name: str, call: Callable[[], Result]) -> Result:
    began, used = time.perf_counter(), live.cpu_time()
    result = call()
    times[f"{name}_ms"] = round((time.perf_counter() - began) * 1e3, 3)
    times[f"{name}_cpu_ms"] = round((live.cpu_time() - used) * 1e3, 3)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", choices=_PARTS, action="append", help="leave the other parts out")
    parser.add_argument("--seconds", type=int, default=60, help="of the check of exactness")
    parser.add_argument("--processes", type=int, default=1_000_000, help="short ones, of the crowd")
    given = parser.parse_args()
    parts = given.only or _PARTS
    notes: dict[str, list[Row]] = {}
    rows = exactness(given.seconds) if "exactness" in parts else []
    if "cost" in parts:
        notes["cost"] = costs(_PAUSES_US)
    if "step" in parts:
        notes["step"] = [training_step.slowdown(_STEP_ROUNDS)]
    if "load" in parts:
        notes["load"] = loading()
    if "wire" in parts:
        notes["wire"] = [wire.measure(20, 20)]
    if "crowd" in parts:
        notes["crowd"] = [crowd.pods(200, 20, 30), crowd.processes(given.processes)]
    for name, part in notes.items():
        print(name, *part, sep="\n")
    report("ledger", rows, **notes)


if __name__ == "__main__":
    main()
