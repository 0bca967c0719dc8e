"""Node-windows a second of one core: features, the paper's three detectors, the whole engine.

Parts are timed alone; the last rows are whole windows, of which one in a hundred is marked
(and then attributed to its metrics).
"""

import argparse
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from report import Row, median_seconds, one_core, report
from reveal_analyzer.detectors.trio import Trio
from reveal_analyzer.engine import NodeAnalyzer
from reveal_analyzer.features.numpy_impl import features
from reveal_analyzer.paper import PaperDetector, PaperOptions
from reveal_collector.registry import probe_all, roots_of
from reveal_contract.channels import ChannelTable
from reveal_contract.metric import Kind, Lane, Subsystem
from reveal_contract.settings import AnalyzerSettings, CollectorSettings
from reveal_contract.wire import Message
from windows_of_proc import Floats, recorded_windows

WARM, CALLS, ROUNDS = 320, 60, 5  # slices: the past is full, six refits a round


def fitting(channels: int, reference: list[Floats]) -> Row:
    vectors = np.array([features(window).ravel() for window in reference])
    seconds = median_seconds(lambda: Trio().fit(vectors), calls=1, rounds=3)
    return row(f"fit on {len(reference)} windows", channels, seconds)


def parts(channels: int, reference: list[Floats], new: Floats) -> list[Row]:
    vectors = np.array([features(window).ravel() for window in reference])
    trio, vector = Trio().fit(vectors), features(new).ravel()[None]
    member = trio.members_[0]
    scaled = member.scaler.transform(vector)
    rows = [
        row("features", channels, median_seconds(lambda: features(new), 200)),
        row("three members: all", channels, median_seconds(lambda: trio.judge(vector), 50)),
        row(
            "one member: scaling",
            channels,
            median_seconds(lambda: member.scaler.transform(vector), 200),
        ),
    ]
    for detector in member.detectors:
        seconds = median_seconds(lambda d=detector: d.score_scaled(scaled), 200)
        rows.append(row(f"one member: {type(detector).__name__}", channels, seconds))
    return rows


def whole(channels: int, reference: list[Floats], new: list[Floats]) -> list[Row]:
    subsystems = [list(Subsystem)[at % 5] for at in range(channels)]
    options = PaperOptions(warmup_windows=len(reference))
    detector = PaperDetector([f"m{at}" for at in range(channels)], subsystems, options=options)
    for window in reference:
        detector.learn(window)
    verdicts = [(window, detector.judge(window)) for window in new]
    rows = []
    for name, marked in (("quiet", False), ("marked", True)):
        chosen = [w for w, verdict in verdicts if verdict and bool(verdict.agreeing) is marked]
        loud = chosen or [new[0] * 1.5]
        pair = [loud[0], loud[0].copy()]  # a window judged twice has its features kept
        seconds = median_seconds(lambda p=pair: [detector.judge(w) for w in p], 30) / 2
        rows.append(row(f"window, {name}", channels, seconds))
    mixed = 0.99 * float(rows[0]["ms"]) + 0.01 * float(rows[1]["ms"])
    return [*rows, row("window, 1 % marked", channels, mixed / 1e3)]


def engine(channels: int, windows: list[Floats]) -> list[Row]:
    """The whole analysis of a node: seconds, live score, signatures, episodes, subjects.

    The channels are this host's own, their values the recorded ones, one slice a second.
    """
    table, gauges = host_table(channels)
    slices = [window[:10] for window in windows]
    messages = [message(values, gauges, table, at) for at, values in enumerate(slices)]
    judge = NodeAnalyzer("bench", AnalyzerSettings())
    for one in messages[:WARM]:
        judge.step(one, table)
    rest = iter(messages[WARM:])
    seconds = median_seconds(lambda: judge.step(next(rest), table), CALLS, ROUNDS)
    return [row("engine: one second of a node, with its refits", channels, seconds)]


def host_table(channels: int) -> tuple[ChannelTable, NDArray[np.bool_]]:
    settings = CollectorSettings(node="bench", redis_url="unix:///nowhere")
    sources = probe_all(roots_of(settings), settings).sources
    fast = [
        c for s in sources if s.lane is Lane.FAST for c in s.channels if ".subject." not in c.metric
    ]
    for source in sources:
        source.close()
    used = (fast * (channels // len(fast) + 1))[:channels]
    named = [
        replace(c, instance=f"{c.instance}+{at // len(fast)}" if at >= len(fast) else c.instance)
        for at, c in enumerate(used)
    ]
    table = ChannelTable(tuple(named), ())
    return table, np.array([c.kind is not Kind.COUNTER for c in named])


def message(values: Floats, gauges: NDArray[np.bool_], table: ChannelTable, at: int) -> Message:
    counts = np.abs(np.where(gauges, values, np.diff(values, axis=0, prepend=values[:1])))
    fast = counts.astype(np.int64)
    return Message(
        node="bench", boot=b"b" * 16, sequence=at, start_ns=at * 1_000_000_000, tick_us=100_000,
        table=table.key, fast=fast, slow=np.zeros(0, np.int64),
        fast_missing=np.zeros(fast.shape, bool), slow_missing=np.zeros(0, bool),
    )  # fmt: skip


def row(what: str, channels: int, seconds: float) -> Row:
    return {"what": what, "channels": channels, "ms": seconds * 1e3, "a second": 1 / seconds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--channels", type=int, default=400)
    parser.add_argument("--reference", type=int, default=60, help="windows fitted on")
    given = parser.parse_args()
    one_core()
    reference = recorded_windows(given.reference, given.channels)
    new = recorded_windows(20, given.channels, seed=1)
    rows = [
        fitting(given.channels, reference),
        *parts(given.channels, reference, new[0]),
        *whole(given.channels, reference, new),
        *engine(given.channels, recorded_windows(WARM + 1 + CALLS * ROUNDS, given.channels, 2)),
    ]
    report("analyzer", rows, reference=given.reference)


if __name__ == "__main__":
    main()
