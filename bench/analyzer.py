"""Node-windows a second of one core: window features and the paper's three detectors.

Parts are timed alone; the last rows are whole windows, of which one in a hundred is marked
(and then attributed to its metrics).
"""

import argparse

import numpy as np

from report import Row, median_seconds, one_core, report
from reveal_analyzer.detectors.trio import Trio
from reveal_analyzer.features.numpy_impl import features
from reveal_analyzer.paper import PaperDetector, PaperOptions
from reveal_contract.metric import Subsystem
from windows_of_proc import Floats, recorded_windows


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
    ]
    report("analyzer", rows, reference=given.reference)


if __name__ == "__main__":
    main()
