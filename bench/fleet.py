"""Comparison of nodes: false cases, faults on one of many nodes, and its cost.

Recordings of the fault bench are played as nodes of one class.  Healthy ones: every node plays
the whole recording, each from another second on (``together``: a few seconds apart, so that
they do the same; ``staggered``: less than a minute; ``apart``: minutes, so that they mostly do
something else), or, where four recordings have one workload, each is a node (``runs``).  Each is
played a second time with 5 % of the seconds of a single node missing (``unread``).  Faults:
one node repeats the seconds of a fault, the others the quiet ones before it.
"""

import argparse
import itertools
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from benchmark_report import Row, median_seconds, report
from faultbench.sessions import Case, Session, sessions
from reveal_analyzer.derive.deriver import Deriver, Second
from reveal_analyzer.fleet.cases import FleetCase as Found
from reveal_analyzer.fleet.cases import FleetCases, deviations
from reveal_analyzer.fleet.grouping import WorkloadGroups
from reveal_analyzer.fleet.minute import MINUTE, MinuteData, MinuteRecorder
from reveal_analyzer.fleet.outliers import LEAST
from reveal_analyzer.fleet.publisher import NodeSetup, summarize
from reveal_analyzer.fleet.rounds import compare_all, parts
from reveal_analyzer.fleet.summary import Summary, decode, encode
from reveal_contract.finding import FindingChange
from reveal_contract.time_units import NS_PER_SECOND
from slice_sources import slices

NODES = 9
SHIFTS = {"together": 3, "staggered": 41, "apart": 157}  # s between the starts of two nodes
MISSING = 0.05  # of the seconds of a node that loses some
SETUP = NodeSetup("the recorded host", {})
START_NS = 28_000_000 * MINUTE * NS_PER_SECOND
_LASTS = 4  # minutes that a fault is played
_SETTLING = 15.0  # s in which a workload starts
_ONSET = 2.0  # s that a fault may take to begin
SIZES = (100, 1000, 4000)


@dataclass(frozen=True)
class Played:
    """What became of a play: the cases that opened, and how long it was."""

    opened: Sequence[Found]
    minutes: int
    nodes: int


def timed(session: Session) -> list[tuple[float, Second]]:
    """All seconds of a session, with its clock when they closed."""
    deriver = Deriver()
    return [(item.end, deriver.second(item.message, item.table)) for item in session.read()]


def minutes_of(node: str, seconds: Iterable[Second], count: int) -> list[Summary]:
    """The summaries of a node that has these seconds, one after the other."""
    minutes, summaries = MinuteRecorder(), []
    for index, second in enumerate(itertools.islice(seconds, count * MINUTE + 1)):
        minutes.push(second._replace(start_ns=START_NS + index * NS_PER_SECOND))
        if (ended := minutes.pop_ended()) is not None:
            summaries.append(summarize(node, ended.levels(), SETUP, ()))
    return summaries


def play(nodes: Sequence[Sequence[Summary]]) -> Played:
    cases, groups, opened = FleetCases(), WorkloadGroups(), []
    for minute in zip(*nodes, strict=True):
        found, settings, compared = compare_all(groups.assign(minute))
        updates = cases.update(deviations(found, settings), compared, minute[0].minute)
        opened += [case for change, case in updates if change is FindingChange.OPENED]
    return Played(opened, len(nodes[0]), len(nodes))


def healthy(session: Session, shift: int, missing: float = 0.0) -> Played:
    """All nodes play a session; this share of the seconds of the first one is not read."""
    seconds = [second for _, second in timed(session)]
    count = len(seconds) // MINUTE
    nodes = [rotated(seconds, number * shift) for number in range(NODES)]
    nodes[0] = unread(nodes[0], missing)
    return play(
        [
            minutes_of(f"n{number}", itertools.cycle(some), count)
            for number, some in enumerate(nodes)
        ]
    )


def unread(seconds: Sequence[Second], share: float) -> list[Second]:
    """Return the seconds; this share of them, by chance, has no values."""
    chance = np.random.default_rng(0).random(len(seconds)) < share
    return [
        second._replace(
            values=np.full_like(second.values, np.nan),
            channels=np.full_like(second.channels, np.nan),
        )
        if is_missing
        else second
        for second, is_missing in zip(seconds, chance.tolist(), strict=True)
    ]


def rotated(seconds: Sequence[Second], by: int) -> list[Second]:
    start = by % len(seconds)
    return [*seconds[start:], *seconds[:start]]


def faulty(session: Session) -> list[tuple[Case, Played]]:
    """One node of nine repeats a fault, the others repeat the quiet before the first one."""
    seconds = timed(session)
    quiet = quiet_of(session, seconds)
    others = [
        minutes_of(f"n{number}", itertools.cycle(rotated(quiet, number * 5)), 1)[0]
        for number in range(1, NODES)
    ]
    out = []
    for case in session.cases:
        mine = [s for end, s in seconds if case.onset + _ONSET < end <= case.offset]
        if len(mine) > 5:
            odd = minutes_of("odd", itertools.cycle(mine), 1)[0]
            out.append((case, play([lasting(item) for item in (odd, *others)])))
    return out


def quiet_of(session: Session, seconds: Sequence[tuple[float, Second]]) -> list[Second]:
    """The minute of the warm-up in which the workload runs evenly."""
    last = min([case.onset for case in session.cases], default=session.warmup + _SETTLING)
    return [second for end, second in seconds if _SETTLING <= end <= min(last, 75.0)]


