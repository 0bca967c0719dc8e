"""How late ticks come while programs want every CPU several times over.

The collector runs as it is and records; each slice carries how late each of its ticks was, by
the clock that the tick was set by.  Real-time priority, which root has, is what is tested.
"""

import argparse
import multiprocessing
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from benchmark_report import Row, report
from slice_sources import sampled


def spin() -> None:
    while True:
        pass


@contextmanager
def hogs(count: int) -> Iterator[None]:
    """So many processes that never wait."""
    context = multiprocessing.get_context("fork")
    spinning = [context.Process(target=spin, daemon=True) for _ in range(count)]
    for hog in spinning:
        hog.start()
    try:
        yield
    finally:
        for hog in spinning:
            hog.kill()
            hog.join()


def measure(count: int, seconds: int) -> Row:
    with tempfile.TemporaryDirectory() as folder, hogs(count):
        # the first and the last slice are no whole seconds
        read = [message for message, _ in sampled(Path(folder) / "ticks.rvl", seconds)][1:-1]
    late = np.concatenate([message.lateness for message in read])
    expected = 10 * (read[-1].sequence - read[0].sequence + 1)
    p50, p99 = np.percentile(late, (50, 99))
    return {
        "hogs": count, "ticks": len(late), "missed": expected - len(late),
        "p50 us": float(p50), "p99 us": float(p99), "most us": float(late.max()),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hogs", type=int, default=8)
    parser.add_argument("--seconds", type=int, default=60)
    given = parser.parse_args()
    rows = [measure(count, given.seconds) for count in (0, given.hogs)]
    report("lateness", rows, goal="p99 under 1,000 us beside 8 hogs")


if __name__ == "__main__":
    main()