def runs(some: Sequence[Session]) -> list[Played]:
    """Runs of one workload as nodes that repeat a minute: what is odd of one is so for good."""
    by_workload: dict[str, list[Session]] = {}
    for item in some:
        by_workload.setdefault(item.workload, []).append(item)
    return [
        play(
            [
                lasting(minutes_of(item.name, itertools.cycle(quiet_of(item, timed(item))), 1)[0])
                for item in group
            ]
        )
        for group in by_workload.values()
        if len(group) >= LEAST
    ]


def lasting(minute: Summary) -> list[Summary]:
    return [replace(minute, minute=minute.minute + index) for index in range(_LASTS)]


def healthy_rows(all_sessions: Sequence[Session]) -> list[Row]:
    quiet = [session for session in all_sessions if not session.cases]
    plays = {
        f"{how}{', unread' if missing else ''}": [
            healthy(session, shift, missing) for session in quiet
        ]
        for how, shift in SHIFTS.items()
        for missing in (0.0, MISSING)
    }
    plays["runs"] = runs(all_sessions)
    return [healthy_row(how, some) for how, some in plays.items()]


def healthy_row(how: str, plays: Sequence[Played]) -> Row:
    opened = [case for run in plays for case in run.opened]
    causes = [
        f"{run.key.subsystem} {getattr(run.deviations.first, 'metric', '')}" for run in opened
    ]
    return {
        "what": f"healthy, {how}", "nodes": sum(run.nodes for run in plays),
        "node-hours": sum(run.minutes * run.nodes for run in plays) / 60,
        "opened": len(opened), "by": ", ".join(sorted(set(causes))),
    }  # fmt: skip


def fault_rows(faults: Sequence[tuple[Case, Played]]) -> list[Row]:
    rows: list[Row] = []
    for strength, weak in (("full", False), ("weak", True)):
        some = [(case, played) for case, played in faults if case.weak is weak]
        mine = [[item for item in played.opened if item.key.node == "odd"] for _, played in some]
        right = [
            any(item.key.subsystem in case.subsystems for item in found)
            for (case, _), found in zip(some, mine, strict=True)
        ]
        rows.append({
            "what": f"faults, {strength} strength", "nodes": NODES, "faults": len(some),
            "found": sum(map(bool, mine)), "subsystem right": sum(right),
            "on others": sum(len(played.opened) for _, played in some) - sum(map(len, mine)),
        })  # fmt: skip
    return rows


def missed(faults: Sequence[tuple[Case, Played]]) -> list[str]:
    return sorted(
        {
            case.fault
            for case, played in faults
            if not any(item.key.node == "odd" for item in played.opened)
        }
    )


def cost_rows(recording: Path | None) -> list[Row]:
    """CPU time of what an analyzer does for a node a minute, and of a leader's round."""
    pairs = slices(recording, MINUTE + 1, 100_000)
    deriver, minutes = Deriver(), MinuteRecorder()
    seconds = [deriver.second(*pair) for pair in pairs]
    counter = itertools.count()

    def push() -> None:
        second = next(counter)
        minutes.push(
            seconds[second % len(seconds)]._replace(start_ns=START_NS + second * NS_PER_SECOND)
        )

    for _ in range(MINUTE + 1):
        push()
    ended = minutes.pop_ended()
    assert isinstance(ended, MinuteData)
    summary = summarize("n", ended.levels(), SETUP, ())
    data = encode(summary)
    single: list[tuple[str, Callable[[], object]]] = [
        ("a second added", push),
        ("a summary made", lambda: summarize("n", ended.levels(), SETUP, ())),
        ("a summary packed", lambda: encode(summary)),
        ("a summary read", lambda: decode(data)),
    ]
    rows: list[Row] = [
        {"what": what, "metrics": len(summary.names), "bytes": len(data),
         "ms": 1e3 * median_seconds(call, 50)}
        for what, call in single
    ]  # fmt: skip
    for size in SIZES:
        nodes = [replace(summary, node=f"n{number}") for number in range(size)]
        spent = median_seconds(lambda nodes=nodes: compare_all(nodes), 1, 3)  # type: ignore[misc]
        rows.append({"what": "a round over all nodes", "nodes": size, "ms": 1e3 * spent,
                     "longest part ms": 1e3 * longest(nodes)})  # fmt: skip
    return rows


def longest(nodes: Sequence[Summary]) -> float:
    """Seconds of the longest of the parts between which slices are served."""
    took, began = 0.0, time.process_time()
    for _ in parts(nodes):
        took, began = max(took, time.process_time() - began), time.process_time()
    return took


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recordings", type=Path, nargs="*", help="directories of bench/faults")
    parser.add_argument("--recording", type=Path, help="whose slices cost; default: this host now")
    arguments = parser.parse_args()
    all_sessions = [
        session for directory in arguments.recordings for session in sessions(directory)
    ]
    rows = cost_rows(arguments.recording)
    if all_sessions:
        faults = [pair for session in all_sessions if session.cases for pair in faulty(session)]
        rows += healthy_rows(all_sessions) + fault_rows(faults)
        report("fleet", rows, missed=missed(faults))
    else:
        report("fleet", rows)


if __name__ == "__main__":
    main()
